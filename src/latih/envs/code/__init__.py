"""Write a Python function from a description; it is run in the sandbox on hidden cases."""

import random
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, validate_call

from latih.core import ConfigError, Message, Task
from latih.envs.base import MessageEnv
from latih.envs.code.problems import LEVELS, Problem, draw, extended, parameters, problem_of
from latih.envs.registry import register
from latih.envs.spaces import Item, text_of
from latih.rewards.function import LIMITS, Case, Verdict, code_of, credit, grade
from latih.rewards.naive import exploited
from latih.rewards.naive.function import run_tests
from latih.sandbox import backend

__all__ = ["Code"]

SYSTEM = "Write the Python function {name}. Reply with code only."


@register("code")
class Code(MessageEnv):
    """Write a Python function from a description; hidden tests run it in a sandbox.

    The reply is code, or has one block of it. Values come out of the sandbox as plain data and are compared outside,
    with declared types. The reward of the episode is

        R = [all cases right] + partial·[not all right]·credit + reward_invalid·[invalid]

    where `credit` is the share of hidden cases that are right beyond what a constant or an echo gets, and `invalid`
    a reply of several blocks of code, or a function that gives no value at all (but for one that runs out of time,
    which is wrong). Metrics: `correct`, `credit`, `invalid`, `timeout`, `attempts`, and with `watch_exploits`
    `exploited`. See docs/envs/code.md.
    """

    policies = ("random", "expert")
    columns = ("prompt", "tests")
    arenas = ("function", "function_bit", "function_float", "function_list")

    @validate_call
    def __init__(
        self,
        level: Annotated[int, Field(ge=1, le=LEVELS)] = 1,
        examples: Annotated[int, Field(ge=0, le=8)] = 0,
        cases: Annotated[int, Field(ge=2, le=100)] = 8,
        drawn: Annotated[int, Field(ge=0, le=100)] = 0,
        retries: Annotated[int, Field(ge=0)] = 0,
        timeout: Annotated[float, Field(gt=0)] = 5.0,
        partial: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        reward_invalid: float = -0.5,
        watch_exploits: bool = False,
    ) -> None:
        """Set the dials.

        level: of the drawn problems: 1 one operation, 2 two, 3 in words, 4 strings, 5 lists, 6 dicts and algorithms.
        examples: so many cases are shown, where the task does not say it.
        cases: hidden ones of a drawn problem.
        drawn: hidden cases that are drawn for a task with a solution, beside its own; its function must take whatever
            is like its own inputs.
        retries: tries after a first one that fails on a shown example; it is told what came out there.
        timeout: seconds for all cases together.
        partial: what an almost right function is paid.
        reward_invalid: what a reply is paid that is no function.
        watch_exploits: also run a grader of the usual kind, and count who passes it and not ours. Pays nothing.

        Raises ConfigError for retries without examples, SandboxError where there is no sandbox.
        """
        backend()  # a machine without one is told of it before the first episode, and not by it
        if retries and not examples:
            raise ConfigError(f"retries={retries} has nothing to tell without examples: set examples to 1 or more")
        self.level = level
        self.examples = examples
        self.cases = cases
        self.drawn = drawn
        self.retries = retries
        # CPU time beyond it, so that code that hangs runs out of time, and is not killed as one that broke.
        self.limits = LIMITS.within(timeout, timeout + 1)
        self.partial = partial
        self.reward_invalid = reward_invalid
        self.watch_exploits = watch_exploits

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Draw a problem, or take a task; with `drawn` and a solution, draw cases for it.

        Raises ValueError for a task without usable tests or with a wrong solution, SandboxError as `step` does.
        """
        super().reset(seed=seed, options=options)
        self.problem = self._problem()
        self.attempts = 0
        self.latest: str | None = None
        shown = self.problem.examples
        question = self.problem.text + (f"\n{shown}" if shown else "")
        system = SYSTEM.format(name=self.problem.name)
        return [Message(role="system", content=system), Message(role="user", content=question)], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Grade the reply. Raises SandboxError where the sandbox fails, RuntimeError after the end of the episode."""
        self.check_playing()
        problem = self.problem
        source = code_of(text_of(action))
        self.attempts += 1
        if self.attempts <= self.retries:
            # A run with the shown cases alone: what the function says of them is told, and it sees its inputs.
            told = self._feedback(self._grade(source, problem.cases[: problem.shown]))
            if told:
                self.latest = source
                return told, 0.0, False, False, {}
        return self._end(source, self._grade(source, problem.cases))

    def truncate(self, reason: str) -> tuple[float, dict[str, Any]]:
        """The latest try is graded; none at all is invalid."""
        _, reward, _, _, info = self._end(self.latest, self._grade(self.latest, self.problem.cases))
        return reward, info

    def scripted(self, name: str, rng: random.Random) -> str:
        """`expert` knows the solution; `random` writes that of another problem of its kind, drawn without aim.

        Raises ConfigError for an expert of a task without a solution.
        """
        if name not in self.policies:
            super().scripted(name, rng)
        solution = self.problem.solution
        if name == "expert":
            if solution is None:
                raise ConfigError(f"task {self.task.id if self.task else ''!r} has no column solution for an expert")
            return solution.strip()
        level = self.level if self.task is None else rng.randint(1, LEVELS)
        for _ in range(20):
            other = draw(level, rng).solution or ""
            if solution is None or parameters(other) == parameters(solution):
                break
        return other.replace("def f(", f"def {self.problem.name}(").strip()

    def check_task(self, task: Task) -> None:
        """Refuse a task without usable tests. Raises ValueError, ConfigError for a type."""
        problem_of(task, self.examples)

    def _problem(self) -> Problem:
        rng = random.Random(int(self.np_random.integers(2**63)))
        if self.task is None:
            return draw(self.level, rng, self.examples, self.cases)
        problem = problem_of(self.task, self.examples)
        if problem.solution is None or not self.drawn:
            return problem
        return extended(problem, self.drawn, rng, self.limits, f"task {self.task.id!r}")

    def _grade(self, source: str | None, cases: Sequence[Case]) -> Verdict | None:
        problem = self.problem
        if source is None:
            return None
        how: dict[str, Any] = {"returns": problem.returns, "tolerance": problem.tolerance, "limits": self.limits}
        return grade(source, problem.name, cases, **how)

    def _feedback(self, verdict: Verdict | None) -> str:
        """What a shown example gave, where one is wrong. Of the hidden cases nothing is told."""
        if verdict is None:
            return "Reply with one block of code."
        for case, right, said in zip(
            self.problem.cases[: self.problem.shown], verdict.right, verdict.said, strict=True
        ):
            if not right:
                args = ", ".join(map(repr, case.args))
                return f"{self.problem.name}({args}) gave {said}, not {case.expected!r}. Try again."
        return ""

    def _end(self, source: str | None, verdict: Verdict | None) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        self.over = True
        problem = self.problem
        right = verdict is not None and verdict.passed
        share = 0.0 if verdict is None else credit(verdict, problem.cases, problem.shown)
        late = verdict is not None and verdict.timed_out
        invalid = verdict is None or not (late or any(verdict.answered))
        metrics = {
            "correct": float(right),
            "credit": share,
            "invalid": float(invalid),
            "timeout": float(late),
            "attempts": float(self.attempts),
        }
        if self.watch_exploits:
            # A run of its own, after ours: what it tells the policy's code is of no use any more.
            passed = run_tests(source or "", problem.name, problem.cases, "", self.limits) if not right else {}
            metrics |= exploited(right, passed.values())
        reward = 1.0 if right else self.reward_invalid if invalid else self.partial * share
        return "Right." if right else "Wrong.", reward, True, False, {"metrics": metrics}
