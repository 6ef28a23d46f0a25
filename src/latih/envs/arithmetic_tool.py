"""Arithmetic with a calculator: the policy calls a tool over several turns, then answers."""

import random
from typing import Annotated, Any

from pydantic import Field, validate_call

from latih.core import Message, Task
from latih.envs.base import MessageEnv
from latih.envs.calculator import CALCULATOR, Calculator, calculation, evaluate
from latih.envs.registry import register
from latih.envs.spaces import Item, message_of, messages_of
from latih.rewards.answer import read_answer

SYSTEM = "Work out the expression with the calculator. Then reply with one line: Answer: N"


@register("arithmetic_tool")
class ArithmeticTool(MessageEnv):
    """Arithmetic over several turns, with a calculator to call.

    A message with tool calls is answered by a tool message for each; a bad call (unknown tool, arguments off the
    schema, an expression that has no value) by one that says what is wrong. A message without is the answer: it
    must hold exactly one line `Answer: N` and no other candidate. The reward of the episode is

        R = [N is the value of the expression]

    paid by the last turn. One call more than `max_calls` truncates the episode, with reward 0. Metrics: `correct`,
    `tool_calls`, `bad_calls`. See docs/envs/arithmetic_tool.md.
    """

    tools = (CALCULATOR,)
    policies = ("random", "expert")
    columns = ("prompt",)

    @validate_call
    def __init__(
        self,
        terms: Annotated[int, Field(ge=2, le=8)] = 3,
        digits: Annotated[int, Field(ge=1, le=6)] = 2,
        operators: Annotated[str, Field(pattern=r"^[-+*]+$")] = "+-*",
        max_calls: Annotated[int, Field(ge=0)] = 4,
    ) -> None:
        """Set the dials.

        terms: how many numbers the expression has.
        digits: each number has at most so many.
        operators: drawn from these, any of + - *.
        max_calls: tool calls that the policy may make in an episode.
        """
        self.terms = terms
        self.digits = digits
        self.operators = operators
        self.max_calls = max_calls

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Draw an expression, or take the task: its prompt is shown and its `answer`, a whole number, is the truth.

        A task without an answer has an expression for a prompt. Raises ValueError where it has neither.
        """
        super().reset(seed=seed, options=options)
        self.calculator = Calculator(self.max_calls)
        self.over = False
        if self.task is None:
            question: Item = self._draw()
            self.answer = int(evaluate(str(question)))
        else:
            question = self.task.prompt
            self.answer = _truth(self.task)
        self.question = messages_of(question)[-1].text
        return [Message(role="system", content=SYSTEM), *messages_of(question)], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Answer the tool calls, or score the answer. Raises RuntimeError after the end of the episode."""
        if self.over:
            raise RuntimeError("the episode is over: call reset first")
        message = message_of(action)
        if not message.tool_calls:
            correct = float(read_answer(message.text) == self.answer)
            return "Right." if correct else "Wrong.", correct, True, False, self._end(correct)
        results, beyond = self.calculator.answer(message)
        if beyond:
            return results, 0.0, False, True, self._end(0.0)
        return results, 0.0, False, False, {}

    def check_task(self, task: Task) -> None:
        """Raises ValueError where the task has no whole number for its answer."""
        _truth(task)

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """`expert` has the expression calculated, then answers right; `random` does either with numbers of its own."""
        if name == "random":
            if self.calculator.calls < self.max_calls and rng.random() < 0.5:
                return calculation(f"{rng.randrange(10**self.digits)} + {rng.randrange(10**self.digits)}")
            return f"Answer: {rng.randrange(10**self.digits)}"
        if name == "expert":
            first = self.calculator.calls == 0 < self.max_calls
            return calculation(self.question) if first else f"Answer: {self.answer}"
        return super().scripted(name, rng)

    def _draw(self) -> str:
        numbers = [str(each) for each in self.np_random.integers(1, 10**self.digits, size=self.terms)]
        signs = [self.operators[each] for each in self.np_random.integers(len(self.operators), size=self.terms - 1)]
        return " ".join([numbers[0], *(part for pair in zip(signs, numbers[1:], strict=True) for part in pair)])

    def _end(self, correct: float) -> dict[str, Any]:
        self.over = True
        return {"metrics": {"correct": correct, **self.calculator.metrics}}


def _truth(task: Task) -> int:
    given = messages_of(task.prompt)[-1].text if task.answer is None else str(task.answer)
    try:
        value = evaluate(given)
    except ValueError as exc:
        raise ValueError(f"task {task.id!r} has no answer in {given!r}: {exc}") from None
    if value.denominator != 1:
        raise ValueError(f"task {task.id!r} has the answer {value}, which is no whole number")
    return value.numerator
