"""Problems: a description, cases that are shown, cases that are hidden, and a solution."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from latih.core import Task
from latih.envs.code.families import Args, Sketch, families
from latih.envs.code.variations import variations
from latih.envs.spaces import messages_of
from latih.rewards.caller import pack
from latih.rewards.function import LATE, NOTHING, Case, code_of, grade, values
from latih.rewards.values import matches, parse_type, shaped
from latih.sandbox import Limits

Function = Callable[..., Any]
LEVELS = max(families)
TRIES = 50
"""Draws of calls that are new, five for each case at least, before fewer cases have to do."""
SEARCH = 100
"""Draws of a call that tells a slip, before it is taken for none."""
FLOATS = 1e-6
"""The tolerance of a drawn problem whose values are floats."""
ROUNDING = 1e-9
"""The tolerance of a task that has a solution, where it does not say."""


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
            tolerance = FLOATS if "float" in sketch.returns else 0.0
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
        solution = extra.get("solution")
        if not isinstance(solution, str | None):
            raise TypeError(f"its solution is code, a text, and no {type(solution).__name__}")
        solution = solution if solution and solution.strip() else None  # what is missing, some files have as ""
        name, tolerance = str(extra.get("name", "f")), extra.get("tolerance")
        # Drawn floats are not chosen so that every right way to work them out rounds alike.
        tolerance = float(tolerance if tolerance is not None else ROUNDING if solution else 0.0)
    except KeyError as exc:
        raise ValueError(f"{where} has no column or key {exc}: tests are objects with args and expected") from None
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"{where}: {exc}") from None
    if not 0 <= shown < len(cases):
        raise ValueError(f"{where} shows {shown} of {len(cases)} tests: at least one has to stay hidden")
    text = messages_of(task.prompt)[-1].text
    return Problem(text, cases, shown, name, returns, tolerance, solution)


def extended(problem: Problem, count: int, rng: random.Random, limits: Limits, where: str) -> Problem:
    """The problem with up to `count` hidden cases more: inputs like its own, and what its solution returns for them.

    The solution runs in the sandbox, once for the values and once to be graded on all cases as a reply is: what it
    fails, is too slow for, or does not return twice is dropped. It has half of a reply's time, so that there is
    enough for others. Raises SandboxError; ValueError, which begins with `where`, for a solution that is wrong.
    """
    source = code_of(problem.solution or "") or ""
    inputs = variations([case.args for case in problem.cases], count, rng)
    # Of CPU time, which does not hang on what else the machine does.
    quarter, half = (limits.model_copy(update={"cpu": limits.cpu / share}) for share in (4, 2))
    found = values(source, problem.name, inputs, quarter)
    drawn = [Case(inputs[number], value) for number, value in sorted(found.items())]
    how: dict[str, Any] = {"returns": problem.returns, "tolerance": problem.tolerance, "limits": half}
    verdict = grade(source, problem.name, [*problem.cases, *drawn], **how)
    own = len(problem.cases)
    for case, right, said in zip(problem.cases, verdict.right, verdict.said, strict=False):
        if not right and said not in (NOTHING, LATE):
            call = f"{problem.name}({', '.join(map(repr, case.args))})"
            raise ValueError(
                f"{where}: its solution says {said} for its own test {call} == {case.expected!r}: mend one of them, or "
                "set env.args.drawn=0"
            )
    kept = [case for case, right in zip(drawn, verdict.right[own:], strict=True) if right]
    return replace(problem, cases=(*problem.cases, *kept))


def _case(test: Any, returns: str | None, types: Sequence[str] | None) -> Case:
    args = list(test["args"])
    if types is not None:
        args = [shaped(value, declared) for value, declared in zip(args, types, strict=True)]
    return Case(tuple(args), test["expected"] if returns is None else shaped(test["expected"], returns))


def _cases(sketch: Sketch, rng: random.Random, shown: int, hidden: int) -> list[Case]:
    """Drawn calls, the shown ones first.

    Hidden are the edges, a call for each slip of the sketch that they do not tell, and drawn ones, one at least.
    """
    ours = _made(sketch.solution)
    drawn: list[Args] = []
    for _ in range(max(TRIES, 5 * (shown + hidden))):
        args = sketch.draw(rng)
        if args not in drawn and args not in sketch.edges:
            drawn.append(args)
        if len(drawn) == shown + hidden:
            break
    telling = list(sketch.edges)
    for old, new in sketch.slips:
        if old in sketch.solution:
            theirs = _made(sketch.solution.replace(old, new))
            looked_at = _looked_at(sketch, telling, rng)
            found = next((args for args in looked_at if _differ(ours, theirs, args, sketch.returns)), None)
            if found is not None and found not in telling:
                telling.append(found)
    telling = [args for args in telling if args not in drawn[:shown]][: hidden - 1]
    calls = [*drawn[:shown], *telling, *(args for args in drawn[shown:] if args not in telling)]
    return [Case(args, ours(*copy.deepcopy(args))) for args in calls[: shown + hidden]]


def _looked_at(sketch: Sketch, telling: Sequence[Args], rng: random.Random) -> Iterator[Args]:
    """Calls that may tell a slip: those that are there anyway, and others."""
    yield from list(telling)
    for _ in range(SEARCH):
        yield sketch.draw(rng)


def _differ(ours: Function, theirs: Function, args: Args, returns: str) -> bool:
    try:
        value = theirs(*copy.deepcopy(args))
    except Exception:
        return True
    return not matches(ours(*copy.deepcopy(args)), pack(value), returns, FLOATS)


def _made(source: str) -> Function:
    """The function of a source, which is ours, and runs here."""
    space: dict[str, Any] = {}
    exec(source, space)
    made: Function = space["f"]
    return made
