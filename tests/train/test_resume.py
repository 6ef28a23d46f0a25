import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from latih.data import read_trajectories
from latih.runs import Run
from latih.runs.checkpoints import read_marker
from tests.soak import forms

ROOT = Path(__file__).parents[2]


def _run(folder, *arguments):
    path = os.pathsep.join([str(ROOT), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "tests.train.victim", str(folder), *arguments],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def _numbers(run):
    """All rows of the metrics, without what the clock made."""
    return [
        {name: value for name, value in row.items() if "seconds" not in name and "per_second" not in name}
        for row in run.metrics()
    ]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    done = _run(folder, "new")
    assert done.returncode == 0, done.stderr
    return Run.open("run", folder)


def _killed(folder, *arguments):
    done = _run(folder, *arguments)
    assert done.returncode == -signal.SIGKILL, done.stderr


def _assert_same(run, other):
    assert _numbers(run) == _numbers(other)
    for step in range(1, 6):
        assert read_trajectories(run.trajectories_path(step)) == read_trajectories(other.trajectories_path(step))
    one, two = run.checkpoints().last(), other.checkpoints().last()
    assert one.name == two.name == "step-000005"
    for name in ("adapter/adapter_model.safetensors", "optimizer.safetensors"):
        mine, its = load_file(one / name), load_file(two / name)
        assert mine.keys() == its.keys()
        assert all(mine[key].equal(its[key]) for key in mine)
    assert (one / "trainer.json").read_text() == (two / "trainer.json").read_text()


@pytest.mark.slow
def test_the_unbroken_run_is_worth_comparing_with(unbroken):
    rows = [row for row in _numbers(unbroken) if "reward" in row]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert len({row["reward"] for row in rows}) == 5
    assert any(row["groups_mixed"] < 1 for row in rows)
    assert all(row["sampler_logprob_diff"] < 1e-4 for row in rows if "sampler_logprob_diff" in row)
    assert sum("eval/reward" in row for row in _numbers(unbroken)) == 5
    assert sum("warm_start/loss" in row for row in _numbers(unbroken)) == 2


@pytest.mark.slow
def test_killed_mid_step_and_mid_save_a_run_resumes_to_the_same_numbers(unbroken, tmp_path):
    # 2 updates of the warm start, then at most 2 a step: the 8th is in step 3 or later, past the checkpoint of step 2
    _killed(tmp_path, "new", "update", "8")
    run = Run.open("run", tmp_path)
    assert run.checkpoints().steps() == [2]
    # the first save of the resumed process is that of step 4: the file of its optimizer is cut short
    _killed(tmp_path, "resume", "write", "1")
    assert run.checkpoints().steps() == [2]
    done = _run(tmp_path, "resume")
    assert done.returncode == 0, done.stderr
    _assert_same(run, unbroken)
    assert all(read_marker(each) for each in (tmp_path / "run" / "checkpoints").iterdir())


@pytest.mark.slow
@forms("update", 2, 1, *range(3, 11))  # the 2nd is before the first checkpoint
def test_killed_before_any_update_a_run_comes_to_the_same_numbers(unbroken, tmp_path, update):
    _killed(tmp_path, "new", "update", str(update))
    done = _run(tmp_path, "resume")
    assert done.returncode == 0, done.stderr
    _assert_same(Run.open("run", tmp_path), unbroken)


@pytest.mark.slow
def test_resuming_a_finished_run_changes_nothing(unbroken):
    before = _numbers(unbroken)
    done = _run(unbroken.folder.parent, "resume")
    assert done.returncode == 0, done.stderr
    assert _numbers(unbroken) == before
