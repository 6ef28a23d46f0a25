import json
from pathlib import Path

import pytest

from latih.core import LatihError
from latih.data import DataSettings
from latih.envs import EnvSettings, make
from latih.envs.repo_repair import TASKS
from latih.rollout import held_out, load_tasks, read_rows


def write(path: Path, *rows: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_rows_are_those_of_the_files(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", {"prompt": "1+1"}, {"prompt": "2+2", "answer": 4})
    held_out = write(tmp_path / "b.jsonl", {"prompt": "3+3"})
    sets = load_tasks(DataSettings(train=train, eval=held_out), make("arithmetic_tool"))
    assert [task.prompt for task in sets.train] == ["1+1", "2+2"]
    assert [task.prompt for task in sets.eval] == ["3+3"]
    assert load_tasks(DataSettings(), make("tic_tac_toe")).train == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"prompt": "1+1"}, {"promt": "2"}], "line 2 has no 'prompt': did you mean 'promt'?"),
        ([{"prompt": "1+1"}, {"prompt": "How many?", "id": "q7"}], "row q7: task 'q7' has no answer in 'How many?'"),
        ([], "a.jsonl holds no rows"),
    ],
)
def test_what_the_env_cannot_play_is_told_in_one_line(
    tmp_path: Path, rows: list[dict[str, object]], message: str
) -> None:
    with pytest.raises(LatihError) as caught:
        read_rows(DataSettings(), write(tmp_path / "a.jsonl", *rows), make("arithmetic_tool"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_held_out_rows_are_tried_once(tmp_path: Path) -> None:
    rows = DataSettings(eval=write(tmp_path / "a.jsonl", {"prompt": "1+1"}, {"prompt": "2+2"}))
    assert [task.prompt for task in held_out(rows, EnvSettings(id="arithmetic_tool"), 0)] == ["1+1", "2+2"]
    assert held_out(DataSettings(), EnvSettings(id="arithmetic_tool"), 0) == []
    (tmp_path / "broken.py").write_text(
        "from latih.envs import MessageEnv\n\n\nclass Broken(MessageEnv):\n"
        "    def reset(self, *, seed=None, options=None):\n        raise OSError(f'no power, seed % 4 is {seed % 4}')\n"
    )
    with pytest.raises(LatihError, match=r"broken\.py:Broken fails: OSError: no power, seed % 4 is 1$"):
        held_out(DataSettings(), EnvSettings(id=f"{tmp_path / 'broken.py'}:Broken"), 0)


def test_envs_that_take_no_tasks_say_so(tmp_path: Path) -> None:
    with pytest.raises(LatihError, match="TicTacToe takes no tasks"):
        read_rows(DataSettings(), write(tmp_path / "a.jsonl", {"prompt": "x"}), make("tic_tac_toe"))


def test_a_row_of_both_sets_is_refused(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", {"prompt": "1+1"}, {"prompt": "2+2", "id": "t"})
    rows = write(tmp_path / "b.jsonl", {"prompt": "3+3"}, {"prompt": "2+2", "id": "e"})
    settings = DataSettings(train=train, eval=rows)
    with pytest.raises(LatihError, match=r"row e of data\.eval is row t of data\.train"):
        load_tasks(settings, make("arithmetic_tool"))
    with pytest.raises(LatihError, match=r"row e of data\.eval is row t of data\.train"):
        held_out(settings, EnvSettings(id="arithmetic_tool"), 0)


@pytest.mark.parametrize(
    ("name", "row", "fault"),
    [
        ("temporal_clue", {"prompt": "Who?", "solution": {"A": "Ada"}}, {"solution": ["Ada"]}),
        ("repo_repair", json.loads(TASKS.read_text(encoding="utf-8").splitlines()[0]), {"repo": {}}),
    ],
)
def test_rows_of_envs_that_also_make_up_tasks(tmp_path, name, row, fault) -> None:
    env = make(name)
    [task] = read_rows(DataSettings(), write(tmp_path / "a.jsonl", row), env)
    assert task.id == row.get("id", "0")
    with pytest.raises(LatihError, match=r"no answers by letter|no task of repo_repair"):
        read_rows(DataSettings(), write(tmp_path / "b.jsonl", row | fault), env)


def test_a_row_of_both_sets_is_found_whatever_the_order_of_its_keys(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", {"prompt": "1+1", "more": {"a": 1, "b": 2}, "id": "t"})
    eval = write(tmp_path / "b.jsonl", {"more": {"b": 2, "a": 1}, "id": "e", "prompt": "1+1", "note": None})
    with pytest.raises(LatihError, match=r"row e of data\.eval is row t of data\.train, too"):
        load_tasks(DataSettings(train=train, eval=eval), make("arithmetic_tool"))
