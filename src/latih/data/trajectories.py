"""Trajectories in Parquet, one row each, without loss.

Tokens, logprobs, rewards and metrics are typed columns that pandas and DuckDB read as they are. Conversations and
tasks, whose shape is free, are JSON text.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latih.core import LatihError, Trajectory, first_line
from latih.core.files import whole_file, writing
from latih.data.to_json import to_json

if TYPE_CHECKING:  # pyarrow is imported where a file is touched: this room also serves who touches none
    import pyarrow as pa

VERSION = 1
KEY = b"latih.trajectories"
"""Of the file's metadata: the version of the schema."""


def write_trajectories(path: str | Path, trajectories: Iterable[Trajectory]) -> None:
    """Write a Parquet file, whole or not at all.

    Raises LatihError where it cannot be written or a value does not fit its column (token ids are 32-bit, seeds and
    versions 64-bit integers).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    try:
        table = pa.Table.from_pylist([_row(each) for each in trajectories], schema=_schema())
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as exc:
        raise LatihError(f"cannot write {path}: a value does not fit: {exc}") from exc
    with writing(path.name, path.parent), whole_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_trajectories(path: str | Path) -> list[Trajectory]:
    """What `write_trajectories` wrote, equal to it. Raises LatihError for any other file."""
    path = Path(path)
    table = read_parquet(path)
    version = (table.schema.metadata or {}).get(KEY)
    if version is None:
        raise LatihError(f"{path} holds no trajectories of latih: its metadata has no {KEY.decode()!r}")
    if int(version) > VERSION:
        raise LatihError(f"{path} was written by a newer latih (schema {int(version)}): upgrade to read it")
    return [_trajectory(row) for row in table.to_pylist(maps_as_pydicts="strict")]


def read_parquet(path: Path) -> "pa.Table":
    """The table of a Parquet file. Raises LatihError where it is missing or broken."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        raise LatihError(f"no such file: {path}") from None
    except (pa.ArrowException, OSError) as exc:
        raise LatihError(f"{path} is no readable Parquet file, or was cut short: {first_line(exc)}") from exc


def _schema() -> "pa.Schema":
    import pyarrow as pa

    turn = pa.struct(
        {
            "new_ids": pa.list_(pa.int32()),
            "ids": pa.list_(pa.int32()),
            "logprobs": pa.list_(pa.float64()),
            "full_logprobs": pa.list_(pa.float64()),
            "policy_version": pa.int64(),
            "stop_reason": pa.string(),
            "temperature": pa.float64(),
            "completion_id": pa.string(),
            "reward": pa.float64(),
        }
    )
    error = pa.struct({"kind": pa.string(), "message": pa.string(), "traceback": pa.string(), "hung": pa.bool_()})
    return pa.schema(
        {
            "env": pa.string(),
            "seed": pa.int64(),
            "index": pa.int64(),
            "group": pa.string(),
            "role": pa.string(),
            "task": pa.string(),  # JSON
            "sequences": pa.list_(pa.struct({"turns": pa.list_(turn), "messages": pa.string()})),  # messages: JSON
            "reward": pa.float64(),
            "metrics": pa.map_(pa.string(), pa.float64()),
            "stop_reason": pa.string(),
            "error": error,
        },
        metadata={KEY: str(VERSION)},
    )


def _row(trajectory: Trajectory) -> dict[str, Any]:
    row = trajectory.model_dump(exclude={"sequences"})
    if trajectory.task is not None:
        row["task"] = to_json(trajectory.task.model_dump())
    row["sequences"] = [
        {
            "turns": [turn.model_dump() for turn in each.turns],
            "messages": to_json([message.model_dump() for message in each.messages]),
        }
        for each in trajectory.sequences
    ]
    return row


def _trajectory(row: dict[str, Any]) -> Trajectory:
    row["task"] = row["task"] and json.loads(row["task"])
    for sequence in row["sequences"]:
        sequence["messages"] = json.loads(sequence["messages"])
    return Trajectory.model_validate(row)
