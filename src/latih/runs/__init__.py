"""Runs: the folder of a training, its checkpoints, and what survives a crash."""

from latih.runs.checkpoints import Checkpoints, read_marker, step_name
from latih.runs.interrupt import deferred_interrupt
from latih.runs.run import Run, find_run
from latih.runs.settings import RunSettings

__all__ = [
    "Checkpoints",
    "Run",
    "RunSettings",
    "deferred_interrupt",
    "find_run",
    "read_marker",
    "step_name",
]
