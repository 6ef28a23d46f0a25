from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import LatihError, Message, Task
from latih.data import read_tasks, write_tasks
from tests.data.strategies import tasks


def test_jsonl_keeps_extra_columns_and_numbers_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"prompt": "2+2", "answer": 4, "level": 1}\n\n{"id": 9, "prompt": "a\u2028b"}\n')
    assert read_tasks(path) == [
        Task(id="0", prompt="2+2", answer=4, level=1),
        Task(id="9", prompt="a\u2028b"),
    ]


def test_an_array_of_json(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"prompt": "2+2", "solution": {"A": "4"}}, {"prompt": "3+3", "id": "x"}]')
    assert read_tasks(path) == [Task(id="0", prompt="2+2", solution={"A": "4"}), Task(id="x", prompt="3+3")]
    for text, message in (("{}", "one array of objects, not dict"), ("[", "is no JSON"), ("[1]", "row 0: a task is")):
        path.write_text(text)
        with pytest.raises(LatihError, match=message):
            read_tasks(path)


def test_parquet_with_chat_prompts(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows = [
        {"prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2", "name": "a"}]},
        {"prompt": [{"role": "user", "content": "3+3"}]},
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    first, second = read_tasks(path)
    assert first.prompt == [Message(role="system", content="Be brief."), Message(role="user", content="2+2", name="a")]
    assert second == Task(id="1", prompt=[Message(role="user", content="3+3")])


@settings(deadline=None)
@given(st.lists(tasks, max_size=3))
def test_written_tasks_are_read_back(tmp_path_factory: pytest.TempPathFactory, records: list[Task]) -> None:
    path = tmp_path_factory.mktemp("tasks") / "t.jsonl"
    write_tasks(path, records)
    assert read_tasks(path) == records


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"promt": "2+2"}', "line 1 has no 'prompt': did you mean 'promt'?"),
        ('{"prompt": "a"}\n{"prompt": ', "line 2 is no JSON"),
        ("[1]", "a task is a JSON object, not list"),
        ('{"prompt": 5}', "line 1: prompt"),
        ('{"prompt": [{"role": "boss"}]}', "line 1: prompt"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(LatihError) as caught:
        read_tasks(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(LatihError, match="no such file"):
        read_tasks(tmp_path / "t.jsonl")
    with pytest.raises(LatihError, match=r"neither \.parquet nor \.jsonl nor \.json"):
        read_tasks(tmp_path / "t.csv")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(LatihError, match="no readable Parquet"):
        read_tasks(tmp_path / "t.parquet")
    (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(LatihError, match="cannot read"):
        read_tasks(tmp_path / "b.jsonl")


def test_required_columns_can_be_others(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist([{"side": "x"}]), path)
    with pytest.raises(LatihError, match="has no 'prompt': known: side"):
        read_tasks(path)
    assert read_tasks(path, columns=["side"]) == [Task(id="0", side="x")]


@pytest.mark.parametrize("name", ["deep.jsonl", "deep.json"])
def test_json_too_deep_to_read_is_told_in_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("[" * 100_000)
    with pytest.raises(LatihError, match=f"{name}.* is no JSON"):
        read_tasks(tmp_path / name)


def test_a_row_whose_id_is_null_gets_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": "a", "id": null}\n{"prompt": "b", "id": null}\n{"prompt": "c", "id": 0}\n')
    assert [task.id for task in read_tasks(path)] == ["0", "1", "0"]
