"""The generator of tasks: bugs put into a package, or an older release of it, and the tests that tell.

For each package: fetch the sdist; run its tests twice and keep those that pass both times; find wrong expectations
that the right code fails. For each candidate, a random bug or the older release: run the tests; what passed and now
does not is fail-to-pass, what still passes is pass-to-pass. Both must be there; beside the failing test that is shown,
enough must stay hidden that guessing does not pay (`latih.envs.repo_repair.forms`); and the forms must come out right
on the right code, and tell nothing of their secrets on the broken code.
"""

import hashlib
import itertools
import os
import random
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from latih.core import LatihError, SandboxError, Task, derive_seed
from latih.data.packages import KIT, Sdist, find_sdist, read_sdist
from latih.envs.repo_repair.expectations import Canary, function_of, show_test, untellable, wrong_expectations
from latih.envs.repo_repair.forms import MOST_SECRETS, VARIANTS, Draw, Secret, draw_forms, enough
from latih.envs.repo_repair.layout import lay_out
from latih.envs.repo_repair.mutations import Bug, find_bugs
from latih.envs.repo_repair.project import command, shown_command, visible_files
from latih.rewards.looks import READERS
from latih.rewards.repo import LIMITS, MAX_SOURCES, Edit, Form, Report, RepoTask, apply, pick, run_tests
from latih.sandbox import Limits, Workspace

PACKAGES = ["funcy==2.0", "parse==1.22.4", "xmltodict==1.0.4", "parse==1.22.3..1.22.4"]
"""Small, without dependencies, and with tests in their sdists, of which a bug breaks several: BSD, MIT, MIT."""
SLOW = 8.0
"""Seconds that a package's tests may take."""
STEPS = (4.0, 8.0, 2 * SLOW)
"""Twice what they took, as grading shares its core; rounded up so coarsely that a second build writes the same rows."""
DRAWS = 8
"""Forms that are drawn for a task, until none of the known readers tells right from wrong."""
ROUNDS = 3
"""Times that a place for a wrong expectation is looked for in each test function."""
TABLES = 6
"""Tables of a package that are tried."""
AHEAD = 4
"""Candidates of a package that are under way, or wait for a core, at once."""

