"""Grade a repaired repository: its declared source files, in a fresh workspace, against tests that it never saw.

The code under test shares a process with the tests, so it can make every test of that process pass: by patching pytest,
by values that equal everything, by reading what is expected in its caller's frame, by writing results itself. So the
tests run in several *forms*, each in a sandbox of its own. In a form, some tests carry a wrong expectation that right
code must fail; which ones, only the parent knows. Of the tests that pass already, broken code says the truth; what a
cheat must guess are hidden fail-to-pass tests, right and wrong (`odds` says how well that may go).
"""

import inspect
import json
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from latih.core.errors import LatihError
from latih.core.files import scratch
from latih.core.schema import Record
from latih.data.packages import Sdist, read_sdist, test_kit
from latih.rewards import repo_runner
from latih.sandbox import Limits, run

LIMITS = Limits(wall=60.0, cpu=60.0, memory=1024, disk=32, output=8 << 20)
"""Of one run of the tests. Graded, all forms of a task share the time of `grading_limits`."""
SPARE = 2
"""The forms of a task may take so many times what the right code took to build it."""
MAX_SOURCE = 1 << 20
"""Bytes of one source file."""
MAX_SOURCES = 8 << 20
"""Bytes of all of them. With as much again that the code needs beside them, they fit the disk of a run."""
INI = "latih.ini"
CONFIG = "[pytest]\npython_files = *.py\n"


class Edit(Record):
    """A piece of text replaced by another."""

    path: str
    start: int
    """In characters from the start of the file."""
    old: str
    new: str


class Form(Record):
    """The tests with wrong expectations put in, and the ids that therefore must fail, or have another name."""

    edits: list[Edit]
    failing: list[str]
    gone: list[str] = []


class RepoTask(Record):
    """A broken project, and how its repair is judged. Test ids are pytest's."""

    code: Sdist
    """Where the sources come from."""
    tests: Sdist
    """Where the tests, and the sources that pass them, come from: `code` itself, or a later release."""
    bug: list[Edit] = []
    """Puts the bug into `code`. Empty where `code` is an older release."""
    roots: list[str]
    """The folders for `sys.path`."""
    sources: list[str]
    """The declared source files: all that is taken from the policy."""
    fixed: list[str] = []
    """Other files that the code needs, taken from the sdist of the tests."""
    support: list[str]
    """Test modules, and what lies beside them."""
    test_files: list[str]
    """Those of `support` that pytest is given."""
    fail_to_pass: list[str]
    pass_to_pass: list[str]
    forms: list[Form]
    shown: str
    """The one test of `fail_to_pass` that the policy is shown. No form changes it."""
    failure: str = ""
    """What pytest says of it."""
    kind: str = ""
    seconds: float = 8.0
    """The right code passes the tests in half of it, as measured in the build; 8 where a row does not say."""
    odds: float = 1.0
    """The chance that guessing scores (`odds`). 1 where the generator did not reckon it."""


@dataclass(frozen=True)
class Report:
    """What came out of one run of tests. The code under test may have written it."""

    outcomes: dict[str, str]
    """passed, failed, error or skipped, by id. A test that is not there was not collected, or not reached."""
    lines: dict[str, int] = field(default_factory=dict)
    """Where in its own module each failed, by id; 0 where it did not, or elsewhere. For generators."""
    forged: bool = False
    """There was a line that the runner does not write, or two for one test."""
    seconds: float = 0.0
    stdout: str = ""

    def at(self, id: str) -> tuple[str, int]:
        """The outcome of a test, and its line."""
        return self.outcomes.get(id, "absent"), self.lines.get(id, 0)


@dataclass(frozen=True)
class Verdict:
    """The grade of a repair."""

    score: float
    """1 where every form came out as it must, else 0."""
    fail_to_pass: float = 0.0
    """The fraction of fail-to-pass tests that passed wherever they had to."""
    pass_to_pass: float = 0.0
    canaries: float = 0.0
    """The fraction of wrong expectations that failed."""
    faults: dict[str, str] = field(default_factory=dict)
    """What came out otherwise than it must: the outcome by id. Not for the policy to see."""
    timed_out: bool = False
    """The time for all forms was used up."""


def apply(files: Mapping[str, bytes], edits: Iterable[Edit]) -> dict[str, bytes]:
    """The files with edits made, whose places all count in the given text. Raises LatihError where one does not fit."""
    changed = dict(files)
    for edit in sorted(edits, key=lambda each: (each.path, -each.start)):
        text = changed.get(edit.path, b"").decode()
        if text[edit.start : edit.start + len(edit.old)] != edit.old:
            raise LatihError(f"{edit.path}: an edit of the task does not fit the file: build the task again")
        text = text[: edit.start] + edit.new + text[edit.start + len(edit.old) :]
        changed[edit.path] = text.encode()
    return changed


def pick(files: Mapping[str, bytes], names: Iterable[str]) -> dict[str, bytes]:
    """Those of the files that there are."""
    return {name: files[name] for name in names if name in files}


def broken(task: RepoTask) -> dict[str, bytes]:
    """The declared sources as the policy gets them. Raises LatihError where the sdist cannot be had."""
    return apply(pick(read_sdist(task.code), task.sources), task.bug)


def solution(task: RepoTask) -> dict[str, bytes]:
    """The declared sources that pass. Raises LatihError where the sdist cannot be had."""
    return pick(read_sdist(task.tests), task.sources)


