import errno
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from latih.core import ConfigError, LatihError
from latih.tracking import RunInfo, Tracker, TrackingSettings, loggers


def info(folder: Path, names: list[str], resumed: int | None = None, **more: object) -> RunInfo:
    return RunInfo(folder, TrackingSettings(loggers=names, **more), {"seed": 1}, resumed)


def test_jsonl_is_always_written_and_flushed(tmp_path: Path) -> None:
    with Tracker(info(tmp_path, []), pytest.fail) as tracker:
        tracker.log(1, {"reward": 0.5, "kl": float("nan")})
        tracker.log(2, {"reward": 1})
        lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"step": 1, "reward": 0.5, "kl": None},
        {"step": 2, "reward": 1.0},
    ]


def scalars(folder: Path, name: str = "reward") -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard" / name.rpartition("/")[0]))
    events.Reload()
    return [(each.step, each.value) for each in events.Scalars(name)]


def test_tensorboard_drops_what_a_resumed_run_makes_again(tmp_path: Path) -> None:
    with Tracker(info(tmp_path, ["tensorboard"]), pytest.fail) as tracker:
        for step in (1, 2, 3):
            tracker.log(step, {"reward": float(step)})
    assert scalars(tmp_path) == [(1, 1.0), (2, 2.0), (3, 3.0)]
    with Tracker(info(tmp_path, ["tensorboard"], resumed=1), pytest.fail) as tracker:
        tracker.log(2, {"reward": 20.0})
    assert scalars(tmp_path) == [(1, 1.0), (2, 20.0)]


def test_metrics_with_an_axis_of_their_own_are_drawn_over_it(tmp_path: Path) -> None:
    for resumed in (None, 0):
        with Tracker(info(tmp_path, ["tensorboard"], resumed=resumed), pytest.fail) as tracker:
            for step in (1, 2, 3) if resumed is None else ():
                tracker.log(0, {"warm/step": step, "warm/loss": step / 2}, axis="warm/step")
            tracker.log(1, {"reward": 1.0})
    assert scalars(tmp_path, "warm/loss") == [(1, 0.5), (2, 1.0), (3, 1.5)]  # and resuming cuts none of it
    assert scalars(tmp_path) == [(1, 1.0)]
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows[1] == {"step": 0, "warm/step": 2.0, "warm/loss": 1.0}


def test_wandb_is_told_over_what_each_metric_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    class Run:
        def __init__(self) -> None:
            self.axes: dict[str, str] = {}
            self.rows: list[dict[str, float]] = []

        def define_metric(self, name: str, step_metric: str) -> None:
            assert name not in self.axes
            self.axes[name] = step_metric

        def log(self, row: dict[str, float]) -> None:
            self.rows.append(row)

        def finish(self) -> None:
            pass

    run = Run()
    monkeypatch.setattr(wandb, "init", lambda **_: run)
    with Tracker(info(tmp_path, ["wandb"]), pytest.fail) as tracker:
        for step in (1, 2):
            tracker.log(0, {"warm/step": step, "warm/loss": 0.5}, axis="warm/step")
        tracker.log(1, {"reward": 1.0, "env/win": 0.0})
    assert run.axes == {"warm/loss": "warm/step", "reward": "step", "env/win": "step"}
    assert [row["step"] for row in run.rows] == [0, 0, 1]


def test_tensorboard_does_not_need_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from latih.tracking import *\n"
        "Tracker(RunInfo(Path(sys.argv[1]), TrackingSettings(loggers=['tensorboard'])), print).close()\n"
        "assert 'torch' not in sys.modules and 'wandb' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_wandb_offline_needs_no_account_and_leaves_no_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from latih.tracking import *\n"
        "t = Tracker(RunInfo(Path(sys.argv[1]), TrackingSettings(loggers=['jsonl', 'wandb'])), print)\n"
        "t.log(1, {'reward': 0.5}); t.close()\n"
        "print(Path('/proc/self/task').joinpath(str(__import__('os').getpid()), 'children').read_text())"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    environ["HOME"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    children = done.stdout.split()  # wandb ends its service when Python exits
    assert [pid for pid in children if Path("/proc", pid).exists()] == []


def test_wandb_is_online_only_where_a_key_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from latih.tracking.writers.wandb import _mode

    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    assert _mode("auto") == "offline"
    monkeypatch.setenv("WANDB_API_KEY", "k")
    assert _mode("auto") == "online"
    assert _mode("offline") == "offline"
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert _mode("auto") == "disabled"


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "tensorboard.compat.proto"), ("wandb", "wandb")])
def test_a_missing_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"pip install -c constraints\.txt '\.\[{name}\]' in latih's clone"):
        Tracker(info(tmp_path, [name]), pytest.fail)


def test_an_unknown_logger_gets_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown logger 'tensorbord': did you mean 'tensorboard'"):
        Tracker(info(tmp_path, ["tensorbord"]), pytest.fail)


class Failing:
    """Fails at the second step, and in closing."""

    def __init__(self, _: RunInfo) -> None:
        self.seen: list[int] = []

    def log(self, step: int, metrics: Mapping[str, float], axis: str | None = None) -> None:
        if step == 2:
            raise RuntimeError("server gone\nsecond line")
        self.seen.append(step)

    def close(self) -> None:
        raise RuntimeError("still gone")


def test_a_failing_logger_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    if "failing" not in loggers:
        loggers.register("failing")(Failing)
    said: list[str] = []
    with Tracker(info(tmp_path, ["failing"]), said.append) as tracker:
        for step in (1, 2, 3):
            tracker.log(step, {"reward": 0.0})
    assert said == [
        "logger 'failing' failed and gets no more metrics: RuntimeError: server gone",
        "logger 'failing' failed in closing: RuntimeError: still gone",
    ]
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_metrics_that_cannot_be_written_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    tracker = Tracker(info(tmp_path, []), lambda _: None)
    with pytest.raises(LatihError, match=r"cannot write metrics.jsonl at step 1: the disk is full"):
        tracker.log(1, {"reward": 0.0})
    tracker.close()


def test_a_quota_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = Tracker(info(tmp_path, []), lambda _: None)

    def log(*_: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(tracker._loggers["jsonl"], "log", log)
    with pytest.raises(LatihError, match=r"cannot write metrics.jsonl at step 1: the disk is full: free some space"):
        tracker.log(1, {"reward": 0.0})
    tracker.close()
