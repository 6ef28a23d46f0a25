"""The curve of a run: reward and rates per training step, as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from latih.core.files import writing
from latih.evaluation import EvalResult

Rows = Sequence[Mapping[str, Any]]


def plot_run(rows: Rows, results: Sequence[EvalResult], path: Path, title: str = "") -> Path | None:
    """Draw reward.png; None where there is nothing to draw yet.

    Above: the mean reward of each step's episodes, and of the held-out ones where they were played. Below: the env's
    metrics that are rates. Raises LatihError where the picture cannot be written.
    """
    if not _series(rows, "reward"):
        return None
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    means = {name for result in results for name in result.means}
    known = dict.fromkeys(name for result in results for name in result.rates if name not in means)
    rates = [f"env/{name}" for name in known if _series(rows, f"env/{name}")]
    figure = Figure(figsize=(8, 6.5 if rates else 3.8), layout="constrained")
    axes = figure.subplots(2 if rates else 1, 1, sharex=True, squeeze=False)[:, 0]
    figure.suptitle(title)
    _line(axes[0], _series(rows, "reward"), "training episodes", color="tab:blue")
    if held_out := _series(rows, "eval/reward"):
        style = {"marker": "o", "linestyle": "--"}
        _line(axes[0], held_out, "held-out episodes", color="tab:orange", **style)
    axes[0].set_ylabel("mean reward of an episode")
    if rates:
        for name in rates:
            _line(axes[1], _series(rows, name), name.removeprefix("env/"))
        axes[1].set_ylabel("share of episodes")
        axes[1].set_ylim(-0.02, 1.02)
        axes[1].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    for each in axes:
        each.grid(alpha=0.3)
        each.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes[-1].set_xlabel("training step")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    with writing(path.name, path.parent):
        figure.savefig(path, dpi=120)
    return path


def _series(rows: Rows, name: str) -> list[tuple[int, float]]:
    return [(row["step"], row[name]) for row in rows if isinstance(row.get(name), int | float)]


def _line(axis: Any, series: list[tuple[int, float]], label: str, **style: Any) -> None:
    steps, values = zip(*series, strict=True)
    if len(steps) == 1:
        style.setdefault("marker", "o")
    axis.plot(steps, values, label=label, **style)
