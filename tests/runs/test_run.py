import errno
import multiprocessing
import os
from pathlib import Path

import pytest

from latih.core import ConfigError, LatihError
from latih.runs import Run, RunSettings


def make(folder: Path, name: str | None = None, target: str = "tic_tac_toe") -> Run:
    return Run.create(RunSettings(folder=str(folder), name=name), {"seed": 7}, target)


def test_create_saves_the_config_and_open_reads_it_back(tmp_path: Path) -> None:
    with make(tmp_path, "first") as run:
        assert run.folder == tmp_path / "first"
    assert Run.open("first", tmp_path).config == {"seed": 7}
    assert Run.open(tmp_path / "first", "elsewhere").config == {"seed": 7}


def test_the_default_name_tells_target_and_date(tmp_path: Path) -> None:
    with make(tmp_path, target="here/my_env.py:MyEnv") as run:
        assert run.name.startswith("my_env.py-MyEnv-2")
    with make(tmp_path, target="here/my_env.py:MyEnv") as other:
        assert other.name != run.name


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    with make(tmp_path, "first"), pytest.raises(ConfigError, match="exists: resume it with"):
        make(tmp_path, "first")


def test_open_without_a_name_finds_the_latest(tmp_path: Path) -> None:
    for name in ("b", "a"):
        make(tmp_path, name).close()
    os.utime(tmp_path / "b" / "config.yaml", ns=(0, 0))
    assert Run.open(None, tmp_path).name == "a"


def test_a_misspelt_run_gets_the_nearest_name(tmp_path: Path) -> None:
    make(tmp_path, "tic-1").close()
    with pytest.raises(LatihError, match=r"no run 'tik-1' in .*: did you mean 'tic-1'"):
        Run.open("tik-1", tmp_path)
    with pytest.raises(LatihError, match=r"there is no run in .*: start one with"):
        Run.open(None, tmp_path / "empty")


def test_a_damaged_config_is_one_line(tmp_path: Path) -> None:
    make(tmp_path, "r").close()
    (tmp_path / "r" / "config.yaml").write_text("a: [1\nb")
    with pytest.raises(LatihError, match=r"cannot read .*config\.yaml") as caught:
        Run.open("r", tmp_path)
    assert "\n" not in str(caught.value)


def _hold(folder: Path, ready: "multiprocessing.synchronize.Event", go: "multiprocessing.synchronize.Event") -> None:
    with Run.open("r", folder, write=True):
        ready.set()
        go.wait(30)


def test_two_processes_cannot_write_one_run(tmp_path: Path) -> None:
    make(tmp_path, "r").close()
    context = multiprocessing.get_context("fork")
    ready, go = context.Event(), context.Event()
    child = context.Process(target=_hold, args=(tmp_path, ready, go))
    child.start()
    try:
        assert ready.wait(30)
        Run.open("r", tmp_path)  # reading is allowed
        with pytest.raises(LatihError, match=f"is being written by process {child.pid}"):
            Run.open("r", tmp_path, write=True)
    finally:
        child.kill()
        child.join()
    with Run.open("r", tmp_path, write=True):  # the lock died with its holder
        pass


def test_a_file_system_without_locks_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(
        LatihError, match=r"cannot write the lock to .*r: No locks available; choose another run\.folder"
    ):
        make(tmp_path, "r")


def test_opening_to_write_clears_leftovers(tmp_path: Path) -> None:
    run = make(tmp_path, "r")
    run.checkpoints().save(1, lambda folder: (folder / "w").write_text("one") and None)
    run.trajectories_path(1)
    run.close()
    half = tmp_path / "r" / "checkpoints" / ".tmp-step-000002"
    half.mkdir()
    (half / "w").write_text("half")
    (tmp_path / "r" / "trajectories" / ".tmp-7").mkdir()
    (tmp_path / "r" / "trajectories" / ".tmp-7" / "step-000002.parquet").write_text("half")
    for place in ("pool", "evaluations/step-000001-before"):
        (tmp_path / "r" / place / ".tmp-8").mkdir(parents=True)
    with Run.open("r", tmp_path, write=True) as again:
        assert sorted(each.name for each in again.folder.rglob("*") if "tmp" in each.name) == []
        assert again.checkpoints().steps() == [1]


def test_cut_forgets_what_lies_past_the_step(tmp_path: Path) -> None:
    run = make(tmp_path, "r")
    run.metrics_path.write_text('{"step": 1, "a": 0.1}\n{"step": 2, "a": 0.2}\n{"step": 3, "a": 0.3}\n{"step": 3, "a')
    for step in (2, 3):
        run.trajectories_path(step).write_text("x")
        run.checkpoints().save(step, lambda folder: (folder / "w").write_text("x") and None)
    for name in ("step-000002-after-step-2", "step-000003-after-step-3", "by-hand"):
        (run.folder / "evaluations" / name).mkdir(parents=True)
        (run.folder / "evaluations" / name / "eval.json").write_text("{}")
    run.cut(2)
    assert sorted(each.name for each in (run.folder / "evaluations").iterdir()) == [
        "by-hand",
        "step-000002-after-step-2",
    ]
    assert run.metrics_path.read_text() == '{"step": 1, "a": 0.1}\n{"step": 2, "a": 0.2}\n'
    assert [each.name for each in (run.folder / "trajectories").iterdir()] == ["step-000002.parquet"]
    assert run.checkpoints().steps() == [2]


def test_metrics_survive_a_last_line_cut_short(tmp_path: Path) -> None:
    run = make(tmp_path, "r")
    run.metrics_path.write_text('{"step": 1, "a": 0.1}\n{"step": 2, "a"')
    assert run.metrics() == [{"step": 1, "a": 0.1}]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LatihError, match="cannot write a run to"):
        make(tmp_path / "file")
