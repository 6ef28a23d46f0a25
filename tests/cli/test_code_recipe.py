"""The recipe `code` trains: warm start, a step and a report, with a tiny model and real sandboxes."""

from importlib import resources
from pathlib import Path

import pytest

from latih.cli.main import main
from latih.models.source import resolve_model
from latih.models.tokenizer import Tokenizer
from latih.train.config import resolve
from tests.envs.playing import play


@pytest.mark.slow
def test_it_trains(quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The tiny model's tokens are bytes, so a line of code takes more of them.
    assert main(["train", "code", *quick, "rollout.sampling.max_tokens=32", "env.args.watch_exploits=true"]) == 0
    assert "after RL" in capsys.readouterr().out
    assert "f(x) = x" in (tmp_path / "runs" / "r" / "report.md").read_text()
    assert '"env/exploited"' in (tmp_path / "runs" / "r" / "metrics.jsonl").read_text()


@pytest.mark.model
def test_what_the_warm_start_shows_fits_into_a_reply() -> None:
    config = resolve("code")
    assert config.trainer.warm_start is not None
    tokenizer = Tokenizer.from_folder(resolve_model("default"))
    env = config.env.make()
    for seed in range(20):
        reply = play(env, config.trainer.warm_start.policy, seed).messages[-1].text
        assert len(tokenizer.encode(reply)) + 1 <= config.rollout.sampling.max_tokens


def test_the_gpu_variant_is_a_whole_config() -> None:
    config = resolve(str(resources.files("latih") / "recipes" / "code" / "gpu.yaml"))
    assert config.trainer.policy.model.path == "Qwen/Qwen2.5-3B-Instruct"
    assert config.env.args == {"level": 6, "examples": 2, "watch_exploits": True}
