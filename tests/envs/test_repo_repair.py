import ast
import random
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from latih.cli.main import main
from latih.core import ConfigError, LatihError, Message, SandboxError, Task, ToolCall
from latih.core.cache import cache_folder
from latih.data import DataSettings, read_tasks
from latih.data.packages import find_sdist, read_sdist
from latih.data.packages import test_kit as kit
from latih.envs import messages_of, repo_repair
from latih.envs.repo_repair import TASKS, RepoRepair, build
from latih.envs.repo_repair.build import build_tasks
from latih.envs.repo_repair.expectations import function_of, show_test, wrong_expectations
from latih.envs.repo_repair.expert import mend
from latih.envs.repo_repair.layout import lay_out
from latih.envs.repo_repair.mutations import find_bugs
from latih.rewards.arenas.repo import BROKEN, CASES, RIGHT, SOURCE, TESTS, Shop
from latih.rewards.looks import READERS, cheat
from latih.rewards.repo import Edit, RepoTask, apply, broken, grade, grading_limits, odds
from latih.rollout import PHASES, RolloutSettings, plan, read_rows
from latih.sandbox import Limits, Result, Workspace
from latih.train.config import resolve
from tests.data.test_packages import sdist
from tests.envs.playing import play
from tests.missing import skip

BUNDLED = read_tasks(TASKS, columns=("repo",))


# The generator's parts ------------------------------------------------------------------------------------------------


def test_bugs_by_hand() -> None:
    source = "def f(a, b):\n    if a < b:\n        return a - 1\n    return [a] if not b else a.lower()\n"
    bugs = find_bugs("m.py", source, random.Random(0))
    assert [(bug.kind, bug.edit.old, bug.edit.new) for bug in bugs] == [
        ("wrong variable", "a", "b"),
        ("comparison", " < ", " <= "),
        ("wrong variable", "b", "a"),
        ("dropped branch", "return a - 1", "pass"),
        ("dropped return", "return a - 1", "a - 1"),
        ("swapped", "a - 1", "1 - a"),
        ("wrong variable", "a", "b"),
        ("arithmetic", " - ", " + "),
        ("constant", "1", "0"),
        ("constant", "1", "2"),
        ("dropped return", "return [a] if not b else a.lower()", "[a] if not b else a.lower()"),
        ("wrong variable", "a", "b"),
        ("condition", "not b", "b"),
        ("wrong variable", "b", "a"),
        ("wrong variable", "a", "b"),
        ("wrong name", "lower", "upper"),
    ]


def test_bugs_fit_the_text_and_leave_python() -> None:
    for path in (Path(ast.__file__), Path(random.__file__)):
        text = path.read_text(encoding="utf-8")
        bugs = find_bugs("m.py", text, random.Random(1))
        assert len(bugs) > 300
        assert bugs == find_bugs("m.py", text, random.Random(1))
        for bug in random.Random(2).sample(bugs, 40):
            changed = apply({"m.py": text.encode()}, [bug.edit])["m.py"].decode()
            assert changed != text
            ast.parse(changed)


def test_no_bugs_where_nothing_runs() -> None:
    source = 'def f(a: "1 < 2" = None) -> 3:\n    """1 < 2"""\n    x: int = 5\nif __name__ == "__main__":\n    f(1)\n'
    assert find_bugs("m.py", source, random.Random(0)) == []
    assert find_bugs("m.py", "x = (", random.Random(0)) == []
    assert [bug.edit.start for bug in find_bugs("m.py", "é = 'é' < x\n", random.Random(0))] == [7]


def test_layout() -> None:
    names = ["setup.py", "shop/__init__.py", "shop/data.json", "shop/tests/test_a.py", "shop/tests/a.txt"]
    names += ["shop/__pycache__/__init__.cpython-311.pyc", "shop/tests/test_a.pyc"]  # they would tell
    lay = lay_out(dict.fromkeys([*names, "docs/conf.py", "test_b.py", "README.md", "one.py"], b""))
    assert (lay.roots, lay.sources, lay.fixed) == (["."], ["one.py", "shop/__init__.py"], ["shop/data.json"])
    assert lay.test_files == ["shop/tests/test_a.py", "test_b.py"]
    assert lay.support == ["shop/tests/a.txt", "shop/tests/test_a.py", "test_b.py"]
    lay = lay_out(dict.fromkeys(["src/p/__init__.py", "src/p/a.py", "tests/test_a.py", "p/x.py"], b""))
    assert (lay.roots, lay.sources) == (["src"], ["src/p/__init__.py", "src/p/a.py"])