def odds(right: int, wrong: int) -> float:
    """The best chance to tell `right` right expectations, and `wrong` wrong ones, apart by a coin for each.

    A coin comes down the same way wherever the same text is seen: a test that several forms leave as it is counts once.
    The coin is as biased as suits the cheat.

    >>> odds(1, 1), odds(4, 4) == 1 / 256, round(1 / odds(3, 6))
    (0.25, True, 308)
    """
    bias = right / (right + wrong)
    return bias**right * (1 - bias) ** wrong


def grading_limits(task: RepoTask) -> Limits:
    """What all forms of a task may take together. What one of them leaves, the next may take."""
    return LIMITS.within(SPARE * len(task.forms) * task.seconds)


def grade(
    task: RepoTask,
    files: Mapping[str, bytes],
    limits: Limits | None = None,
    origin: Mapping[str, bytes] | None = None,
) -> Verdict:
    """Judge the policy's files, of which only the declared sources are looked at. `origin`: instead of the sdist.

    `limits`: what all forms may take together (None: `grading_limits`); a form that it leaves no time counts as absent.

    The score is 1 if every fail-to-pass and every pass-to-pass test passes in every form that does not change it, and
    every changed one fails, as an assertion fails; else 0, as where no form wants a fail-to-pass test to pass. Not
    there, not collected, skipped, an error, a second result for one test: all of it is no pass, and no failure either.
    Sources larger than MAX_SOURCE, or than MAX_SOURCES together, are not run, and score 0.
    Raises SandboxError and LatihError (no sdist, no kit) for faults of the infrastructure, never for what the files do.
    """
    sources = pick(files, task.sources)
    if any(len(each) > MAX_SOURCE for each in sources.values()):
        return Verdict(0.0, faults={"": f"a source file is larger than {MAX_SOURCE} bytes"})
    if sum(map(len, sources.values())) > MAX_SOURCES:
        return Verdict(0.0, faults={"": f"the source files are larger than {MAX_SOURCES} bytes"})
    origin = read_sdist(task.tests) if origin is None else origin
    wanted: dict[str, list[str]] = {"passed": [], "failed": []}
    faults: dict[str, str] = {}
    limits = limits or grading_limits(task)
    left = limits.wall
    for form in task.forms:
        report = Report({})
        if left > 0:
            report = run_tests(
                pick(origin, task.fixed) | sources,
                apply(pick(origin, task.support), form.edits),
                task.roots,
                task.test_files,
                limits.within(left, min(left, limits.cpu)),
            )
            left -= report.seconds
        changed = {*form.failing, *form.gone}
        passing = [each for each in (*task.fail_to_pass, *task.pass_to_pass) if each not in changed]
        for must, ids in (("passed", passing), ("failed", form.failing)):
            wanted[must] += ids
            for each in ids:
                outcome = "forged" if report.forged else report.outcomes.get(each, "absent")
                if outcome != must:
                    faults[f"{must}:{each}"] = outcome
    return Verdict(
        score=float(not faults and not {*wanted["passed"]}.isdisjoint(task.fail_to_pass)),
        fail_to_pass=_share(task.fail_to_pass, "passed", faults),
        pass_to_pass=_share(task.pass_to_pass, "passed", faults),
        canaries=_share(wanted["failed"], "failed", faults),
        faults=faults,
        timed_out=left <= 0,
    )


def run_tests(
    code: Mapping[str, bytes],
    tests: Mapping[str, bytes],
    roots: Sequence[str],
    test_files: Sequence[str],
    limits: Limits = LIMITS,
) -> Report:
    """Run test files against code in a fresh sandbox. The tests lie outside of its working directory, read-only."""
    kit = test_kit()
    nonce = secrets.token_hex(16)  # no seed: it says nothing but which run wrote a line
    with scratch("latih-tests-") as top:
        folder = top / "tests"
        for name, data in {INI: CONFIG.encode(), **tests}.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        for each in (top, folder, *folder.rglob("*")):  # the sandbox reads as another user
            each.chmod(0o755 if each.is_dir() else 0o644)
        order = {
            "kit": str(kit),
            "roots": list(roots),
            "folder": str(folder),
            "ini": str(folder / INI),
            "files": [str(folder / name) for name in test_files],
            "nonce": nonce,
        }
        result = run(
            [sys.executable, "-I", "-S", "-c", inspect.getsource(repo_runner)],
            files=dict(code),
            stdin=json.dumps(order).encode(),
            limits=limits,
            read_only=[kit, folder],
        )
    outcomes, lines, forged = _read(result.channel, nonce)
    told = result.stdout.decode(errors="replace")
    return Report(outcomes, lines, forged or result.cut, result.seconds, told)


def _read(channel: bytes, nonce: str) -> tuple[dict[str, str], dict[str, int], bool]:
    outcomes: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line in channel.splitlines():
        try:
            match json.loads(line):
                case {"nonce": said, "id": str(id), "outcome": str(outcome), "line": int(at), **rest} if (
                    said == nonce and not rest and id not in outcomes
                ):
                    outcomes[id], lines[id] = outcome, at
                case _:
                    return {}, {}, True
        except (ValueError, RecursionError):
            return {}, {}, True
    return outcomes, lines, False


def _share(ids: Sequence[str], must: str, faults: Mapping[str, str]) -> float:
    return sum(f"{must}:{each}" not in faults for each in ids) / max(1, len(ids))
