from pathlib import Path

import pytest

from tests.tiny import tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def quick(tmp_path: Path, tiny: Path) -> list[str]:
    """Settings under which `latih train tic_tac_toe` takes a few seconds."""
    return [
        f"trainer.policy.model.path={tiny}",
        "trainer.policy.model.dtype=float32",
        f"run.folder={tmp_path / 'runs'}",
        "run.name=r",
        "trainer.steps=2",
        "trainer.checkpoint.every=1",
        "trainer.warm_start.steps=2",
        "trainer.warm_start.games=2",
        "rollout.groups=2",
        "rollout.group_size=2",
        "evaluation.episodes=4",
        "inference.kv_cache_gb=0.05",
    ]
