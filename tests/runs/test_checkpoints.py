import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from latih.core import LatihError
from latih.runs import Checkpoints


def checkpoints(folder: Path, **settings: Any) -> Checkpoints:
    return Checkpoints(folder / "checkpoints", folder / "metrics.jsonl", **settings)


def writer(text: str = "weights") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "sub").mkdir()
        (folder / "sub" / "weights").write_text(text)

    return write


def broken(exc: Exception) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise exc

    return write


def test_saved_whole_with_a_marker(tmp_path: Path) -> None:
    made = checkpoints(tmp_path).save(12, writer(), {"model": "tiny"})
    assert made == tmp_path / "checkpoints" / "step-000012"
    marker = json.loads((made / "complete.json").read_text())
    assert marker == {"step": 12, "files": {"sub/weights": 7}, "info": {"model": "tiny"}}
    assert checkpoints(tmp_path).last() == made


def test_half_written_folders_do_not_count(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path)
    assert kept.last() is None
    kept.save(1, writer())
    kept.save(2, writer())
    (kept.path(2) / "sub" / "weights").write_text("cut")  # shorter than its marker says
    kept.path(3).mkdir()
    (kept.path(3) / "weights").write_text("no marker")
    (kept.path(4)).mkdir()
    (kept.path(4) / "complete.json").write_text('{"step": 4, "fi')
    assert kept.steps() == [1]
    assert kept.last() == kept.path(1)


@pytest.mark.parametrize(
    "exc",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("I/O error: No space left on device (os error 28)"),  # how safetensors says it
    ],
)
def test_a_full_disk_is_one_line_and_the_earlier_checkpoint_stays(tmp_path: Path, exc: Exception) -> None:
    kept = checkpoints(tmp_path)
    kept.save(1, writer())
    with pytest.raises(
        LatihError, match=r"disk is full: cannot write checkpoint step-000002 to .*; step-000001 is whole and stays"
    ) as caught:
        kept.save(2, broken(exc))
    assert "\n" not in str(caught.value)
    assert [each.name for each in kept.folder.iterdir()] == ["step-000001"]


def test_a_full_disk_at_the_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = checkpoints(tmp_path)
    kept.save(1, writer())

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LatihError, match="the disk is full"):
        kept.save(2, writer())
    assert kept.steps() == [1]


def test_a_bug_in_the_writer_is_not_dressed_up(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        checkpoints(tmp_path).save(1, broken(ZeroDivisionError("bug")))
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path)
    kept.save(1, writer("old"))
    kept.save(1, writer("new!"))
    assert (kept.path(1) / "sub" / "weights").read_text() == "new!"
    assert [each.name for each in kept.folder.iterdir()] == ["step-000001"]


def test_sweep_puts_back_a_checkpoint_that_was_being_replaced(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path)
    kept.save(1, writer("old"))
    kept.path(1).rename(kept.folder / ".tmp-old-step-000001")  # killed between the two renames
    (kept.folder / ".tmp-step-000001").mkdir()
    kept.sweep()
    assert kept.steps() == [1]
    assert [each.name for each in kept.folder.iterdir()] == ["step-000001"]


def metrics(folder: Path, rewards: dict[int, float | None]) -> None:
    rows = [{"step": step, **({} if reward is None else {"reward": reward})} for step, reward in rewards.items()]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_retention_keeps_the_latest_and_the_best_and_says_what_goes(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path, keep=2)
    for step in range(1, 6):
        kept.save(step, writer())
    metrics(tmp_path, {1: 0.1, 2: 0.9, 3: 0.2, 4: None, 5: 0.5})
    said: list[str] = []
    assert kept.retain(said.append) == [1, 3]
    assert kept.steps() == [2, 4, 5]
    assert said == [
        "deleted checkpoint step-000001: not among the latest 2, and reward was best at step 2 (0.9)",
        "deleted checkpoint step-000003: not among the latest 2, and reward was best at step 2 (0.9)",
    ]
    assert kept.retain(said.append) == []


def test_retention_deletes_nothing_where_the_metric_was_never_written(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path, keep=1, best="rewards")
    for step in (1, 2):
        kept.save(step, writer())
    metrics(tmp_path, {1: 0.1, 2: 0.9})
    said: list[str] = []
    assert kept.retain(said.append) == []
    assert said == ["all 2 checkpoints stay: metric 'rewards' is in no row of metrics.jsonl (did you mean 'reward'?)"]
    assert checkpoints(tmp_path, keep=1, best=None).retain(said.append) == [1]


def test_the_only_checkpoint_stays(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path, keep=1)
    kept.save(1, writer())
    assert kept.retain(lambda _: None) == []
    assert kept.last() == kept.path(1)


def test_ctrl_c_waits_for_the_write(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path)

    def write(folder: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        (folder / "weights").write_text("whole")

    with pytest.raises(KeyboardInterrupt):
        kept.save(1, write)
    assert kept.steps() == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


KILLED = """
import os, signal, sys
from pathlib import Path
from latih.runs import Checkpoints
kept = Checkpoints(Path(sys.argv[1]) / "checkpoints", Path(sys.argv[1]) / "metrics.jsonl")
kept.save(1, lambda folder: (folder / "w").write_text("one") and None)
def write(folder):
    (folder / "w").write_text("two")
    os.kill(os.getpid(), signal.SIGKILL)
kept.save(2, write)
"""


def test_killed_in_the_middle_of_a_save(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    kept = checkpoints(tmp_path)
    assert kept.steps() == [1]
    assert len(list(kept.folder.iterdir())) == 2
    kept.sweep()
    assert [each.name for each in kept.folder.iterdir()] == ["step-000001"]