IN_PYTHON = {
    "cachecontrol", "certifi", "chardet", "colorama", "dependency-groups", "distlib", "distro", "html5lib",
    "idna", "importlib-metadata", "importlib-resources", "jaraco-context", "jaraco-functools", "jaraco-text",
    "mock", "more-itertools", "msgpack", "ordered-set", "pathlib2", "pip", "platformdirs", "pygments",
    "pyparsing", "pyproject-hooks", "requests", "resolvelib", "rich", "setuptools", "simplejson", "six",
    "tenacity", "tomli", "tomli-w", "toml", "truststore", "typeguard", "typing-extensions", "urllib3",
    "webencodings", "wheel", "zipp",
}  # fmt: skip
"""What stands in Python's own library under another name, or within pip and setuptools, which come with Python."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Wrong:
    """A wrong expectation, and the test functions that fail by it."""

    canary: Canary
    functions: frozenset[str]


class Package:
    """A package whose tests run here."""

    def __init__(self, code: Sdist, tests: Sdist, seed: int) -> None:
        """Run its tests. Raises LatihError where they are no use, or cannot be had."""
        self.code, self.tests = code, tests
        self.seed = derive_seed(seed, code.package, code.version, tests.version)
        self.rng = random.Random(self.seed)
        self.files = read_sdist(tests)
        self.code_files = read_sdist(code)
        self.layout = lay_out(self.files)
        older = lay_out(self.code_files)
        self.sources = sorted({*self.layout.sources, *older.sources})
        for what, names in (("sources", self.sources), ("other files", self.layout.fixed)):
            if sum(map(len, pick(self.files, names).values())) > MAX_SOURCES // 2:
                raise LatihError(f"{self.name}: its {what} are too large: take another package")
        if not self.layout.sources or not self.layout.test_files:
            raise LatihError(f"{self.name}: no sources or no tests in its sdist: take another package")
        right = self.run(pick(self.files, self.sources))
        again = self.run(pick(self.files, self.sources))
        self._other = right.outcomes | again.outcomes
        both = right.outcomes.items() & again.outcomes.items()
        self.passing = {id for id, outcome in both if outcome == "passed"}
        took = max(right.seconds, again.seconds)
        if len(self.passing) < 5 or took > SLOW:
            raise LatihError(
                f"{self.name}: {len(self.passing)} tests pass in {took:.1f} s; at least 5 in {SLOW:.0f} s "
                "are needed: take another package"
            )
        self.seconds = next(each for each in STEPS if 2 * took <= each)
        # By the rounded time, and generous: a busy machine shall not decide what becomes a task.
        self.limits = LIMITS.within(4 * self.seconds, 2 * self.seconds)
        self.wrong = self._find_wrong()

    @property
    def name(self) -> str:
        """Package and release, or releases."""
        older = "" if self.code == self.tests else f"{self.code.version}.."
        return f"{self.tests.package} {older}{self.tests.version}"

    def run(self, sources: dict[str, bytes], edits: Sequence[Edit] = (), limits: Limits = LIMITS) -> Report:
        """Run its tests, with edits made to them, against sources."""
        lay = self.layout
        tests = apply(pick(self.files, lay.support), edits)
        code = pick(self.files, lay.fixed) | sources
        return run_tests(code, tests, lay.roots, lay.test_files, limits)

    def bugs(self) -> list[Bug]:
        """Every bug there is to make, in random order."""
        found = []
        for path in self.layout.sources:
            if not re.search(r"(^|/)_?(version|__main__|compat\w*)\.py$", path):
                found += find_bugs(path, self.code_files[path].decode(), self.rng)
        self.rng.shuffle(found)
        return found

    def task(self, edits: Sequence[Edit], kind: str) -> RepoTask | str:
        """The task that a bug makes, or why it makes none. Threads may call it at once, in any order."""
        rng = random.Random(derive_seed(self.seed, _key(edits)))
        sources = apply(pick(self.code_files, self.sources), edits)
        report = self.run(sources, limits=self.limits)
        f2p = sorted(id for id in self.passing if report.outcomes.get(id) != "passed")
        p2p = sorted(self.passing - {*f2p})
        failing = sorted({function_of(id) for id in f2p})
        if report.forged or not enough(len(failing) - 1) or len(p2p) < 3 * len(f2p):
            return "no test fails" if not f2p else "too few test functions fail, or too few tests pass"
        task = RepoTask(
            code=self.code,
            tests=self.tests,
            bug=list(edits),
            roots=self.layout.roots,
            sources=self.sources,
            fixed=self.layout.fixed,
            support=self.layout.support,
            test_files=self.layout.test_files,
            fail_to_pass=f2p,
            pass_to_pass=p2p,
            forms=[],
            shown=f2p[0],
            kind=kind,
            seconds=self.seconds,
        )
        secrets = self._secrets(f2p, report.lines, rng)
        if not enough(len(secrets)):
            return "too few tests fail whose expectation must be guessed"
        guessed = {each.function for each in secrets}
        shown = sorted(failing, key=lambda each: (each in guessed, len(self._shown(each)[0])))[:3]
        for function in shown:
            id = next(id for id in f2p if function_of(id) == function)
            each = self._with_forms(task.model_copy(update={"shown": id}), secrets, sources, report, rng)
            if each and (failure := self._failure(each)):
                return each.model_copy(update={"failure": failure})
        return "no test can be shown by itself, or no wrong expectations for the others"

    def _secrets(self, f2p: Sequence[str], lines: dict[str, int], rng: random.Random) -> list[Secret]:
        """The test functions all of whose ids fail at one line, where a wrong expectation cannot be told."""
        found = []
        for function, group in itertools.groupby(f2p, function_of):
            ids = frozenset(group)
            every = {id for id in self.passing if function_of(id) == function}
            at = {lines.get(id, 0) for id in ids}
            if ids == every and len(at) == 1:
                path, _, name = function.partition("::")
                edits = untellable(path, self.files[path].decode(), name, at.pop(), VARIANTS, rng)
                if len(edits) == VARIANTS:
                    found.append(Secret(function, ids, tuple(edits)))
        return found

    def _shown(self, function: str) -> tuple[str, set[str]]:
        path, _, name = function.partition("::")
        return show_test(self.files[path].decode(), name)

    def _find_wrong(self) -> list[Wrong]:
        """Wrong expectations that the right code fails, one for a region at most."""
        right = pick(self.files, self.sources)
        found: dict[tuple[str, str], Wrong] = {}
        for number in range(ROUNDS):
            tried = [
                canary
                for path in self.layout.test_files
                for canary in wrong_expectations(path, self.files[path].decode(), self.rng)
                if (path, canary.region) not in found
            ]
            tables = [each for each in tried if each.is_table][:TABLES] if number == 0 else []
            lone = [each for each in tried if not each.is_table]
            for group in ([lone] if lone else []) + [[each] for each in tables]:
                outcomes = self.run(right, [each.edit for each in group]).outcomes
                failed = {function_of(id) for id in self._news(outcomes)}
                for each in group:
                    own = f"{each.edit.path}::{each.region}"
                    functions = failed if each.is_table else failed & {own}
                    if functions:
                        found[each.edit.path, each.region] = Wrong(each, frozenset(functions))
        return list(found.values())

    def _news(self, outcomes: dict[str, str]) -> set[str]:
        """The ids that fail, and pass or do not exist where nothing is changed."""
        known = {id for id, outcome in self._other.items() if outcome != "passed"}
        return {id for id, outcome in outcomes.items() if outcome == "failed"} - known

    def _with_forms(
        self,
        task: RepoTask,
        secrets: Sequence[Secret],
        sources: dict[str, bytes],
        report: Report,
        rng: random.Random,
    ) -> RepoTask | None:
        """The task with forms that come out right on the right code, and alike on the broken code. None without."""
        kept = self._shown(function_of(task.shown))[1]
        path = task.shown.partition("::")[0]
        visible = {f"{path}::{name}" for name in kept}  # the shown test, and what it refers to
        hidden = [each for each in secrets if each.function not in visible]
        hidden = rng.sample(hidden, min(len(hidden), MOST_SECRETS))
        if not enough(len(hidden)):
            return None
        failing = {function_of(id) for id in task.fail_to_pass}
        others = [
            each.canary.edit
            for each in self.wrong
            if not each.functions & failing and not (each.canary.edit.path == path and each.canary.region in kept)
        ]
        for _ in range(DRAWS):
            draws, chance = draw_forms(hidden, others, rng)
            if not self._told_apart(hidden, draws, report.lines):
                break
        else:
            return None
        forms = []
        for draw in draws:
            form = self._form(draw.edits)
            if form is None or {*form.failing, *form.gone} & {*task.fail_to_pass} != draw.changed:
                return None
            # Else the broken code would show which expectations are wrong.
            seen = self.run(sources, draw.edits, self.limits)
            if any(seen.at(id) != report.at(id) for id in task.fail_to_pass):
                return None
            forms.append(form)
        return task.model_copy(update={"forms": forms, "odds": chance})

    def _told_apart(self, secrets: Sequence[Secret], draws: Sequence[Draw], lines: dict[str, int]) -> bool:
        """Whether a reader finds all that must be guessed, in every form, by the look of the expectations."""
        seen = []
        for draw in draws:
            tests = apply(pick(self.files, self.layout.test_files), draw.edits)
            for each in secrets:
                module = tests[each.function.partition("::")[0]].decode()
                seen.append((module, lines[min(each.ids)], each.ids.isdisjoint(draw.changed)))
        return any(all(reader(module, line) == right for module, line, right in seen) for reader in READERS.values())

    def _form(self, edits: Sequence[Edit]) -> Form | None:
        outcomes = self.run(pick(self.files, self.sources), edits, self.limits).outcomes
        failing = sorted(self._news(outcomes))
        gone = sorted(self.passing - outcomes.keys())
        passed = {id for id, outcome in outcomes.items() if outcome == "passed"}
        if self.passing - {*failing, *gone} - passed:
            return None
        return Form(edits=list(edits), failing=failing, gone=gone)

    def _failure(self, task: RepoTask) -> str | None:
        """What pytest says of the shown test. None where it does not fail alone, or the right code fails it too."""
        files = visible_files(task)
        with Workspace(files) as workspace:
            told = command(workspace, task.roots, shown_command(task), self.limits)
        with Workspace(files | pick(self.files, self.sources)) as workspace:
            right = command(workspace, task.roots, shown_command(task), self.limits)
        lines = [line[1:].strip() for line in told.stdout.decode(errors="replace").splitlines() if line[:2] == "E "]
        if told.code != 1 or right.code != 0 or not lines:
            return None
        return "\n".join(lines[:4])[:400]


def build_tasks(
    count: int, packages: Sequence[str] = PACKAGES, seed: int = 0, bugs: int = 1, progress: Progress = lambda line: None
) -> Iterator[Task]:
    """Tasks as they are found, `count` of them or fewer; each of `bugs` bugs at once.

    A candidate of each package is tried in turn, so one whose bugs seldom make tasks does not hold the others up.

    A package is `name`, `name==version`, or `name==older..newer` for one task from two releases. Raises LatihError for
    one that the index does not have; one whose tests are no use here is passed over, and `progress` told.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool, ExitStack() as first:  # its work is waiting for the sandbox
        first.callback(pool.shutdown, cancel_futures=True)  # an interruption waits for what is under way alone
        sources = deque(_tasks(each, seed, bugs, progress, pool) for each in dict.fromkeys(packages))
        made = 0
        while sources and made < count:
            source = sources.popleft()
            for task in itertools.islice(source, 1):  # nothing where it has come to its end
                sources.append(source)
                if task is not None:
                    made += 1
                    progress(f"{made}/{count} {task.id}")
                    yield task


