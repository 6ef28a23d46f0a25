"""The tasks of reasoning-gym, each an environment: `reasoning_gym:NAME`, its scorer's defects contained."""

import functools
import json
import math
import random
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from pydantic import validate_call

from latih.core import ConfigError, GraderError, Message, boundary, nearest
from latih.core.pip import extra
from latih.envs.base import MessageEnv
from latih.envs.registry import register
from latih.envs.spaces import Item, text_of
from latih.rewards.answer import tagged_answer
from latih.rewards.naive import exploited
from latih.rewards.naive.tagged import WATCHED_TAGS

SYSTEM = "Put your answer between <answer> and </answer>."
EXCLUDED = Path(__file__).with_name("excluded.json")
"""What bench/reasoning_gym_audit.py found."""
DRAWS = 20
"""Puzzles that are drawn for one that has an answer."""
ELSEWHERE = {
    "graph_color": "possible_answer",
    "propositional_logic": "example_answer",
    "rubiks_cube": "example_correct_answer",
}
"""Tasks that keep a right answer among their metadata instead of in its place."""


@register("reasoning_gym")
class ReasoningGym(MessageEnv):
    """A procedural task of reasoning-gym (arXiv:2505.24760), named behind a colon: `reasoning_gym:leg_counting`.

    One puzzle, one reply, which holds its answer between `<answer>` and `</answer>`, once. The reward is

        R = [the task's own scorer pays the answer in full]

    A scorer's part marks are no reward; they are the metric `score`. A scorer that raises is an error of the episode,
    not a 0. Puzzles are drawn from hashed seeds, since neighbouring seeds of reasoning-gym share puzzles, and drawn
    again where one comes without an answer that its own scorer takes. Metrics: `correct`, `score`, `answered`,
    `redrawn`, with `watch_exploits` `exploited`. See docs/envs/reasoning_gym.md.
    """

    policies = ("random", "expert")
    arenas = ("tagged",)
    name: ClassVar[str] = ""

    @validate_call
    def __init__(
        self, config: dict[str, Any] | None = None, exploitable: bool = False, watch_exploits: bool = False
    ) -> None:
        """Set the dials.

        config: the task's own dials, as its page in reasoning-gym's documentation lists them.
        exploitable: whether to make a task whose scorer can be cheated.
        watch_exploits: also ask graders of the usual kind, and count who passes them and not ours. Pays nothing.
        """
        if not self.name:
            raise ConfigError("reasoning_gym is a family of tasks: say which, such as reasoning_gym:leg_counting")
        found = excluded().get(self.name)
        if found and not (exploitable and found["kind"] == "exploitable"):
            mend = "set env.args.exploitable=true to have it" if found["kind"] == "exploitable" else "take another"
            raise ConfigError(f"reasoning_gym:{self.name} is left out ({found['kind']}): {found['why']}; {mend}")
        self.config = config or {}
        self.watch_exploits = watch_exploits
        create(self.name, 0, self.config)  # a wrong dial is told now

    @classmethod
    def member(cls, name: str) -> "type[ReasoningGym]":
        """The class of one task.

        Raises ConfigError where there is none, or no reasoning-gym of the version that was audited is installed.
        """
        if name not in names():
            raise ConfigError(f"unknown task reasoning_gym:{name}: {nearest(name, names())}")
        installed, audited = version("reasoning-gym"), _audit()["version"]
        if installed != audited:
            raise ConfigError(
                f"reasoning-gym {installed} is installed, but which of its tasks are safe is known of {audited} only: "
                f"{extra('reasoning-gym')}"
            )
        return _member(name)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Draw a puzzle. Raises RuntimeError where none of DRAWS has an answer that its scorer takes."""
        super().reset(seed=seed, options=options)
        for self.redrawn in range(DRAWS):
            self.dataset, self.entry = create(self.name, int(self.np_random.integers(2**63 - 1)), self.config)
            self.answer = oracle(self.name, self.entry)
            if self.answer and self._score(self.answer) >= 1:
                break
        else:
            raise RuntimeError(f"none of {DRAWS} puzzles of {self.name} has an answer that its own scorer takes")
        return [Message(role="system", content=SYSTEM), Message(role="user", content=self.entry["question"])], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Score the reply. Raises GraderError where the scorer fails, RuntimeError after the end of the episode."""
        self.check_playing()
        self.over = True
        text = text_of(action)
        answer = tagged_answer(text)
        score = self._score(answer) if answer else 0.0
        correct = float(score >= 1)
        metrics = {"correct": correct, "score": score, "answered": float(bool(answer)), "redrawn": float(self.redrawn)}
        if self.watch_exploits:
            metrics |= exploited(correct == 1, (each(text, self.answer) for each in WATCHED_TAGS))
        return "Right." if correct else "Wrong.", correct, True, False, {"metrics": metrics}

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """`expert` gives the answer that comes with the puzzle, `random` that of another puzzle."""
        if name == "expert":
            return f"<answer>{self.answer}</answer>"
        if name == "random":
            others = (oracle(self.name, create(self.name, rng.getrandbits(63), self.config)[1]) for _ in range(DRAWS))
            return f"<answer>{next(filter(None, others), '0')}</answer>"
        return super().scripted(name, rng)

    def _score(self, answer: str) -> float:
        with boundary(GraderError, f"the scorer of reasoning_gym:{self.name}"):
            score = float(self.dataset.score_answer(answer, self.entry))
        if not math.isfinite(score):
            raise GraderError(f"the scorer of reasoning_gym:{self.name} pays {score}")
        return score


@functools.cache
def _member(name: str) -> type[ReasoningGym]:
    camel = "".join(word.capitalize() for word in name.split("_"))
    members = {"name": name, "__doc__": f"{name}, a task of reasoning-gym.", "__module__": __name__}
    return type(f"ReasoningGym{camel}", (ReasoningGym,), members)


def names() -> list[str]:
    """The tasks of the installed reasoning-gym, those that are excluded too. Raises ConfigError where it is none."""
    return sorted(set(_library().DATASETS) - {"composite"})


def create(name: str, seed: int, config: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
    """A data set of one puzzle, which is also its scorer, and the puzzle: `question`, `answer`, `metadata`.

    `seed` has 63 bits; take hashed ones.
    """
    dataset = _library().create_dataset(name, **{**(config or {}), "seed": seed, "size": 1})
    return dataset, dataset[0]


def oracle(name: str, entry: dict[str, Any]) -> str:
    """The answer that comes with a puzzle; empty where there is none."""
    answer = entry["metadata"].get(ELSEWHERE[name]) if name in ELSEWHERE else entry["answer"]
    return answer if isinstance(answer, str) else "" if answer is None else json.dumps(answer)


def excluded() -> dict[str, dict[str, str]]:
    """The tasks that are not to be trained on, each with its `kind` and `why`."""
    tasks: dict[str, dict[str, str]] = _audit()["tasks"]
    return tasks


@functools.cache
def _audit() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXCLUDED.read_text(encoding="utf-8"))
    return found


@functools.cache
def _library() -> Any:
    try:
        from reasoning_gym import factory
    except ImportError:
        raise ConfigError(f"reasoning-gym is not installed: {extra('reasoning-gym')}") from None
    return factory