MODULE = """import shop

TABLE = (("ox", "oxen"),)
OTHER = 5


def helper():
    return OTHER


def test_a():
    assert shop.f("in") == "out"


class TestB:
    size = 3

    def test_b(self):
        assert shop.g(helper()) == self.size

    def test_c(self):
        assert shop.f(TABLE) == shop.f(1)
"""


def test_one_test_is_shown_with_what_it_needs() -> None:
    shown, kept = show_test(MODULE, "TestB::test_b")
    assert kept == {"TestB::test_b", "helper", "OTHER"}
    assert [type(each).__name__ for each in ast.parse(shown).body] == ["Import", "Assign", "FunctionDef", "ClassDef"]
    assert "test_a" not in shown
    assert "test_c" not in shown
    assert "TABLE" not in shown
    assert show_test(MODULE, "test_a")[1] == {"test_a"}


def test_wrong_expectations_never_touch_what_the_code_is_given() -> None:
    found = wrong_expectations("t.py", MODULE, random.Random(0))
    assert [(each.region, each.is_table) for each in found] == [("TABLE", True), ("test_a", False)]
    assert (found[1].edit.start, found[1].edit.old) == (MODULE.index('"out"'), '"out"')
    drawn = {wrong_expectations("t.py", MODULE, random.Random(seed))[1].edit.new for seed in range(40)}
    assert all(sum(a != b for a, b in zip(new, '"out"', strict=True)) == 1 for new in drawn)
    assert len(drawn) > 20, "no rule says from the wrong one which was right"


MORE = "from shop import cheapest, total\n" + "".join(
    f"\n\ndef test_total_{n}():\n    assert total([{n}, 1]) == {n + 1}\n"
    f"\n\ndef test_cheapest_{n}():\n    assert cheapest([{n}, 9]) == {n}\n"
    for n in range(8)
)

lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=12).map("".join)


@given(lines, lines)
def test_the_experts_edits_lead_to_the_right_text(old: str, new: str) -> None:
    text = old
    for name, arguments in mend({"a": old.encode()}, {"a": new.encode()}):
        if name == "write":
            text = arguments["text"]
        else:
            assert text.count(arguments["old"]) == 1
            text = text.replace(arguments["old"], arguments["new"])
    assert text == new


# The env, on a package made here --------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds the shop of the exploit gym as an sdist, and the test kit."""
    try:
        kit()
    except LatihError as exc:
        skip(f"the test kit cannot be had: {exc}")
    kits = cache_folder() / "kits"
    monkeypatch.setenv("LATIH_CACHE", str(tmp_path))
    (tmp_path / "kits").symlink_to(kits.resolve())
    sdist(tmp_path, {SOURCE: RIGHT.encode(), TESTS: CASES.encode(), "tests/test_more.py": MORE.encode()})
    return tmp_path


@pytest.fixture
def task(shop: Path) -> Task:
    """The shop with a bug that the generator found."""
    [task] = build_tasks(1, ["shop==1.0"], seed=0)
    return task


@pytest.mark.slow
def test_a_task_from_two_releases(shop: Path) -> None:
    older = {SOURCE: BROKEN.encode(), TESTS: b"def test_nothing():\n    pass\n"}
    newer = {SOURCE: RIGHT.encode(), TESTS: CASES.encode(), "tests/test_more.py": MORE.encode()}
    code, tests = sdist(shop, older, version="0.9"), sdist(shop, newer, version="1.1")
    told: list[str] = []
    [made] = build_tasks(2, ["shop==0.9..1.1"], progress=told.append)
    assert made.id == "shop-0.9-e3b0c442"  # the hash of no bug
    assert told == ["1/2 shop-0.9-e3b0c442"]
    repo = RepoTask.model_validate(made.repo)  # type: ignore[attr-defined]
    assert (repo.code, repo.tests, repo.bug, repo.kind) == (code, tests, [], "release")
    assert repo.fail_to_pass == [f"{TESTS}::test_{name}" for name in ("discounted", "free", "half", "receipt")]
    assert len(repo.pass_to_pass) == 18
    assert repo.shown in repo.fail_to_pass
    assert play(RepoRepair(), "expert", 0, made).reward == 1.0
    assert play(RepoRepair(), "random", 0, made).reward == 0.0
    assert list(build_tasks(1, ["shop==1.1..0.9"], progress=told.append)) == []  # no five tests pass in the older one
    assert told[1].startswith("shop 1.1..0.9: 1 tests pass")