def _tasks(wanted: str, seed: int, bugs: int, progress: Progress, pool: ThreadPoolExecutor) -> Iterator[Task | None]:
    """For each candidate of a package its task, or None where it makes none; in order, whichever is done first."""
    name, _, version = wanted.partition("==")
    _check_out_of_sight(name)
    older, _, newer = version.rpartition("..")
    tests = find_sdist(name, newer or None)
    code = find_sdist(name, older) if older else tests
    try:
        package = Package(code, tests, seed)
    except SandboxError:  # no package is to blame
        raise
    except LatihError as exc:
        progress(str(exc))
        return
    candidates = iter([([], "release")] if older else _candidates(package.bugs(), bugs))
    under_way: deque[tuple[str, Future[RepoTask | str]]] = deque()
    while True:
        for edits, kind in itertools.islice(candidates, AHEAD - len(under_way)):
            under_way.append((_key(edits), pool.submit(package.task, edits, kind)))
        if not under_way:
            return
        key, future = under_way.popleft()
        task = future.result()
        if isinstance(task, RepoTask):
            yield Task(id=f"{name}-{older or tests.version}-{key}", repo=task.model_dump())
            continue
        if older:
            progress(f"{package.name}: {task}")
        yield None


def _check_out_of_sight(name: str) -> None:
    """Raises LatihError for a package whose code, or a copy, lies where the policy can read it."""
    plain = re.sub(r"[-_.]+", "-", name.lower())
    if plain in {each.partition("==")[0] for each in KIT}:
        raise LatihError(f"{name} is part of the test kit, which the policy can read: take another package")
    if plain.replace("-", "_") in sys.stdlib_module_names or plain in IN_PYTHON or plain.startswith("backports-"):
        raise LatihError(f"{name}, or a copy of it, comes with Python, which the policy can read: take another package")


def _candidates(found: Sequence[Bug], bugs: int) -> Iterator[tuple[list[Edit], str]]:
    """Groups of bugs that can be made at once, each once, and what they are called."""
    seen = set()
    for at in range(0, len(found) - bugs + 1, bugs):
        group = found[at : at + bugs]
        edits = [bug.edit for bug in group]
        if not _overlap(edits) and (key := _key(edits)) not in seen:
            seen.add(key)
            yield edits, " + ".join(bug.kind for bug in group)


def _overlap(edits: Sequence[Edit]) -> bool:
    places = sorted((each.path, each.start, each.start + len(each.old)) for each in edits)
    return any(a[0] == b[0] and b[1] < a[2] for a, b in itertools.pairwise(places))


def _key(edits: Sequence[Edit]) -> str:
    text = "\n".join(each.model_dump_json() for each in edits)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
