"""GSM8K: word problems of grade-school arithmetic, single turn or with a calculator to call."""

import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from pydantic import Field, validate_call

from latih.core import Message, Task
from latih.envs.base import MessageEnv
from latih.envs.calculator import CALCULATOR, calculate, calculation, evaluate
from latih.envs.registry import register
from latih.envs.spaces import Item, message_of
from latih.envs.tools import Calls
from latih.rewards.naive import exploited
from latih.rewards.naive.answer import WATCHED
from latih.rewards.numbers import final_number

SYSTEM = "Solve the problem step by step. End with one line: #### N"
SYSTEM_CALCULATOR = "Solve the problem step by step, with the calculator. End with one line: #### N"
ANNOTATION = re.compile(r"<<([^<>=]*)=[^<>]*>>")
"""How the data set marks a calculation inside a solution: `<<48/2=24>>`."""


@register("gsm8k")
class Gsm8k(MessageEnv):
    """Word problems of grade-school arithmetic, such as those of GSM8K (arXiv:2110.14168).

    A task has a `question` and an `answer`: a reference solution that ends in `#### N`, or N alone. Without a task the
    env makes up a simple problem of its own. The reply is the answer, and the reward of the episode is

        R = [the final number of the reply is exactly N]

    where a reply without a final number, or with more than one candidate, has none: see `latih.rewards.numbers`. With
    `calculator`, a message with tool calls is a turn that pays 0; one call beyond `max_calls` truncates the episode,
    with reward 0. Metrics: `correct`, `answered` (there was one final number), and with the calculator `tool_calls`
    and `bad_calls`, with `watch_exploits` `exploited`. See docs/envs/gsm8k.md.
    """

    policies = ("random", "expert")
    columns = ("question", "answer")
    arenas = ("numbers",)

    @validate_call
    def __init__(
        self, calculator: bool = False, max_calls: Annotated[int, Field(ge=1)] = 8, watch_exploits: bool = False
    ) -> None:
        """Set the dials.

        calculator: whether there is one to call, before the answer.
        max_calls: tool calls that the policy may make in an episode.
        watch_exploits: also ask graders of the usual kind, and count who passes them and not ours. Pays nothing.
        """
        self.tools = (CALCULATOR,) if calculator else ()
        self.max_calls = max_calls
        self.watch_exploits = watch_exploits

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Show the task, or a problem made up. Raises ValueError where the task is none."""
        super().reset(seed=seed, options=options)
        task = self.task or made_up(self.np_random)
        self.truth = _truth(task)
        self.solution = str(task.answer)
        self.calls = Calls(self.tools, self.max_calls if self.tools else 0)
        system = SYSTEM_CALCULATOR if self.tools else SYSTEM
        return [Message(role="system", content=system), Message(role="user", content=_question(task))], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Answer the tool calls, or score the reply. Raises RuntimeError after the end of the episode."""
        self.check_playing()
        message = message_of(action)
        if self.tools and message.tool_calls:
            results, beyond = self.calls.answer(message.tool_calls, calculate)
            return results, 0.0, False, beyond, self._end(None) if beyond else {}
        number = final_number(message.text)
        correct = number == self.truth
        return "Right." if correct else "Wrong.", float(correct), True, False, self._end(number, message.text)

    def truncate(self, reason: str) -> tuple[float, dict[str, Any]]:
        """No answer is no right one."""
        return 0.0, self._end(None)

    def check_task(self, task: Task) -> None:
        """Raises ValueError where there is no question, or the answer has no final number."""
        _question(task)
        _truth(task)

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """`expert` has the steps of the reference solution calculated, then says it; `random` makes numbers up."""
        if name == "random":
            if self.calls.left and rng.random() < 0.5:
                return calculation(f"{rng.randrange(1000)} + {rng.randrange(1000)}")
            return f"#### {rng.randrange(1000)}"
        if name == "expert":
            steps = [each for each in ANNOTATION.findall(self.solution) if _calculable(each)]
            if self.calls.left and self.calls.made < len(steps):
                return calculation(steps[self.calls.made])
            return ANNOTATION.sub("", self.solution)
        return super().scripted(name, rng)

    def _end(self, number: Fraction | None, text: str = "") -> dict[str, Any]:
        self.over = True
        metrics = {"correct": float(number == self.truth), "answered": float(number is not None)}
        if self.watch_exploits:
            metrics |= exploited(number == self.truth, (each(text, self.truth) for each in WATCHED))
        return {"metrics": metrics | (self.calls.metrics if self.tools else {})}


