import importlib.util
import json
import re
import shlex
import tomllib
import warnings
from pathlib import Path
from types import ModuleType

import pytest
from gymnasium.utils.env_checker import check_env

from latih.cli.main import main
from latih.core import EndpointError, LatihError, Message, ToolCall
from latih.data import DataSettings, read_trajectories
from latih.envs import find, make
from latih.envs.registry import builtin_names
from latih.rollout import read_rows
from latih.runs import Run, RunSettings
from tests.serving import serving
from tests.tiny import tiny_model, tiny_settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_configuration_page_is_current() -> None:
    module = load_script("configuration")
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == module.render(), "settings changed: run `make docs`"
    assert "|  |" not in page, "a setting without a docstring"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("name", builtin_names())
def test_an_env_page_says_all_that_a_user_asks(name: str) -> None:
    text = (ROOT / f"docs/envs/{name}.md").read_text(encoding="utf-8")
    heads = {line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")}
    assert heads >= {"Reward", "The end", "Dials (`env.args`)", "Sources", "Baselines"}
    assert any(head.startswith("What") for head in heads), "what is seen, and what may be answered"


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


def test_metrics_page_names_every_metric_of_roles(tmp_path: Path) -> None:
    words = ["trainer.warm_start.steps=1", "trainer.warm_start.games=2", "roles.o=own"]
    small = tiny_settings(tiny_model(tmp_path / "tiny"), tmp_path / "runs")
    assert main(["train", "tic_tac_toe_duel", *words, *small]) == 0
    [file] = tmp_path.glob("runs/*/metrics.jsonl")
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    named = {re.sub(r"(^|/)[xo]/", r"\1<role>/", name) for row in rows for name in row}
    roles = {name for name in named if "<role>/" in name}
    assert {"<role>/reward", "<role>/groups", "warm_start/<role>/loss", "eval/<role>/win"} <= roles
    for each in ("<role>/reward", "<role>/<name>", "warm_start/<role>/<name>", "eval/<role>/<name>"):
        assert f"`{each}`" in page
    learnt = {re.sub(r"(warm_start/)?<role>/", "", name) for name in roles if not name.startswith("eval/")}
    assert {name for name in learnt if f"`{name}`" not in page} == set()


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


def test_example_of_training_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    [text] = re.findall(r"<!-- train -->\n```python\n(.*?)```", page, re.DOTALL)
    small = tiny_settings(tiny_model(tmp_path / "tiny"), tmp_path / "runs")
    assert '["trainer.steps=10", "seed=1"]' in text
    monkeypatch.chdir(tmp_path)
    exec(text.replace('["trainer.steps=10", "seed=1"]', repr(small)), {})
    [run] = (tmp_path / "runs").iterdir()
    assert capsys.readouterr().out == f"{run} 0.0\n"


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
    assert env.step(f"{env.older} ") == ("", 1.0, True, False, {"metrics": {"correct": 1.0}})


def test_example_with_roles(examples: Path) -> None:
    for one, other, rewards in (
        ("park", "park ", {"ann": 1.0, "bo": 1.0}),
        ("park", "bridge", {"ann": 0.0, "bo": 0.0}),
        ("moon", "moon", {"ann": -0.5, "bo": -0.5}),
        ("", "park", {"ann": -0.5, "bo": 0.0}),
    ):
        env = find("meet.py:Meet")()
        env.reset(seed=0)
        assert env.observe("bo")[0].text == "Where do you go? Reply with one word: bridge, park, station."
        env.step(one)
        assert env.agent_selection == "bo"
        env.step(other)
        assert env.rewards == rewards
        assert {role: info["metrics"]["met"] for role, info in env.infos.items()} == dict.fromkeys(
            env.roles, float(rewards["ann"] == 1)
        )


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


def test_example_of_a_judge(examples: Path) -> None:
    said = [(200, {"choices": [{"message": {"content": word}}]}) for word in ("Yes.", "no")]
    with serving(*said) as server:
        env = make("rhyme.py:Rhyme", url=server.url)
        env.reset(seed=0)
        assert env.step("a cat\na hat") == ("", 1.0, True, False, {"metrics": {"correct": 1.0}})
        env.reset(seed=0)
        assert env.step("a cat\na dog")[1] == 0.0
        server.answers[:] = [(400, "no such model")]
        with pytest.raises(EndpointError, match="answered 400"):
            env.step("")
    assert server.requests[0].body["messages"] == [
        {"role": "user", "content": "Do these lines rhyme? Reply yes or no.\n\na cat\na hat"}
    ]


def test_example_of_a_harness(examples: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "own_env.md").read_text(encoding="utf-8")
    [command] = [line for line in page.splitlines() if "second_look.py" in line and line.startswith("latih")]
    small = tiny_settings(tiny_model(tmp_path / "tiny"), tmp_path / "runs")
    assert main([*shlex.split(command)[1:], *small]) == 0
    [run] = (tmp_path / "runs").iterdir()
    for trajectory in read_trajectories(run / "trajectories" / "step-000001.parquet"):
        [sequence] = trajectory.sequences
        assert [each.role for each in sequence.messages] == ["user", "assistant", "user", "assistant"]
        assert sequence.messages[2].text == "Look at that once more, and reply again."
        assert len(sequence.turns) == 2


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    cells = {name.strip() for line in page.splitlines() for cell in line.split("|") for name in cell.split(",")}
    assert {re.split(r"[><=]", each)[0] for each in wanted} - cells == set()


def test_the_picture_is_a_run_replayed_on_the_screen(tmp_path: Path) -> None:
    picture = load_script("picture")
    run = Run.create(RunSettings(folder=str(tmp_path), name="r"), {"trainer": {"steps": 2}})
    rows = [{"step": 0, "eval/reward": 0.0}, *({"step": s, "reward": s / 4, "env/win": s / 2} for s in (1, 2))]
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = re.sub(r"<[^>]+>|&#160;", " ", picture.draw(run, "latih train x"))
    assert "latih train x" in re.sub(r" +", " ", text)
    for word in ("1/2", "+0.250", "2/2", "+0.500", "1.00", "learn/s"):
        assert word in text
    assert "http" not in re.sub(r"(https://www.textualize.io|http://www.w3.org/2000/svg)", "", picture.draw(run, "x"))
