import io

import pytest
from rich.console import Console

from latih.cli.columns import step_cells
from latih.cli.screen import Pace, Screen
from latih.tracking import Events, named_progress

METRICS = {
    "reward": 0.25,
    "env/win": 0.5,
    "env/invalid": 0.02,
    "groups_mixed": 0.9375,
    "entropy": 0.9,
    "sampler_kl": 1.2e-4,
    "clip_fraction": 0.021,
    "grad_norm": 0.834,
    "sampled_tokens_per_second": 512.4,
    "computed_tokens_per_second": 640.0,
    "seconds/step": 31.0,
    "seconds/rollout": 19.0,
    "seconds/train": 10.3,
}


def test_cells_by_hand() -> None:
    assert dict(step_cells(3, 20, METRICS)) == {
        "step": "3/20",
        "reward": "+0.250",
        "win": "0.50",
        "invalid": "0.02",
        "mixed": "94%",
        "entropy": "0.900",
        "kl": "1.2e-04",
        "clip": "2.1%",
        "grad": "0.83",
        "sample/s": "512",
        "learn/s": "640",
        "time": "31s",
        "play/learn/rest": "61/33/6",
    }
    missing = dict(step_cells(3, 20, {"reward": float("nan")}))
    assert (missing["reward"], missing["grad"], missing["play/learn/rest"]) == ("-", "-", "-")


def plain(width: int = 200) -> tuple[Screen, io.StringIO]:
    out = io.StringIO()
    return Screen(Console(file=out, width=width, highlight=False)), out


def test_a_plain_stream_names_a_part_of_unknown_length() -> None:
    screen, out = plain()
    with screen, screen.progress("downloading some/model", 0):
        assert out.getvalue() == "downloading some/model …\n"


def test_plain_lines_off_a_terminal() -> None:
    screen, out = plain(width=40)
    watcher: Events = screen
    with screen:
        with watcher.progress("warm start", 2) as advance:
            advance(2)
        watcher.step(1, 20, METRICS)
        watcher.step(2, 20, METRICS)
        watcher.warn("odd \x1b[31m")
    lines = out.getvalue().splitlines()
    assert "\x1b" not in out.getvalue()
    assert len(lines) == 4  # a header, two rows, a warning; nothing of what took no time
    assert lines[0].split() == [label for label, _ in step_cells(1, 20, METRICS)]
    assert len(lines[0]) == len(lines[1]) == len(lines[2])
    assert lines[3] == r"warning: odd \x1b[31m"


def test_slow_parts_speak_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(Pace.__init__, "__defaults__", (lambda: now[0], 0.0))
    screen, out = plain()
    with screen.progress("playing", 4) as advance:
        for _ in range(4):
            now[0] += 10.0
            advance(1)
    assert out.getvalue().splitlines() == ["playing: 2/4 in 20s, 20s left", "playing: 4 done in 40s"]


def test_time_left_counts_down_between_pieces() -> None:
    now = [100.0]
    pace = Pace(4, clock=lambda: now[0])
    assert pace.left is None
    now[0] = 110.0
    pace.advance(1)
    assert pace.left == 30.0
    now[0] = 114.0
    assert pace.left == 26.0
    now[0] = 200.0
    assert pace.left == 0.0
    late = Pace(19, clock=lambda: now[0], elapsed=30.0)
    late.advance(1)
    assert late.left == 18 * 30.0


def test_bars_on_a_terminal() -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=80, force_terminal=True, highlight=False))
    with screen, screen.progress("evaluating", 200) as advance:
        advance(50)
        screen.step(1, 20, METRICS)
    shown = out.getvalue()
    assert "evaluating" in shown
    assert "200" in shown
    assert "sample/s" in shown
    assert "training" in shown
    assert shown.rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in shown[-80:]  # the cursor is back


def test_named_progress_opens_a_part_per_name() -> None:
    seen: list[str] = []

    class Watcher(Screen):
        def progress(self, what: str, total: int):  # type: ignore[no-untyped-def]
            seen.append(f"{what}/{total}")
            return super().progress(what, total)

    with named_progress(Watcher(Console(file=io.StringIO()))) as told:
        told("download", 1, 10)
        told("download", 10, 10)
        told("convert", 0, 3)
        told("convert", 3, 3)
    assert seen == ["download/10", "convert/3"]