def test_the_releases_of_a_default_pair_follow_one_another() -> None:
    repo = RepoTask.model_validate(BUNDLED[3].repo)  # type: ignore[attr-defined]
    assert (repo.kind, repo.code.version, repo.tests.version) == ("release", "1.22.3", "1.22.4")
    assert f"parse=={repo.code.version}..{repo.tests.version}" in build.PACKAGES


def call(name: str, **arguments: object) -> Message:
    return Message(role="assistant", tool_calls=[ToolCall(id="c", name=name, arguments=arguments)])


@pytest.mark.slow
def test_an_episode_by_hand(task: Task) -> None:
    repo = RepoTask.model_validate(task.repo)  # type: ignore[attr-defined]
    env = RepoRepair(max_calls=20, output=400)
    (system, user), info = env.reset(seed=0, options={"task": task})
    assert (system.role, user.role, info) == ("system", "user", {})
    assert f"{SOURCE} (17 lines)" in user.text
    assert repo.failure in user.text
    assert len(repo.fail_to_pass) >= 2
    assert all({*form.failing}.isdisjoint([repo.shown]) for form in repo.forms)

    def told(action: Message) -> str:
        [result], reward, terminated, truncated, _ = env.step(action)
        assert (reward, terminated, truncated, result.tool_call_id) == (0.0, False, False, "c")
        return str(result.text)

    assert told(call("run", cmd="ls -A; ls -A tests; exit 3")) == "shop\ntests\ntest_shop.py\n\n[exit code 3]"
    assert told(call("read", path=SOURCE, start=4)).startswith("def total(prices):\n")
    assert told(call("read", path=SOURCE, start=4.0)) == told(call("read", path=SOURCE, start=4))
    assert told(call("read", path=TESTS)).count("def test_") == 1
    assert "1 failed" in told(call("run", cmd="python -m pytest -q tests"))
    assert told(call("write", path="x/y.txt", text="é")) == "written"
    assert told(call("edit", path="x/y.txt", old="é", new="ab")) == "edited"
    assert told(call("run", cmd="cat x/y.txt")) == "ab\n[exit code 0]"
    assert "characters left out" in told(call("run", cmd="seq 1000"))
    faults = {
        "error: absent.py is no regular file": call("read", path="absent.py"),
        "error: '../up' is no relative name": call("write", path="../up", text=""),
        "error: x/y.txt holds old 0 times": call("edit", path="x/y.txt", old="z", new=""),
        "error: old is empty": call("edit", path="x/y.txt", old="", new=""),
        "error: x/y.txt has 1 lines": call("read", path="x/y.txt", start=9),
        "error: 'path' is a required property": call("read"),
        "error: unknown tool 'reed': did you mean 'read'": call("reed"),
    }
    for fault, action in faults.items():
        assert told(action).startswith(fault)
    assert told(call("write", path=SOURCE, text=RIGHT)) == "written"
    _, reward, terminated, truncated, info = env.step("Done.")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["metrics"] == {
        "correct": 1.0,
        "fail_to_pass": 1.0,
        "pass_to_pass": 1.0,
        "canaries": 1.0,
        "timeout": 0.0,
        "changed": 1.0,
        "tool_calls": 18.0,
        "bad_calls": 7.0,
    }
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("Done.")


