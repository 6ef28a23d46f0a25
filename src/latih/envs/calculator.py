"""The calculator that environments offer as a tool: exact, bounded in time, and no evaluator of Python."""

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from latih.core import Message
from latih.core.syntax import parse_expression
from latih.envs.tools import calling, tool_schema

CALCULATOR = tool_schema(
    "calculator",
    "Evaluates an arithmetic expression of numbers, + - * / and parentheses.",
    expression={"type": "string", "description": "For example 12 * (3 + 4)"},
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
        return _value(parse_expression(source), source)
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


def calculate(name: str, arguments: dict[str, Any]) -> str:
    """Answer a well-formed call, for `latih.envs.tools.Calls`. Raises ValueError as `evaluate` does."""
    return show(evaluate(arguments["expression"]))


def calculation(expression: str) -> Message:
    """The message that has an expression calculated."""
    return calling(CALCULATOR.name, expression=expression)
