"""Arithmetic without help: one expression, one answer."""

import random
from typing import Annotated, Any

import numpy as np
from pydantic import Field, validate_call

from latih.core import Message, Task
from latih.envs.base import MessageEnv
from latih.envs.calculator import evaluate
from latih.envs.registry import register
from latih.envs.spaces import Item, messages_of, text_of
from latih.rewards.answer import read_answer
from latih.rewards.naive import exploited
from latih.rewards.naive.answer import WATCHED

SYSTEM = "Work it out. End with one line: Answer: N"


def draw(rng: np.random.Generator, terms: int, digits: int, operators: str) -> str:
    """An expression of so many positive numbers, each of at most so many digits, with `operators` between them."""
    numbers = [str(each) for each in rng.integers(1, 10**digits, size=terms)]
    signs = [operators[each] for each in rng.integers(len(operators), size=terms - 1)]
    return " ".join([numbers[0], *(part for pair in zip(signs, numbers[1:], strict=True) for part in pair)])


@register("arithmetic")
class Arithmetic(MessageEnv):
    """Work out an expression in one turn, without a tool.

    The reply must hold exactly one line `Answer: N` and no other candidate; what stands before it is free. The reward
    is

        R = [N is the value of the expression]

    Metrics: `correct` and `answered` (0 or 1: there is exactly one candidate), and with `watch_exploits`
    `exploited`. See docs/envs/arithmetic.md.
    """

    columns = ("prompt",)
    policies = ("random", "expert")
    arenas = ("answer",)
    system = SYSTEM

    @validate_call
    def __init__(
        self,
        terms: Annotated[int, Field(ge=2, le=8)] = 2,
        digits: Annotated[int, Field(ge=1, le=6)] = 2,
        operators: Annotated[str, Field(pattern=r"^[-+*]+$")] = "+-*",
        watch_exploits: bool = False,
    ) -> None:
        """Set the dials.

        terms: how many numbers the expression has.
        digits: each number has at most so many.
        operators: drawn from these, any of + - *.
        watch_exploits: also ask graders of the usual kind, and count who passes them and not ours. Pays nothing.
        """
        self.terms = terms
        self.digits = digits
        self.operators = operators
        self.watch_exploits = watch_exploits

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Draw an expression, or take the task: its prompt is shown and its `answer`, a whole number, is the truth.

        A task without an answer has an expression for a prompt. Raises ValueError where it has neither.
        """
        super().reset(seed=seed, options=options)
        task = self.task or Task(prompt=draw(self.np_random, self.terms, self.digits, self.operators))
        self.answer = truth(task)
        messages = messages_of(task.prompt)
        self.question = messages[-1].text
        return [Message(role="system", content=self.system), *messages], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Score the answer. Raises RuntimeError after the end of the episode."""
        self.check_playing()
        self.over = True
        text = text_of(action)
        said = read_answer(text)
        correct = float(said == self.answer)
        metrics = {"correct": correct, "answered": float(said is not None)} | self.watched(text, said == self.answer)
        return "Right." if correct else "Wrong.", correct, True, False, {"metrics": metrics}

    def watched(self, text: str, right: bool) -> dict[str, float]:
        """The metric `exploited`, where it is asked for."""
        return exploited(right, (each(text, self.answer) for each in WATCHED)) if self.watch_exploits else {}

    def check_task(self, task: Task) -> None:
        """Raises ValueError where the task has no whole number for its answer."""
        truth(task)

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """`expert` answers right, `random` with a number of its own."""
        if name not in self.policies:
            super().scripted(name, rng)
        whole = 10**self.digits
        return f"Answer: {self.answer if name == 'expert' else rng.randint(1 - whole, self.terms * whole)}"


def truth(task: Task) -> int:
    """A task's answer, or the value of the expression that is its prompt. Raises ValueError where there is none."""
    given = messages_of(task.prompt)[-1].text if task.answer is None else str(task.answer)
    try:
        value = evaluate(given)
    except ValueError as exc:
        raise ValueError(f"task {task.id!r} has no answer in {given!r}: {exc}") from None
    if value.denominator != 1:
        raise ValueError(f"task {task.id!r} has the answer {value}, which is no whole number")
    return value.numerator
