import json
import subprocess
import sys
from pathlib import Path

import pytest

from latih.data import read_trajectories
from latih.evaluation import EvalResult


@pytest.mark.slow
@pytest.mark.model
def test_a_short_quickstart_on_the_real_model(tmp_path: Path) -> None:
    short = [
        "trainer.steps=2",
        "trainer.warm_start.steps=6",
        "trainer.warm_start.games=8",
        "rollout.groups=4",
        "rollout.group_size=4",
        "evaluation.episodes=8",
        f"run.folder={tmp_path}",
        "run.name=short",
    ]
    command = [sys.executable, "-m", "latih.cli", "train", "tic_tac_toe", *short]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert "training LoRA of rank" in done.stdout
    run = tmp_path / "short"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]

    losses = [row["warm_start/loss"] for row in rows if "warm_start/loss" in row]
    assert len(losses) == 6
    assert losses[-1] < 0.7 * losses[0]  # the form of a move is learnt within a few steps

    steps = [row for row in rows if "reward" in row]
    assert [row["step"] for row in steps] == [1, 2]
    for row in steps:
        assert 0 <= row["sampler_kl"] < 1e-2
        assert row["sampler_logprob_diff"] < 3e-2
        assert sum(row[f"env/{name}"] for name in ("win", "draw", "loss", "invalid")) == pytest.approx(1)
        assert row["errors/fraction"] == 0
        assert len(read_trajectories(run / "trajectories" / f"step-{row['step']:06d}.parquet")) == 16

    found = sorted((EvalResult.load(each.parent) for each in run.glob("evaluations/*/eval.json")), key=lambda e: e.time)
    assert [each.label for each in found] == ["before", "after warm start", "after RL"]
    assert found[0].rates["invalid"].value == 1  # by itself the model never makes a legal move
    report = (run / "report.md").read_text()
    assert "| | before | after warm start | after RL |" in report
    assert (run / "reward.png").read_bytes().startswith(b"\x89PNG")
    assert (run / "checkpoints" / "step-000002" / "adapter" / "adapter_model.safetensors").is_file()
