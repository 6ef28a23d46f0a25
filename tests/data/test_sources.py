import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from latih.core import LatihError, Task
from latih.data import read_tasks
from latih.data.sources import find_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "train-1.jsonl").write_text('{"prompt": "c"}\n')
    pq.write_table(pa.Table.from_pylist([{"prompt": "a"}, {"prompt": "b"}]), tmp_path / "train-0.parquet")
    (tmp_path / "test.jsonl").write_text('{"prompt": "d"}\n')
    return tmp_path


def test_files_folders_and_patterns(folder: Path) -> None:
    assert [each.name for each in find_files(folder)] == ["test.jsonl", "train-0.parquet", "train-1.jsonl"]
    assert find_files(folder / "test.jsonl") == [folder / "test.jsonl"]
    assert [each.name for each in find_files(f"{folder}/train-*.jsonl")] == ["train-1.jsonl"]
    odd = folder / "a[1].jsonl"
    odd.write_text("")
    assert find_files(odd) == [odd]


def test_rows_of_several_files_are_numbered_on(folder: Path) -> None:
    (folder / "test.jsonl").unlink()
    assert read_tasks(folder) == [Task(id="0", prompt="a"), Task(id="1", prompt="b"), Task(id="2", prompt="c")]


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_columns_may_have_other_names(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist([{"problem": "2+2", "answer": "4"}]), path)
    else:
        path.write_text('{"problem": "2+2", "answer": "4"}')
    assert read_tasks(path, ["question"], {"question": "problem"}) == [Task(id="0", question="2+2", answer="4")]
    with pytest.raises(LatihError, match="has no 'problme': did you mean 'problem'"):
        read_tasks(path, ["question"], {"question": "problme"})


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LatihError, match=r"holds no \.parquet, \.jsonl or \.json file"):
        find_files(tmp_path)
    with pytest.raises(LatihError, match=r"no file matches .*x-\*\.jsonl"):
        find_files(tmp_path / "x-*.jsonl")
    with pytest.raises(LatihError, match="nor a folder"):
        find_files(tmp_path / "absent")
    with pytest.raises(LatihError, match="write hf://datasets/OWNER/NAME/FILE"):
        find_files("hf://openai/gsm8k")


def test_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def snapshot_download(name: str, **more: object) -> str:
        asked.append((name, more))
        if name == "no/such":
            raise OSError("404 Client Error\nmore")
        return str(folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    assert find_files("hf://datasets/openai/gsm8k@main/train-*.parquet") == [folder / "train-0.parquet"]
    patterns = ["train-*.parquet", "train-*.parquet/*"]
    assert asked == [("openai/gsm8k", {"repo_type": "dataset", "revision": "main", "allow_patterns": patterns})]
    assert len(find_files("hf://datasets/openai/gsm8k")) == 3
    with pytest.raises(LatihError, match="cannot fetch hf://datasets/no/such from the Hugging Face hub: 404 Client"):
        find_files("hf://datasets/no/such")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(LatihError, match=r"pip install -c constraints\.txt '\.\[hub\]' in latih's clone"):
        find_files("hf://datasets/openai/gsm8k")
