"""Reading and cutting `metrics.jsonl`: one JSON object per line, each with its `step`."""

import json
from pathlib import Path
from typing import Any

from latih.core.files import writing
from latih.runs.files import write_text

Row = dict[str, Any]


def read_metrics(path: Path) -> list[Row]:
    """The rows of a metrics file, in order; a last line that a crash cut short is left out."""
    if not path.exists():
        return []
    rows: list[Row] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            rows.append(row)
    return rows


def cut_metrics(path: Path, step: int) -> int:
    """Drop the rows past `step`, and broken lines; how many rows went. Raises LatihError where it cannot write."""
    if not path.exists():
        return 0
    rows = read_metrics(path)
    kept = [row for row in rows if row["step"] <= step]
    with writing("metrics", path.parent):
        write_text(path, "".join(json.dumps(row) + "\n" for row in kept))
    return len(rows) - len(kept)
