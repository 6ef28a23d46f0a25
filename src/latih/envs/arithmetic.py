"""Arithmetic without help: one expression, one answer."""

import random
from typing import Annotated, Any

from pydantic import Field, validate_call

from latih.core import Message, Task
from latih.envs.arithmetic_tool import draw, truth
from latih.envs.base import MessageEnv
from latih.envs.calculator import evaluate
from latih.envs.registry import register
from latih.envs.spaces import Item, messages_of, text_of
from latih.rewards.answer import read_answer

SYSTEM = "Work it out. End with one line: Answer: N"


@register("arithmetic")
class Arithmetic(MessageEnv):
    """Work out an expression in one turn, without a tool.

    The reply must hold exactly one line `Answer: N` and no other candidate; what stands before it is free. The reward
    is

        R = [N is the value of the expression]

    Metrics: `correct` and `answered` (0 or 1: there is exactly one candidate). See docs/envs/arithmetic.md.
    """

    columns = ("prompt",)
    policies = ("random", "expert")

    @validate_call
    def __init__(
        self,
        terms: Annotated[int, Field(ge=2, le=8)] = 2,
        digits: Annotated[int, Field(ge=1, le=6)] = 2,
        operators: Annotated[str, Field(pattern=r"^[-+*]+$")] = "+-*",
    ) -> None:
        """Set the dials.

        terms: how many numbers the expression has.
        digits: each number has at most so many.
        operators: drawn from these, any of + - *.
        """
        self.terms = terms
        self.digits = digits
        self.operators = operators

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Draw an expression, or take the task: its prompt is shown and its `answer`, a whole number, is the truth.

        A task without an answer has an expression for a prompt. Raises ValueError where it has neither.
        """
        super().reset(seed=seed, options=options)
        self.over = False
        if self.task is None:
            question: Item = draw(self.np_random, self.terms, self.digits, self.operators)
            self.answer = int(evaluate(str(question)))
        else:
            question = self.task.prompt
            self.answer = truth(self.task)
        return [Message(role="system", content=SYSTEM), *messages_of(question)], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Score the answer. Raises RuntimeError after the end of the episode."""
        if self.over:
            raise RuntimeError("the episode is over: call reset first")
        self.over = True
        said = read_answer(text_of(action))
        correct = float(said == self.answer)
        metrics = {"correct": correct, "answered": float(said is not None)}
        return "Right." if correct else "Wrong.", correct, True, False, {"metrics": metrics}

    def check_task(self, task: Task) -> None:
        """Raises ValueError where the task has no whole number for its answer."""
        truth(task)

    def scripted(self, name: str, rng: random.Random) -> str:
        """`expert` answers right, `random` with a number of its own."""
        if name not in self.policies:
            super().scripted(name, rng)
        whole = 10**self.digits
        return f"Answer: {self.answer if name == 'expert' else rng.randint(1 - whole, self.terms * whole)}"
