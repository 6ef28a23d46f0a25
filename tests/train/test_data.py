"""Training on a data set, through the command line: which rows are played, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from latih.cli.main import main
from latih.core import Task
from latih.data import read_tasks, read_trajectories
from latih.evaluation import EPISODES, EvalResult
from latih.runs import Run
from tests.tiny import tiny_model, tiny_settings


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def words(tmp_path: Path, model: Path) -> list[str]:
    """Six rows to train on in Parquet, three held out in JSON lines, and small settings."""
    rows = [{"question": f"What is {n} + {n}?", "answer": f"{n}+{n} = {2 * n}\n#### {2 * n}"} for n in range(9)]
    pq.write_table(pa.Table.from_pylist(rows[:6]), tmp_path / "train.parquet")
    (tmp_path / "eval.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[6:]))
    data = [f"data.train={tmp_path / 'train.parquet'}", f"data.eval={tmp_path / 'eval.jsonl'}"]
    return [*tiny_settings(model, tmp_path / "runs"), "rollout.sampling.max_tokens=4", *data]


def played(run: Run, steps: int) -> list[list[str]]:
    """The ids of the rows of each step, one per group."""
    return [
        list(dict.fromkeys(each.task.id for each in read_trajectories(run.trajectories_path(step)) if each.task))
        for step in range(1, steps + 1)
    ]


@pytest.mark.slow
def test_a_data_set_is_trained_on_in_a_seeded_order_that_resuming_keeps(tmp_path: Path, words: list[str]) -> None:
    more = ["rollout.groups=2", "trainer.warm_start.steps=1", "trainer.warm_start.policy=expert"]
    more += ["trainer.warm_start.games=2", "rollout.sampling.max_tokens=40", "trainer.checkpoint.every=1"]
    assert main(["train", "gsm8k", *words, *more, "trainer.steps=6", "run.name=unbroken"]) == 0
    unbroken = Run.open("unbroken", tmp_path / "runs")
    order = [row for step in played(unbroken, 6) for row in step]
    assert sorted(order[:6]) == sorted(order[6:]) == list("012345")
    assert order[:6] != order[6:]

    assert main(["train", "gsm8k", *words, *more, "trainer.steps=2", "run.name=broken"]) == 0
    assert main(["train", "--resume", "broken", f"run.folder={tmp_path / 'runs'}", "trainer.steps=6"]) == 0
    assert played(Run.open("broken", tmp_path / "runs"), 6) == played(unbroken, 6)

    held_out = unbroken.folder / "evaluations"
    for folder in held_out.iterdir():
        episodes = read_trajectories(folder / EPISODES)
        assert {each.task.model_extra["question"] for each in episodes if each.task} <= {
            f"What is {n} + {n}?" for n in (6, 7, 8)
        }
        assert EvalResult.load(folder).data.endswith("eval.jsonl")


def test_the_data_is_read_once(tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(source: str, *more: Any) -> list[Task]:
        read.append(Path(source).name)
        return read_tasks(source, *more)

    monkeypatch.setattr("latih.rollout.tasks.read_tasks", counted)
    assert main(["train", "gsm8k", *words, "run.name=r", "trainer.warm_start=null"]) == 0
    assert read == ["train.parquet", "eval.jsonl"]
    assert main(["train", "--resume", "r", f"run.folder={tmp_path / 'runs'}", "trainer.steps=2"]) == 0
    assert read == ["train.parquet", "eval.jsonl"] * 2


def test_every_row_is_evaluated_once_at_most(tmp_path: Path, words: list[str], model: Path) -> None:
    assert main(["eval", str(model), "gsm8k", *words, "--episodes", "50"]) == 0
    [folder] = (tmp_path / "runs").iterdir()
    assert sorted(each.task.id for each in read_trajectories(folder / EPISODES) if each.task) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: "data.train=absent.parquet", "no such file: absent.parquet"),
        (lambda folder: "data.eval=null", "data.train is set and data.eval is not"),
        (lambda folder: f"data.eval={folder / 'train.parquet'}", "row 0 of data.eval is row 0 of data.train, too"),
        (lambda folder: "data.columns={question: problem}", "train.parquet has no 'problem'"),
        (lambda folder: "data.trian=x", "unknown setting data.trian: did you mean 'data.train'?"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_mistakes_get_one_line(
    tmp_path: Path,
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Path], str],
    message: str,
    more: list[str],
) -> None:
    assert main(["train", "gsm8k", *words, change(tmp_path), *more]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1


PICKY = """
from latih.envs import MessageEnv


class Picky(MessageEnv):
    columns = ("prompt",)

    def __init__(self, wanted: str = "held out"):
        self.wanted = wanted

    def check_task(self, task):
        if task.prompt != self.wanted:
            raise ValueError(f"{self.wanted} is wanted")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.check_task(self.task)
        return self.task.prompt, {}

    def step(self, action):
        return "", 0.0, True, False, {}
"""


def test_each_set_is_checked_by_the_env_that_plays_it(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "picky.py").write_text(PICKY)
    for name, prompt in (("train", "drill"), ("eval", "held out")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"prompt": prompt}))
    words = ["train", f"{tmp_path / 'picky.py'}:Picky", "--dry-run", f"trainer.policy.model.path={model}"]
    words.append("env.training.wanted=drill")
    data = [f"data.train={tmp_path / 'train.jsonl'}", f"data.eval={tmp_path / 'eval.jsonl'}"]
    assert main([*words, *data]) == 0, capsys.readouterr().err
    assert "drill" in capsys.readouterr().out.partition("first prompt")[2], "training's, not evaluation's"
    assert main([*words, *data, "env.args.wanted=drill"]) == 2
    assert "eval.jsonl, row 0: drill is wanted" in capsys.readouterr().err
