from pathlib import Path

import pytest

from tests.tiny import tiny_model, tiny_settings


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def quick(tmp_path: Path, tiny: Path) -> list[str]:
    """Settings under which `latih train tic_tac_toe` takes a few seconds."""
    return [
        *tiny_settings(tiny, tmp_path / "runs"),
        "run.name=r",
        "trainer.steps=2",
        "trainer.checkpoint.every=1",
        "trainer.warm_start.steps=2",
        "trainer.warm_start.games=2",
        "evaluation.episodes=4",
    ]