@pytest.fixture
def by_hand(shop: Path) -> Task:
    """The shop of the exploit gym, as a task that no generator made."""
    there = find_sdist("shop", "1.0")
    bug = Edit(path=SOURCE, start=RIGHT.index("price - price") + 6, old="-", new="+")
    repo = Shop.task.model_copy(update={"code": there, "tests": there, "bug": [bug], "failure": "?", "seconds": 4.0})
    return Task(id="by hand", repo=repo.model_dump())


def test_the_commands_of_one_message_share_one_time(by_hand: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def command(workspace: object, roots: object, words: str, limits: Limits) -> Result:
        given.append((limits.wall, limits.cpu))
        return Result(0, words.encode(), b"", b"", False, False, 6.0)

    monkeypatch.setattr(repo_repair, "command", command)
    env = RepoRepair(max_calls=9)
    env.reset(seed=0, options={"task": by_hand})
    calls = [each for n in range(3) for each in call("run", cmd=f"echo {n}").tool_calls]
    message = Message(role="assistant", tool_calls=calls)
    for made in (1, 2):
        results, _, terminated, truncated, _ = env.step(message)
        assert [each.text for each in results] == [
            "echo 0\n[exit code 0]",
            "echo 1\n[exit code 0]",
            "error: the commands of one message may take 10 s together, which are used up: "
            "run this one in your next message",
        ]
        assert not terminated
        assert not truncated
        assert given == [(10.0, 10.0), (4.0, 4.0)] * made
    env.close()


def test_a_step_of_a_small_package_ends_before_its_deadline(by_hand: Task) -> None:
    repo = RepoTask.model_validate(by_hand.repo)  # type: ignore[attr-defined]
    # The commands of a message, four forms, and with `watch_exploits` two runs in place: as the page says.
    assert repo_repair.RUN_SECONDS + grading_limits(repo).wall + 2 * repo.seconds == 10 + 32 + 8
    assert RolloutSettings().step_timeout == 60
    slowest = repo.model_copy(update={"seconds": max(build.STEPS)})
    assert repo_repair.RUN_SECONDS + grading_limits(slowest).wall + 2 * slowest.seconds == 10 + 128 + 32
    for name in ("recipe.yaml", "gpu.yaml"):
        recipe = Path(repo_repair.__file__).parents[2] / "recipes" / "repo_repair" / name
        assert resolve(str(recipe)).rollout.step_timeout > 170


def test_what_a_workspace_does_not_take_is_told_and_is_no_error(by_hand: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    env = RepoRepair()
    env.reset(seed=0, options={"task": by_hand})

    def full(self: object, name: str, data: bytes) -> None:
        raise ValueError(f"{name}: the workspace is full")

    monkeypatch.setattr(Workspace, "write", full)
    [answer], reward, terminated, _, _ = env.step(call("write", path="a.py", text="x"))
    assert (answer.text, reward, terminated) == ("error: a.py: the workspace is full", 0.0, False)
    [answer], *_ = env.step(call("edit", path=SOURCE, old="return sum", new="return max"))
    assert answer.text == f"error: {SOURCE}: the workspace is full"
    env.close()


@pytest.mark.slow
def test_code_that_hangs_is_wrong_and_no_error(by_hand: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    short = by_hand.model_copy(update={"repo": {**by_hand.repo, "seconds": 1.0}})  # type: ignore[attr-defined]
    env = RepoRepair()
    env.reset(seed=0, options={"task": short})
    env.step(call("write", path=SOURCE, text="while True: pass\n"))
    _, reward, terminated, _, info = env.step("Done.")
    assert (reward, terminated, info["metrics"]["pass_to_pass"]) == (0.0, True, 0.0)


@pytest.mark.slow
def test_calls_past_the_limit_end_the_episode_which_is_graded(task: Task) -> None:
    env = RepoRepair(max_calls=1)
    env.reset(seed=0, options={"task": task})
    right = call("write", path=SOURCE, text=RIGHT)
    action = right.model_copy(update={"tool_calls": [*right.tool_calls, *call("read", path=SOURCE).tool_calls]})
    results, reward, terminated, truncated, _ = env.step(action)
    assert [each.text for each in results] == ["written"]
    assert (reward, terminated, truncated) == (1.0, False, True)


@pytest.mark.slow
def test_tasks_are_built_into_a_file_that_trains(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shop / "tasks.parquet"
    words = ["tasks", "build", "repo_repair", "--out", str(out), "--packages", "shop==1.0", "--count", "1"]
    assert main([*words, "seed=0"]) == 0
    told = f"1 task in {out}: with another file to measure on, latih train repo_repair data.train={out} data.eval="
    assert told in capsys.readouterr().out
    [made] = read_rows(DataSettings(), str(out), RepoRepair())
    assert [made] == list(build_tasks(1, ["shop==1.0"], seed=0)), "the same under a seed, and whole in Parquet"
    assert play(RepoRepair(), "expert", 0, made).reward == 1.0
    assert play(RepoRepair(), "random", 0, made).reward == 0.0
    monkeypatch.setattr(repo_repair, "bundled", lambda: [made, made])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(RepoRepair())


def test_bad_requests_get_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "build", "tic_tac_toe", "--out", "x.parquet"]) == 2
    assert "tic_tac_toe builds no tasks; these do: repo_repair" in capsys.readouterr().err
    assert main(["tasks", "build", "repo_repair", "--out", "x.csv"]) == 2
    assert "neither .parquet nor .jsonl" in capsys.readouterr().err
    assert main(["tasks", "build", "repo_repair", "--out", "x.jsonl", "bug=2"]) == 2
    assert "no dial 'bug': did you mean 'bugs'?" in capsys.readouterr().err
    with pytest.raises(LatihError, match="pluggy is part of the test kit"):
        list(build_tasks(1, ["pluggy"]))
    for name in ("tomli", "Typing_Extensions", "dataclasses", "backports.zoneinfo"):
        with pytest.raises(LatihError, match=rf"{name}, or a copy of it, comes with Python, .*: take another package"):
            list(build_tasks(1, [f"{name}==1.0"]))
    with pytest.raises(ConfigError, match=r"is no task of repo_repair: build it again \(repo: [^\n]*\)$"):
        RepoRepair().reset(seed=0, options={"task": Task(id="a", prompt="?")})
    with pytest.raises(ConfigError, match=r"build it again \(repo\.code: Field required\)$"):
        RepoRepair().check_task(Task(id="a", repo={}))


def test_no_package_is_blamed_for_a_missing_sandbox(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: object) -> None:
        raise SandboxError("install bubblewrap")

    monkeypatch.setattr(build, "run_tests", missing)
    with pytest.raises(SandboxError, match="install bubblewrap"):
        list(build_tasks(1, ["shop==1.0"]))


def test_candidates_are_tried_at_once_and_tasks_come_in_order(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [made] = build_tasks(1, ["shop==1.0"])
    started, go_on = [], threading.Event()

    def try_one(package: object, edits: Sequence[Edit], kind: str) -> RepoTask:
        started.append(kind)
        if len(started) == 1:
            assert go_on.wait(10), "another candidate runs beside the first"
        go_on.set()
        return RepoTask.model_validate(made.repo).model_copy(update={"kind": kind})

    candidates = [([Edit(path="a", start=i, old="", new="x")], str(i)) for i in range(50)]
    monkeypatch.setattr(build, "_candidates", lambda *args: iter(candidates))
    monkeypatch.setattr(build.Package, "task", try_one)
    tasks = build_tasks(9, ["shop==1.0"])
    assert [next(tasks).repo["kind"] for _ in range(3)] == ["0", "1", "2"]
    tasks.close()
    assert len(started) <= 3 + build.AHEAD, "what was not under way is not begun"


def test_a_package_that_fails_keeps_what_those_before_it_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    def candidates(name: str, *more: object) -> Iterator[Task]:
        if name == "unknown":
            raise LatihError("the index has no such package")
        yield from (Task(id=f"{name}-{i}", prompt="p") for i in range(2))

    monkeypatch.setattr(build, "_tasks", candidates)
    assert [each.id for each in build_tasks(9, ["a", "b", "a"])] == ["a-0", "b-0", "a-1", "b-1"]
    assert [each.id for each in build_tasks(1, ["a", "b"])] == ["a-0"]
    made = build_tasks(9, ["a", "unknown", "b"])
    assert next(made).id == "a-0"
    with pytest.raises(LatihError, match="no such package"):
        next(made)


# The bundled tasks ----------------------------------------------------------------------------------------------------


def test_bundled_tasks_of_training_and_evaluation_are_disjoint(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is drawn, without laying the projects out: their sdists may not be there.
    monkeypatch.setattr(repo_repair, "broken", lambda repo: {})
    monkeypatch.setattr(repo_repair, "visible_files", lambda repo: {})
    env, drawn = RepoRepair(), {}
    for phase in PHASES:
        drawn[phase] = set()
        for spec in plan(0, phase, 1, groups=40):
            env.reset(seed=spec.seed)
            assert env.task is not None
            drawn[phase].add(env.task.id)
    env.close()
    assert drawn["train"] == drawn["warm_start"] == {BUNDLED[0].id, BUNDLED[2].id}
    assert drawn["eval"] == {BUNDLED[1].id, BUNDLED[3].id}


def test_bundled_tasks_hold_no_code_but_their_edits() -> None:
    assert len(BUNDLED) >= 3
    for each in BUNDLED:
        repo = RepoTask.model_validate(each.repo)  # type: ignore[attr-defined]
        edits = [*repo.bug, *(edit for form in repo.forms for edit in form.edits)]
        assert all(len(edit.old) < 200 for edit in edits)
        for form in repo.forms:
            assert form.failing
            assert repo.shown not in {*form.failing, *form.gone}
        hidden = {*repo.fail_to_pass} - {repo.shown}
        assert hidden & {id for form in repo.forms for id in (*form.failing, *form.gone)}


def test_guessing_the_bundled_tasks_does_not_pay() -> None:
    for each in BUNDLED:
        repo = RepoTask.model_validate(each.repo)  # type: ignore[attr-defined]
        patterns = {
            function_of(id): [id in form.failing for form in repo.forms] for id in repo.fail_to_pass if id != repo.shown
        }
        secrets = [sum(pattern) for pattern in patterns.values() if any(pattern)]
        assert len(secrets) >= 3
        assert {*secrets} <= {2, 3}, "wrong in some of the four forms, and right in others"
        assert repo.odds == pytest.approx(max(10 ** -len(secrets), odds(len(secrets), sum(secrets))))
        assert repo.odds <= 1 / 256
        assert grading_limits(repo).wall + repo_repair.RUN_SECONDS <= 42


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_no_look_tells_right_from_wrong(reader: str) -> None:
    """The task that such a cheat solved while wrong expectations were misspelt words."""
    repo = RepoTask.model_validate(BUNDLED[2].repo)  # type: ignore[attr-defined]
    try:
        kit()
        sources = broken(repo)
    except LatihError as exc:
        skip(f"the sdist cannot be had: {exc}")
    path = repo.bug[0].path
    verdict = grade(repo, sources | {path: cheat(reader).encode() + sources[path]})
    assert verdict.score == 0
    assert verdict.fail_to_pass > 0, "the cheat ran, and passed some test that failed"
    assert not verdict.timed_out


@pytest.mark.slow
@pytest.mark.parametrize("task", BUNDLED, ids=lambda task: task.id)
def test_the_expert_solves_the_bundled_tasks_and_nobody_else(task: Task) -> None:
    repo = RepoTask.model_validate(task.repo)  # type: ignore[attr-defined]
    try:
        kit()
        read_sdist(repo.code)
        read_sdist(repo.tests)
    except LatihError as exc:
        skip(f"the sdist cannot be had: {exc}")
    env = RepoRepair(max_calls=4)

    def reward(policy: str) -> float:
        rng = random.Random(0)
        observation, _ = env.reset(seed=0, options={"task": task})
        while True:
            action = (
                {"empty": "", "echo": messages_of(observation)[-1].text}.get(policy)
                if policy
                in (
                    "empty",
                    "echo",
                )
                else env.scripted(policy, rng)
            )
            observation, paid, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                return float(paid)

    assert {policy: reward(policy) for policy in ("expert", "random", "empty", "echo")} == {
        "expert": 1.0,
        "random": 0.0,
        "empty": 0.0,
        "echo": 0.0,
    }
