import importlib.util
import json
import re
import tomllib
import warnings
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env

from latih.cli.main import main
from latih.core import LatihError, Message, ToolCall
from latih.data import DataSettings
from latih.envs import find, make
from latih.rollout import read_rows
from tests.tiny import tiny_model, tiny_settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])


def test_configuration_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("configuration", ROOT / "docs" / "configuration.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == module.render(), "settings changed: run `make docs`"
    assert "|  |" not in page, "a setting without a docstring"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_metrics_page_names_every_metric(tmp_path: Path) -> None:
    model = tiny_model(tmp_path / "tiny")
    words = ["trainer.warm_start.steps=1", "trainer.warm_start.games=2", *tiny_settings(model, tmp_path / "runs")]
    assert main(["train", "tic_tac_toe", *words]) == 0
    [file] = tmp_path.glob("runs/*/metrics.jsonl")
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    named = {name for line in file.read_text().splitlines() for name in json.loads(line)} - {"step", "time"}
    assert {"reward", "sampler_kl", "env/win", "eval/reward", "warm_start/loss", "seconds/rollout"} <= named
    unnamed = {name for name in named if f"`{name}`" not in page and not name.startswith(("env/", "eval/"))}
    assert unnamed == set()


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the files of docs/own_env.md, word for word."""
    page = (ROOT / "docs" / "own_env.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"<!-- (\w+\.py) -->\n```python\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("spec", ["ages.py:Ages", "quiz.py:Quiz"])
def test_example_envs_are_sound(examples: Path, spec: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(spec))


def test_example_with_a_tool(examples: Path) -> None:
    env = find("ages.py:Ages")()
    env.reset(seed=1)
    calls = [ToolCall(id="a", name="age", arguments={"name": "Bo"}), ToolCall(id="b", name="age", arguments="{")]
    answers, *rest = env.step(Message(role="assistant", tool_calls=calls))
    assert [(each.role, each.tool_call_id, each.text) for each in answers] == [
        ("tool", "a", "7"),
        ("tool", "b", "error: the arguments are not a JSON object"),
    ]
    assert rest == [0.0, False, False, {}]
    assert env.step(f"{env.older} ") == ("", 1.0, True, False, {"metrics": {"right": 1.0}})


def test_example_with_tasks(examples: Path) -> None:
    Path("rows.jsonl").write_text('{"prompt": "The colour of coal?", "answer": "Black", "level": 1}\n')
    env = make("quiz.py:Quiz")
    [task] = read_rows(DataSettings(), "rows.jsonl", env)
    assert task.level == 1
    assert env.reset(options={"task": task})[0] == "The colour of coal?"
    assert env.step("black")[1:3] == (1.0, True)
    Path("rows.jsonl").write_text('{"prompt": "The colour of dusk?", "answer": "dark red"}\n')
    with pytest.raises(LatihError, match=r"rows\.jsonl, row 0: 'dark red' is more than one word"):
        read_rows(DataSettings(), "rows.jsonl", env)


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    cells = {name.strip() for line in page.splitlines() for cell in line.split("|") for name in cell.split(",")}
    assert {re.split(r"[><=]", each)[0] for each in wanted} - cells == set()
