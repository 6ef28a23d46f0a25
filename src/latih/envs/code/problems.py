"""Problems: a description, cases that are shown, cases that are hidden, and a solution."""

import copy
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from latih.core import Task
from latih.envs.code.families import Sketch, families
from latih.envs.spaces import messages_of
from latih.rewards.function import Case
from latih.rewards.values import parse_type, shaped

LEVELS = max(families)
TRIES = 50
"""Draws of a call that is new, before fewer cases have to do."""


@dataclass(frozen=True)
class Problem:
    """A function to write."""

    text: str
    cases: tuple[Case, ...]
    shown: int = 0
    """So many of the cases, the first, are shown as examples."""
    name: str = "f"
    returns: str | None = None
    tolerance: float = 0.0
    solution: str | None = None

    @property
    def examples(self) -> str:
        """The shown cases, one a line."""
        return "\n".join(
            f"{self.name}({', '.join(map(repr, each.args))}) == {each.expected!r}" for each in self.cases[: self.shown]
        )


def draw(level: int, rng: random.Random, shown: int = 0, hidden: int = 8) -> Problem:
    """A problem of a level, from 1 to LEVELS, that no constant solves."""
    while True:
        sketch = rng.choice(families[level])(rng)
        cases = _cases(sketch, rng, shown, hidden)
        # By representation: values may be unhashable, and True is not to pass for 1.
        if len({repr(case.expected) for case in cases[shown:]}) > 1:
            tolerance = 1e-6 if "float" in sketch.returns else 0.0
            return Problem(sketch.text, tuple(cases), shown, "f", sketch.returns, tolerance, sketch.solution)


def parameters(source: str) -> str:
    """What stands in the brackets of the first `def`."""
    found = re.search(r"def \w+\((.*?)\)", source)
    return found[1] if found else ""


def problem_of(task: Task, shown: int = 0) -> Problem:
    """The problem of a task; its columns are described in docs/envs/code.md.

    Raises ValueError, which names the task, where a column is missing or wrong, ConfigError for a type.
    """
    extra = task.model_extra or {}
    where = f"task {task.id!r}"
    try:
        tests = extra["tests"]
        tests = json.loads(tests) if isinstance(tests, str) else tests
        returns, types = extra.get("returns"), extra.get("parameters")
        if returns is not None:
            parse_type(returns)
        cases = tuple(_case(each, returns, types) for each in tests)
        shown = int(extra.get("examples", shown))
        name, tolerance = str(extra.get("name", "f")), float(extra.get("tolerance", 0.0))
    except KeyError as exc:
        raise ValueError(f"{where} has no column or key {exc}: tests are objects with args and expected") from None
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"{where}: {exc}") from None
    if not 0 <= shown < len(cases):
        raise ValueError(f"{where} shows {shown} of {len(cases)} tests: at least one has to stay hidden")
    text = messages_of(task.prompt)[-1].text
    return Problem(text, cases, shown, name, returns, tolerance, extra.get("solution"))


def _case(test: Any, returns: str | None, types: Sequence[str] | None) -> Case:
    args = list(test["args"])
    if types is not None:
        args = [shaped(value, declared) for value, declared in zip(args, types, strict=True)]
    return Case(tuple(args), test["expected"] if returns is None else shaped(test["expected"], returns))


def _cases(sketch: Sketch, rng: random.Random, shown: int, hidden: int) -> list[Case]:
    """Drawn calls, the shown ones first; the edges are among the hidden ones. The solution is ours, and runs here."""
    space: dict[str, Any] = {}
    exec(sketch.solution, space)
    drawn: list[tuple[Any, ...]] = []
    for _ in range(TRIES):
        args = sketch.draw(rng)
        if args not in drawn and args not in sketch.edges:
            drawn.append(args)
        if len(drawn) == shown + hidden:
            break
    calls = [*drawn[:shown], *sketch.edges, *drawn[shown:]][: shown + hidden]
    return [Case(args, space["f"](*copy.deepcopy(args))) for args in calls]
