"""What the screen shows of a training step: which metrics, under which names, in which form."""

import math
from collections.abc import Callable, Iterator, Mapping

Cell = tuple[str, str]
"""A label and its text."""


def _fixed(digits: int) -> Callable[[float], str]:
    return lambda value: f"{value:.{digits}f}"


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _exponent(value: float) -> str:
    return f"{value:.1e}"


_POLICY: list[tuple[str, str, Callable[[float], str]]] = [
    ("groups_mixed", "mixed", _percent),
    ("entropy", "entropy", _fixed(3)),
    ("sampler_kl", "kl", _exponent),
    ("clip_fraction", "clip", lambda value: f"{value:.1%}"),
    ("grad_norm", "grad", _fixed(2)),
    ("sampled_tokens_per_second", "sample/s", _fixed(0)),
    ("computed_tokens_per_second", "learn/s", _fixed(0)),
    ("seconds/step", "time", lambda value: duration(value)),
]
"""The metric, its label, its form. docs/metrics.md explains each."""


def duration(seconds: float) -> str:
    """Seconds as a clock shows them.

    >>> duration(31.4), duration(75), duration(3700)
    ('31s', '1:15', '1:01:40')
    """
    if not math.isfinite(seconds):
        return "?"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def shares(metrics: Mapping[str, float]) -> str:
    """Where a step's time went: percent for rollouts, for learning, and for all else.

    >>> shares({"seconds/step": 10.0, "seconds/rollout": 6.1, "seconds/train": 3.3})
    '61/33/6'
    """
    total = metrics.get("seconds/step", 0.0)
    if total <= 0:
        return ""
    rollout = round(100 * metrics.get("seconds/rollout", 0.0) / total)
    learn = round(100 * metrics.get("seconds/train", 0.0) / total)
    return f"{rollout}/{learn}/{max(0, 100 - rollout - learn)}"


def step_cells(step: int, steps: int, metrics: Mapping[str, float]) -> Iterator[Cell]:
    """The cells of a step's row; a metric that the step does not have is a dash, so that the columns stay."""
    yield "step", f"{step}/{steps}"
    yield "reward", _text(metrics.get("reward"), lambda value: f"{value:+.3f}")
    for name in metrics:
        if name.startswith("env/"):
            yield name.removeprefix("env/"), _text(metrics[name], _fixed(2))
    for name, label, form in _POLICY:
        yield label, _text(metrics.get(name), form)
    yield "play/learn/rest", shares(metrics) or "-"


def _text(value: float | None, form: Callable[[float], str]) -> str:
    return "-" if value is None or not math.isfinite(value) else form(value)
