"""Checkpoints: folders that are whole or do not count, and the rule which of them stay."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from latih.core import nearest
from latih.core.files import TEMPORARY, fsync, writing
from latih.runs.files import fsync_tree, sweep, write_text
from latih.runs.interrupt import deferred_interrupt
from latih.runs.metrics import read_metrics

MARKER = "complete.json"
"""Written last: the step, the size of every file, and what the writer wants to be known without loading."""


def step_name(step: int) -> str:
    """The name of what belongs to a step.

    >>> step_name(12)
    'step-000012'
    """
    return f"step-{step:06d}"


def read_marker(folder: Path) -> dict[str, Any] | None:
    """The marker of a whole checkpoint; None where the folder is half-written or a file of it was cut short."""
    try:
        marker: dict[str, Any] = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        whole = all((folder / name).stat().st_size == size for name, size in marker["files"].items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return marker if whole else None


class Checkpoints:
    """The checkpoints of one run: `<folder>/step-000012/` with whatever its writer put there.

    `retain` keeps the latest `keep` and, besides, the one whose step has the highest value of the metric `best` in the
    run's metrics file; `best=None` keeps only the latest.
    """

    def __init__(self, folder: Path, metrics: Path, keep: int = 2, best: str | None = "reward") -> None:
        if keep < 1:
            raise ValueError(f"keep is {keep}, but at least the last checkpoint stays")
        self.folder = folder
        self.keep = keep
        self.best = best
        self._metrics = metrics

    def path(self, step: int) -> Path:
        """The folder of a step's checkpoint, which may not exist."""
        return self.folder / step_name(step)

    def steps(self) -> list[int]:
        """The steps of the whole checkpoints, rising."""
        if not self.folder.is_dir():
            return []
        found = (each for each in self.folder.glob("step-*") if each.name[5:].isdecimal())
        return sorted(int(each.name[5:]) for each in found if read_marker(each) is not None)

    def last(self) -> Path | None:
        """The newest whole checkpoint, if there is one."""
        steps = self.steps()
        return self.path(steps[-1]) if steps else None

    def save(self, step: int, write: Callable[[Path], None], info: dict[str, Any] | None = None) -> Path:
        """Make a checkpoint whole or not at all: `write` fills a temporary folder, which is renamed at the end.

        A Ctrl-C meanwhile is delivered afterwards. `info` goes into the marker. Raises LatihError where the disk is
        full or may not be written; the earlier checkpoints stay as they are.
        """
        target = self.path(step)
        temporary = target.with_name(TEMPORARY + target.name)
        old = target.with_name(TEMPORARY + "old-" + target.name)
        last = self.last()
        kept = f"{last.name} is whole and stays, to resume from" if last else ""
        with deferred_interrupt(), writing(f"checkpoint {target.name}", self.folder, kept):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir()
                write(temporary)
                sizes = {
                    str(each.relative_to(temporary)): each.stat().st_size
                    for each in sorted(temporary.rglob("*"))
                    if each.is_file()
                }
                fsync_tree(temporary)
                write_text(temporary / MARKER, json.dumps({"step": step, "files": sizes, "info": info or {}}, indent=1))
                if target.exists():
                    shutil.rmtree(old, ignore_errors=True)
                    target.rename(old)
                temporary.rename(target)
                fsync(self.folder)
                shutil.rmtree(old, ignore_errors=True)
            except Exception:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
        return target

    def retain(self, say: Callable[[str], None]) -> list[int]:
        """Delete all but the latest `keep` and the best; the steps deleted. Each deletion is said with its reason.

        Where a best one is wanted and no checkpoint's row in metrics.jsonl has the metric, nothing can be ranked:
        nothing is deleted, and that is said.
        """
        steps = self.steps()
        kept = set(steps[-self.keep :])
        if len(kept) == len(steps):
            return []
        why = f"not among the latest {self.keep}"
        if self.best is not None:
            values = self._values(self.best, steps)
            if not values:
                names = {name for row in read_metrics(self._metrics) for name in row} - {"step"}
                say(
                    f"all {len(steps)} checkpoints stay: metric {self.best!r} is in no row of "
                    f"{self._metrics.name} ({nearest(self.best, names)})"
                )
                return []
            best = max(values, key=lambda step: (values[step], step))
            kept.add(best)
            why += f", and {self.best} was best at step {best} ({values[best]:.4g})"
        gone = [step for step in steps if step not in kept]
        for step in gone:
            self.delete(step)
            say(f"deleted checkpoint {step_name(step)}: {why}")
        return gone

    def delete(self, step: int) -> None:
        """Remove a checkpoint. It stops being whole at once, however long the removal takes."""
        rubbish = self.folder / f"{TEMPORARY}gone-{step_name(step)}"
        with writing("checkpoints", self.folder):
            shutil.rmtree(rubbish, ignore_errors=True)
            self.path(step).rename(rubbish)
        shutil.rmtree(rubbish, ignore_errors=True)

    def sweep(self) -> None:
        """Clear what a killed process left: temporary folders, after putting back a checkpoint it was replacing."""
        for old in self.folder.glob(f"{TEMPORARY}old-step-*"):
            target = self.folder / old.name.removeprefix(f"{TEMPORARY}old-")
            if not target.exists() and read_marker(old) is not None:
                old.rename(target)
        sweep(self.folder)

    def _values(self, metric: str, steps: list[int]) -> dict[int, float]:
        wanted = set(steps)
        values: dict[int, float] = {}
        for row in read_metrics(self._metrics):
            value = row.get(metric)
            if row["step"] in wanted and isinstance(value, int | float) and math.isfinite(value):
                values[row["step"]] = float(value)
        return values
