"""Tasks from Parquet, JSON lines or a JSON array: one row each, extra columns kept."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from latih.core import LatihError, Task, nearest
from latih.core.files import whole_file, writing
from latih.data.sources import find_files
from latih.data.to_json import to_json


def read_tasks(
    source: str | Path, columns: Sequence[str] = ("prompt",), names: Mapping[str, str] | None = None
) -> list[Task]:
    """The tasks of the files that `source` names (see `find_files`). A row without an `id` gets its number, from 0.

    `names` maps our name of a column to the files' own. Raises LatihError where a file is missing or broken, or a row
    lacks one of `columns` (name others where the env takes its arguments from them).
    """
    rows = [row for path in find_files(source) for row in _read(path, names or {}, columns)]
    return [_task(where, number, row, columns) for number, (where, row) in enumerate(rows)]


def _read(path: Path, names: Mapping[str, str], columns: Sequence[str]) -> list[tuple[str, Any]]:
    """The rows of a file, each with its place in words."""
    if path.suffix != ".parquet":
        found = _read_array(path) if path.suffix == ".json" else _read_lines(path)
        return [(f"{path}, {where}", _renamed(f"{path}, {where}", row, names)) for where, row in found]
    from latih.data.trajectories import read_parquet

    table = read_parquet(path)
    for column in columns:
        if names.get(column, column) not in table.column_names:
            raise LatihError(_missing(str(path), names.get(column, column), table.column_names))
    rows = ((f"{path}, row {number}", _without_nulls(row)) for number, row in enumerate(table.to_pylist()))
    return [(where, _renamed(where, row, names)) for where, row in rows]


def _renamed(where: str, row: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(row, dict) or not names:
        return row
    for theirs in names.values():
        if theirs not in row:
            raise LatihError(_missing(where, theirs, list(row)))
    kept = {key: value for key, value in row.items() if key not in names.values()}
    return kept | {ours: row[theirs] for ours, theirs in names.items()}


def write_tasks(path: str | Path, tasks: Iterable[Task]) -> None:
    """Write a `.parquet`, or JSON lines, whole or not at all. Raises LatihError."""
    path = Path(path)
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pa.Table.from_pylist([to_jsonable_python(task.model_dump()) for task in tasks])
        except pa.ArrowException as exc:
            raise LatihError(f"cannot write {path}: columns of mixed types ({exc}); write .jsonl") from exc
        with writing(path.name, path.parent), whole_file(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        return
    with writing(path.name, path.parent), whole_file(path) as temporary:
        temporary.write_text("".join(to_json(task.model_dump()) + "\n" for task in tasks), encoding="utf-8")


def _read_lines(path: Path) -> list[tuple[str, Any]]:
    # Not splitlines: it would also split at U+2028 and the like, which JSON strings may hold.
    lines = _text(path).split("\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append((f"line {number}", json.loads(line)))
            except (ValueError, RecursionError) as exc:
                raise LatihError(f"{path}, line {number} is no JSON: {exc}") from exc
    return rows


def _read_array(path: Path) -> list[tuple[str, Any]]:
    try:
        rows = json.loads(_text(path))
    except (ValueError, RecursionError) as exc:
        raise LatihError(f"{path} is no JSON: {exc}") from exc
    if not isinstance(rows, list):
        raise LatihError(f"{path}: tasks in .json are one array of objects, not {type(rows).__name__}")
    return [(f"row {number}", row) for number, row in enumerate(rows)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LatihError(f"no such file: {path}") from None
    except (OSError, UnicodeDecodeError) as exc:
        raise LatihError(f"cannot read {path}: {exc}") from exc


def _task(where: str, number: int, row: Any, columns: Sequence[str]) -> Task:
    if not isinstance(row, dict):
        raise LatihError(f"{where}: a task is a JSON object, not {type(row).__name__}")
    for column in columns:
        if row.get(column) is None:
            raise LatihError(_missing(where, column, list(row)))
    row["id"] = str(number if row.get("id") is None else row["id"])
    try:
        return Task.model_validate(row)
    except ValidationError as exc:
        first = exc.errors()[0]
        raise LatihError(f"{where}: {'.'.join(str(each) for each in first['loc'])}: {first['msg']}") from exc


def _missing(where: str, column: str, there: list[str]) -> str:
    return f"{where} has no {column!r}: {nearest(column, there)}"


def _without_nulls(value: Any) -> Any:
    """A row as it was: Parquet fills what a nested record lacks with nulls, which no record of ours has to mean."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