def _question(task: Task) -> str:
    question = (task.model_extra or {}).get("question")
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"the question is a text, not {question!r}")
    return question


def _truth(task: Task) -> Fraction:
    value = None if task.answer is None or isinstance(task.answer, bool) else final_number(str(task.answer))
    if value is None:
        shown = repr(task.answer)
        raise ValueError(f"the answer has no final number, such as `#### 72`: {shown[:60]}{'…' * (len(shown) > 60)}")
    return value


def _calculable(expression: str) -> bool:
    try:
        evaluate(expression)
    except ValueError:
        return False
    return True


def made_up(rng: np.random.Generator) -> Task:
    """A simple problem in the form of the data set. None of them is from it."""
    a, b, c = (int(each) for each in rng.integers(2, 13, size=3))
    name, thing = NAMES[rng.integers(len(NAMES))], THINGS[rng.integers(len(THINGS))]
    question, steps = PROBLEMS[rng.integers(len(PROBLEMS))](name, thing, a, b, c)
    lines = [f"{said} {each} = <<{each}={evaluate(each)}>>{evaluate(each)}." for said, each in steps]
    solution = "\n".join([*lines, f"#### {evaluate(steps[-1][1])}"])
    return Task(question=question, answer=solution)


Made = tuple[str, list[tuple[str, str]]]
"""A question, and the steps of its solution: words and a calculation each, the last of which is the answer."""


def _buys(name: str, thing: str, a: int, b: int, c: int) -> Made:
    return (
        f"{name} has {a} {thing} and buys {b} bags with {c} in each. How many {thing} does {name} have now?",
        [("The bags hold", f"{b}*{c}"), ("With those from before,", f"{a}+{b * c}")],
    )


def _pays(name: str, thing: str, a: int, b: int, c: int) -> Made:
    paid = 10 * (a * b // 10 + c)
    return (
        f"{name} buys {a} {thing} for ${b} each and pays with ${paid}. How many dollars does {name} get back?",
        [("They cost", f"{a}*{b}"), ("Back come", f"{paid}-{a * b}")],
    )


def _halves(name: str, thing: str, a: int, b: int, c: int) -> Made:
    b = min(b, 3 * a - 1)
    return (
        f"{name} picked {2 * a} {thing} on Monday, and half as many on Tuesday. {name} gave {b} of them away. "
        "How many are left?",
        [("On Tuesday it was", f"{2 * a}/2"), ("Together,", f"{2 * a}+{a}"), ("Left are", f"{3 * a}-{b}")],
    )


def _makes(name: str, thing: str, a: int, b: int, c: int) -> Made:
    return (
        f"A machine packs {10 * a} {thing} an hour. {name} lets it run for {b} hours and sends {c} back. "
        "How many are kept?",
        [("It packs", f"{10 * a}*{b}"), ("Kept are", f"{10 * a * b}-{c}")],
    )


def _shares(name: str, thing: str, a: int, b: int, c: int) -> Made:
    return (
        f"{name} shares {a * (b + c)} {thing} equally among {a} friends. Each of them uses {b}. "
        "How many does each have left?",
        [("Each gets", f"{a * (b + c)}/{a}"), ("Left are", f"{b + c}-{b}")],
    )


NAMES = ("Ann", "Bo", "Cem", "Dora", "Eve", "Femi")
THINGS = ("pens", "apples", "stamps", "shells", "beads", "cards")
PROBLEMS: tuple[Callable[[str, str, int, int, int], Made], ...] = (_buys, _pays, _halves, _makes, _shares)
