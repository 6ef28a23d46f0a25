"""Arithmetic with a calculator: the policy calls a tool over several turns, then answers."""

import random
from typing import Annotated, Any

from pydantic import Field, validate_call

from latih.core import Message
from latih.envs.arithmetic import Arithmetic
from latih.envs.calculator import CALCULATOR, calculate, calculation
from latih.envs.registry import register
from latih.envs.spaces import Item, message_of
from latih.envs.tools import Calls
from latih.rewards.answer import read_answer

SYSTEM = "Work out the expression with the calculator. Then reply with one line: Answer: N"


@register("arithmetic_tool")
class ArithmeticTool(Arithmetic):
    """Arithmetic over several turns, with a calculator to call.

    A message with tool calls is answered by a tool message for each; a bad call (unknown tool, arguments off the
    schema, an expression that has no value) by one that says what is wrong. A message without is the answer: it
    must hold exactly one line `Answer: N` and no other candidate. The reward of the episode is

        R = [N is the value of the expression]

    paid by the last turn. One call more than `max_calls` truncates the episode, with reward 0, as does any other bound
    that comes before an answer. Metrics: `correct`,
    `tool_calls`, `bad_calls`, and with `watch_exploits` `exploited`. See docs/envs/arithmetic_tool.md.
    """

    tools = (CALCULATOR,)
    system = SYSTEM

    @validate_call
    def __init__(
        self,
        terms: Annotated[int, Field(ge=2, le=8)] = 3,
        digits: Annotated[int, Field(ge=1, le=6)] = 2,
        operators: Annotated[str, Field(pattern=r"^[-+*]+$")] = "+-*",
        max_calls: Annotated[int, Field(ge=0)] = 4,
        watch_exploits: bool = False,
    ) -> None:
        """Set the dials.

        terms: how many numbers the expression has.
        digits: each number has at most so many.
        operators: drawn from these, any of + - *.
        max_calls: tool calls that the policy may make in an episode.
        watch_exploits: also ask graders of the usual kind, and count who passes them and not ours. Pays nothing.
        """
        super().__init__(terms, digits, operators, watch_exploits)
        self.max_calls = max_calls

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """As without the calculator, but for the words of the system message."""
        self.calls = Calls(self.tools, self.max_calls)
        return super().reset(seed=seed, options=options)

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Answer the tool calls, or score the answer. Raises RuntimeError after the end of the episode."""
        self.check_playing()
        message = message_of(action)
        if not message.tool_calls:
            correct = float(read_answer(message.text) == self.answer)
            return "Right." if correct else "Wrong.", correct, True, False, self._end(correct, message.text)
        results, beyond = self.calls.answer(message.tool_calls, calculate)
        if beyond:
            return results, 0.0, False, True, self._end(0.0)
        return results, 0.0, False, False, {}

    def truncate(self, reason: str) -> tuple[float, dict[str, Any]]:
        """No answer is no right one."""
        return 0.0, self._end(0.0)

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """`expert` has the expression calculated, then answers right; `random` does either with numbers of its own."""
        if name == "random":
            if self.calls.left and rng.random() < 0.5:
                return calculation(f"{rng.randrange(10**self.digits)} + {rng.randrange(10**self.digits)}")
            return f"Answer: {rng.randrange(10**self.digits)}"
        if name == "expert":
            first = self.calls.made == 0 < self.max_calls
            return calculation(self.question) if first else f"Answer: {self.answer}"
        return super().scripted(name, rng)

    def _end(self, correct: float, text: str = "") -> dict[str, Any]:
        self.over = True
        return {"metrics": {"correct": correct, **self.calls.metrics, **self.watched(text, correct == 1)}}
