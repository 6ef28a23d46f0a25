"""Metrics as lines of JSON in the run folder: `{"step": 3, "reward": 0.5, …}`."""

import json
import math
from collections.abc import Mapping

from latih.tracking.logger import RunInfo, loggers


@loggers.register("jsonl")
class JsonlLogger:
    """Appends to `metrics.jsonl`. Each line is written whole and flushed; a number that is not finite becomes null."""

    def __init__(self, info: RunInfo) -> None:
        self._file = (info.folder / "metrics.jsonl").open("a", encoding="utf-8")

    def log(self, step: int, metrics: Mapping[str, float], axis: str | None = None) -> None:
        """Raises OSError, for instance where the disk is full."""
        row = {name: float(value) if math.isfinite(value) else None for name, value in metrics.items()}
        self._file.write(json.dumps({"step": step, **row}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
