"""Arithmetic with a calculator: the policy calls a tool over several turns, then answers."""

import ast
import operator
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, validate_call

from latih.core import Message, Task, ToolCall, ToolSchema
from latih.envs.base import MessageEnv
from latih.envs.registry import register
from latih.envs.spaces import Item, message_of, messages_of
from latih.envs.tools import bad_call, tool_message
from latih.rewards.answer import read_answer

SYSTEM = "Work out the expression with the calculator. Then reply with one line: Answer: N"
CALCULATOR = ToolSchema(
    name="calculator",
    description="Evaluates an arithmetic expression of numbers, + - * / and parentheses.",
    parameters={
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "For example 12 * (3 + 4)"}},
        "required": ["expression"],
        "additionalProperties": False,
    },
)
MAX_LENGTH = 200
"""Characters of an expression. With MAX_BITS it bounds the time of a call."""
MAX_BITS = 256
"""Of numerator and denominator of every value on the way."""
GRAMMAR = "an expression has numbers, + - * / and parentheses only"
OPERATORS: dict[type[ast.AST], Callable[..., Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def evaluate(expression: str) -> Fraction:
    """The exact value of an expression of decimal numbers, + - * / and parentheses.

    Raises ValueError, with one line for the policy, for anything else, and for values past MAX_BITS.

    >>> evaluate("2 * (3 + 4) / 7")
    Fraction(2, 1)
    """
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"the expression is longer than {MAX_LENGTH} characters")
    if not re.fullmatch(r"[0-9.+\-*/() ]+", expression):
        raise ValueError(GRAMMAR)
    try:
        source = expression.strip()
        return _value(ast.parse(source, mode="eval").body, source)
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError("the expression cannot be parsed") from None
    except ZeroDivisionError:
        raise ValueError("division by zero") from None


def _value(node: ast.AST, source: str) -> Fraction:
    match node:
        case ast.Constant():
            # Its digits as written: a float would have rounded them.
            value = Fraction(ast.get_source_segment(source, node) or "")
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            value = OPERATORS[type(op)](_value(operand, source))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            value = OPERATORS[type(op)](_value(left, source), _value(right, source))
        case _:
            raise ValueError(GRAMMAR)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ValueError("the number is too large")
    return value


def show(value: Fraction) -> str:
    """The value as the calculator displays it: exact where it is whole, else to ten digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


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
        self.calls = self.bad_calls = 0
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
        allowed = message.tool_calls[: self.max_calls - self.calls]
        self.calls += len(allowed)
        results: Item = [tool_message(call, self._call(call)) for call in allowed]
        if len(allowed) < len(message.tool_calls):
            return results, 0.0, False, True, self._end(0.0)
        return results, 0.0, False, False, {}

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """`expert` has the expression calculated, then answers right; `random` does either with numbers of its own."""
        if name == "random":
            if self.calls < self.max_calls and rng.random() < 0.5:
                return _calculate(f"{rng.randrange(10**self.digits)} + {rng.randrange(10**self.digits)}")
            return f"Answer: {rng.randrange(10**self.digits)}"
        if name == "expert":
            return _calculate(self.question) if self.calls == 0 < self.max_calls else f"Answer: {self.answer}"
        return super().scripted(name, rng)

    def _draw(self) -> str:
        numbers = [str(each) for each in self.np_random.integers(1, 10**self.digits, size=self.terms)]
        signs = [self.operators[each] for each in self.np_random.integers(len(self.operators), size=self.terms - 1)]
        return " ".join([numbers[0], *(part for pair in zip(signs, numbers[1:], strict=True) for part in pair)])

    def _call(self, call: ToolCall) -> str:
        fault = bad_call(call, self.tools)
        if fault is None and isinstance(call.arguments, dict):
            try:
                return show(evaluate(call.arguments["expression"]))
            except ValueError as exc:
                fault = f"error: {exc}"
        self.bad_calls += 1
        return str(fault)

    def _end(self, correct: float) -> dict[str, Any]:
        self.over = True
        metrics = {"correct": correct, "tool_calls": float(self.calls), "bad_calls": float(self.bad_calls)}
        return {"metrics": metrics}


def _calculate(expression: str) -> Message:
    return Message(role="assistant", tool_calls=[ToolCall(name="calculator", arguments={"expression": expression})])


def _truth(task: Task) -> int:
    given = messages_of(task.prompt)[-1].text if task.answer is None else str(task.answer)
    try:
        value = evaluate(given)
    except ValueError as exc:
        raise ValueError(f"task {task.id!r} has no answer in {given!r}: {exc}") from None
    if value.denominator != 1:
        raise ValueError(f"task {task.id!r} has the answer {value}, which is no whole number")
    return value.numerator
