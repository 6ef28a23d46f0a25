import json
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latih.core import LatihError, Message, Sequence, StopReason, Task, ToolCall, Trajectory, Turn
from latih.data import read_trajectories, write_trajectories
from tests.data.strategies import trajectories
from tests.soak import examples

EXAMPLE = Trajectory(
    env="tic_tac_toe",
    seed=2**62 + 1,
    task=Task(id="7", prompt="2 + 3", answer=5, level="easy"),
    sequences=[
        Sequence(
            turns=[
                Turn(new_ids=[1, 2], ids=[3, 4], logprobs=[-0.1, -1 / 3], policy_version=2, stop_reason=StopReason.STOP)
            ],
            messages=[Message(role="user", content="hi"), Message(role="assistant", content="5")],
        )
    ],
    reward=0.1 + 0.2,
    metrics={"win": 1.0, "moves": 4.0},
)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(trajectories, max_size=3))
def test_json_and_parquet_round_trips_lose_nothing(records: list[Trajectory]) -> None:
    assert [Trajectory.model_validate_json(each.model_dump_json()) for each in records] == records
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.parquet"
        write_trajectories(path, records)
        back = read_trajectories(path)
        assert back == records
        assert [each.model_dump_json() for each in back] == [each.model_dump_json() for each in records]
        assert [each.name for each in Path(folder).iterdir()] == ["some.parquet"]


def test_columns_are_typed_for_other_readers(tmp_path: Path) -> None:
    write_trajectories(tmp_path / "a.parquet", [EXAMPLE])
    table = pq.read_table(tmp_path / "a.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert types["seed"] == "int64"
    assert types["reward"] == "double"
    assert types["metrics"].startswith("map<string, double")
    turn = table.schema.field("sequences").type.value_type.field("turns").type.value_type
    assert str(turn.field("ids").type.value_type) == "int32"
    assert str(turn.field("logprobs").type.value_type) == "double"
    row = table.to_pylist()[0]
    assert row["sequences"][0]["turns"][0]["logprobs"] == [-0.1, -1 / 3]
    assert json.loads(row["task"]) == {"id": "7", "prompt": "2 + 3", "answer": 5, "level": "easy"}


def test_hostile_tool_arguments_survive(tmp_path: Path) -> None:
    arguments = {"x": float("inf"), "y": "\ud800", "z": 10**400}
    call = Message(role="assistant", tool_calls=[ToolCall(name="f", arguments=arguments)])
    record = EXAMPLE.model_copy(update={"sequences": [Sequence(messages=[call])]})
    write_trajectories(tmp_path / "a.parquet", [record])
    assert read_trajectories(tmp_path / "a.parquet") == [record]


def test_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    write_trajectories(path, [EXAMPLE])

    def full_disk(table: object, where: Path, **options: object) -> None:
        Path(where).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full_disk)
    with pytest.raises(LatihError, match=r"the disk is full: cannot write a\.parquet"):
        write_trajectories(path, [])
    assert read_trajectories(path) == [EXAMPLE]
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]


def test_value_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LatihError, match="does not fit"):
        write_trajectories(tmp_path / "a.parquet", [EXAMPLE.model_copy(update={"seed": 2**63})])


def test_broken_files_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(LatihError, match="no such file"):
        read_trajectories(path)
    write_trajectories(path, [EXAMPLE])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(LatihError, match="cut short") as caught:
        read_trajectories(path)
    assert "\n" not in str(caught.value)


def test_other_or_newer_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_trajectories(path, [EXAMPLE])
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(LatihError, match="holds no trajectories"):
        read_trajectories(path)
    pq.write_table(table.replace_schema_metadata({b"latih.trajectories": b"2"}), path)
    with pytest.raises(LatihError, match="newer latih"):
        read_trajectories(path)
