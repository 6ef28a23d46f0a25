"""Grading a function that a policy wrote: inputs go into the sandbox, plain values come out, and are compared here."""

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from latih.core import SandboxError
from latih.rewards.answer import without_thoughts
from latih.rewards.caller import pack, unpack
from latih.rewards.values import matches
from latih.sandbox import Limits, Result, run

LIMITS = Limits(wall=5.0, cpu=5.0, memory=256, output=1 << 20)
CALLER = files("latih.rewards").joinpath("caller.py").read_text(encoding="utf-8")
# Deeper, a fence is one in a docstring.
FENCED = re.compile(r"^( {0,3})```[^\n`]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
OPENED = re.compile(r"^( {0,3})```[^\n`]*\n(.*)", re.MULTILINE | re.DOTALL)
SAID = 200
"""Characters of an outcome told to the policy."""
NOTHING = "nothing came back"
LATE = "it ran out of time"


@dataclass(frozen=True)
class Case:
    """One call of the function, and the value that it shall return. The value never enters the sandbox."""

    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class Verdict:
    """What came of grading. All lists have one entry per case."""

    right: tuple[bool, ...]
    said: tuple[str, ...]
    """What each call gave, in words: a value, an error, or nothing."""
    answered: tuple[bool, ...]
    """Whether a value came back."""
    timed_out: bool = False

    @property
    def passed(self) -> bool:
        """Whether every case is right. Without cases nothing is."""
        return bool(self.right) and all(self.right)


def code_of(reply: str) -> str | None:
    """The code of a reply: its one fenced block, or all of it where there is none; None where there are several.

    What stands before `</think>` is no part of it. A block may be indented as in a list, by up to three spaces, and
    where none is closed, one may be left open at the end.

    >>> code_of("Here:\\n```python\\ndef f(): pass\\n```")
    'def f(): pass\\n'
    """
    reply = without_thoughts(reply)
    blocks = FENCED.findall(reply) or OPENED.findall(reply)
    if len(blocks) > 1:
        return None
    return textwrap.dedent(blocks[0][1]) if blocks else reply


def grade(
    source: str,
    name: str,
    cases: Sequence[Case],
    *,
    returns: str | None = None,
    tolerance: float = 0.0,
    limits: Limits = LIMITS,
) -> Verdict:
    """Run the function `name` of `source` on every case, in one process of the sandbox, and compare its values here.

    `returns` and `tolerance` as in `latih.rewards.values.matches`. There must be exactly one result for each case, and
    none besides, or all count as wrong: more than one candidate is a guess. So does all when time or the bound on
    output runs out. Exit codes and printed text are not looked at.

    Raises SandboxError where the sandbox failed before any of the policy's code ran; whatever happens after is the
    policy's own doing. Raises ConfigError where `returns` is no type.
    """
    result, lines = _call(source, name, [case.args for case in cases], limits)
    nothing = (NOTHING,) * len(cases)
    if result.timed_out:
        nothing = (LATE,) * len(cases)
    elif lines is not None and len(lines) == 1 and isinstance(lines[0].get("error"), str):
        nothing = (_shorten(lines[0]["error"]),) * len(cases)
    found = None if lines is None or result.timed_out or result.cut else _by_case(lines, len(cases))
    if found is None:
        return Verdict((False,) * len(cases), nothing, (False,) * len(cases), result.timed_out)
    answered = tuple(number in found and "value" in found[number] for number in range(len(cases)))
    right = tuple(
        there and matches(case.expected, found[number]["value"], returns, tolerance)
        for number, (there, case) in enumerate(zip(answered, cases, strict=True))
    )
    said = tuple(_said(found.get(number)) for number in range(len(cases)))
    return Verdict(right, said, answered)


def values(source: str, name: str, inputs: Sequence[tuple[Any, ...]], limits: Limits = LIMITS) -> dict[int, Any]:
    """What the function `name` of `source`, which is ours, returns in the sandbox, by the number of the input.

    Left out are inputs on which it fails, or which it does not come to in time. Raises SandboxError.
    """
    found = _by_case(_call(source, name, inputs, limits)[1] or [], len(inputs)) or {}
    return {number: unpack(line["value"]) for number, line in found.items() if "value" in line}


def credit(verdict: Verdict, cases: Sequence[Case], shown: int = 0) -> float:
    """How much of the hidden part is right, in [0, 1]: nothing for what a constant, an echoed argument or a coin gets.

    Of the n cases after the first `shown`, r are right; b is how many the best constant or echo would get:

        credit = max(0, r - b) / (n - b),  or [r = n] where b = n

    Where only one or two values are expected it is [r = n] too: a coin is often lucky, and beats the constant.
    """
    hidden = list(cases[shown:])
    right = sum(verdict.right[shown:])
    constants = [sum(_same(case.expected, each.expected) for each in hidden) for case in hidden]
    places = range(max((len(case.args) for case in hidden), default=0))
    echoes = [
        sum(place < len(case.args) and _same(case.expected, case.args[place]) for case in hidden) for place in places
    ]
    cheap = max([*constants, *echoes], default=0)
    kinds = round(sum(1 / max(1, count) for count in constants))
    if cheap == len(hidden) or kinds <= 2:
        return float(right == len(hidden) > 0)
    return max(0, right - cheap) / (len(hidden) - cheap)


def _same(expected: Any, value: Any) -> bool:
    return matches(expected, pack(value))


def _call(
    source: str, name: str, inputs: Sequence[tuple[Any, ...]], limits: Limits
) -> tuple[Result, list[dict[str, Any]] | None]:
    job = {"source": source, "name": name, "cases": [[pack(each) for each in args] for args in inputs]}
    result = run(CALLER, stdin=json.dumps(job).encode(), limits=limits)
    return result, _lines(result)


def _lines(result: Result) -> list[dict[str, Any]] | None:
    """What the caller said after `ready`; None where it is not what the caller says."""
    first, _, rest = result.channel.partition(b"\n")
    if first != b'{"ready": true}':
        said = result.stderr.decode(errors="replace").strip().splitlines()
        raise SandboxError(
            f"the sandbox ended before the function was called (exit code {result.code}): "
            + (said[-1] if said else "it ran out of time" if result.timed_out else "it said nothing")
        )
    try:
        lines = [json.loads(each) for each in rest.splitlines()]
    except (ValueError, RecursionError):
        return None
    return lines if all(isinstance(each, dict) for each in lines) else None


def _by_case(lines: list[dict[str, Any]], count: int) -> dict[int, dict[str, Any]] | None:
    """The result of each case; None where a case has more than one, or a line belongs to none."""
    found: dict[int, dict[str, Any]] = {}
    for line in lines:
        number = line.get("case")
        if type(number) is not int or not 0 <= number < count or number in found or len(line) != 2:
            return None
        found[number] = line
    return found


def _said(line: dict[str, Any] | None) -> str:
    if line is None:
        return NOTHING
    if "value" in line:
        try:
            return _shorten(json.dumps(line["value"]))
        except RecursionError:
            return "a value too deep to show"
    return _shorten(str(line.get("error")))


def _shorten(text: str) -> str:
    return repr(text[:SAID])[1:-1] if not text.isprintable() else text[:SAID]
