import copy
import json
import random
import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from gymnasium.utils.env_checker import check_env

from latih.core import ConfigError, Message, SandboxError, Task
from latih.data import read_tasks
from latih.envs import make
from latih.envs.code import Code
from latih.envs.code.families import families
from latih.envs.code.problems import LEVELS, Problem, draw, parameters, problem_of
from latih.rewards import function
from latih.rewards.arena import exploits, load
from tests.envs.playing import play, printed_in_other_processes

TASK = Task(
    id="axis",
    prompt="The points on the x axis.",
    name="on_axis",
    returns="list[tuple[int, int]]",
    parameters=["list[tuple[int, int]]"],
    examples=1,
    tests=json.dumps([{"args": [[[1, 0], [2, 3]]], "expected": [[1, 0]]}, {"args": [[]], "expected": []}]),
    solution="def on_axis(points): return [p for p in points if p[1] == 0]",
)


def question(env: Code, seed: int) -> str:
    return env.reset(seed=seed)[0][1].text


def test_the_env_is_sound() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make("code"))


def test_an_episode() -> None:
    env = Code()
    (system, user), info = env.reset(seed=0)
    assert (system.text, info) == ("Write the Python function f. Reply with code only.", {})
    name, _, formula = user.text.partition(" = ")
    assert name == "f(x)"
    observation, reward, terminated, truncated, info = env.step(f"def f(y):\n    x = y\n    return {formula}")
    assert (observation, reward, terminated, truncated) == ("Right.", 1.0, True, False)
    assert info["metrics"] == {"correct": 1.0, "credit": 1.0, "invalid": 0.0, "timeout": 0.0, "attempts": 1.0}
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("")


@pytest.mark.parametrize(
    ("reply", "reward"),
    [
        ("def f(x): return 0", 0.0),
        ("def f(x): return float({formula})", 0.0),
        ("```python\ndef f(x): return {formula}\n```\nIt is simple.", 1.0),
        ("```\ndef f(x): return {formula}\n```\n```\ndef f(x): return 0\n```", -0.5),
        ("f(x) = {formula}", -0.5),
        ("def g(x): return {formula}", -0.5),
        ("def f(x): return {formula", -0.5),
        ("import sys; sys.exit(0)", -0.5),
        ("", -0.5),
    ],
)
def test_replies_and_what_they_are_paid(reply: str, reward: float) -> None:
    env = Code(level=2)
    formula = question(env, 1).partition(" = ")[2]
    assert env.step(reply.replace("{formula}", formula))[1] == reward


def test_time_that_runs_out_is_wrong_and_not_invalid() -> None:
    env = Code(timeout=1.0)
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("def f(x):\n    while True: pass")
    assert (reward, terminated) == (0.0, True)
    assert info["metrics"]["invalid"] == 0.0


def test_partial_credit_is_for_hidden_cases_beyond_a_constant() -> None:
    env = Code(partial=0.5)
    formula = question(env, 3).partition(" = ")[2]
    hidden = [case.args[0] for case in env.problem.cases]
    half = f"def f(x): return {formula} if x in {hidden[:4]} else 10**9"
    _, reward, *_, info = env.step(half)
    assert info["metrics"]["credit"] == pytest.approx(3 / 7)
    assert reward == pytest.approx(0.5 * 3 / 7)
    env.reset(seed=3)
    assert env.step(f"def f(x): return {env.problem.cases[0].expected}")[1] == 0.0


def test_a_broken_sandbox_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **how: object) -> None:
        raise SandboxError("no sandbox")

    monkeypatch.setattr(function, "run", broken)
    env = Code()
    env.reset(seed=0)
    with pytest.raises(SandboxError):
        env.step("def f(x): return 0")


def test_a_machine_without_a_sandbox_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATIH_SANDBOX", "container")
    with pytest.raises(ConfigError, match="LATIH_SANDBOX=container is no sandbox"):
        make("code")


def test_retries_tell_of_shown_examples_only() -> None:
    env = Code(examples=1, retries=2)
    text = question(env, 5)
    formula, example = text.split("\n")
    case = env.problem.cases[0]
    assert example == f"f({case.args[0]}) == {case.expected}"
    told, reward, terminated, truncated, info = env.step("def f(x): return '7'")
    assert told == f'f({case.args[0]}) gave "7", not {case.expected}. Try again.'
    assert (reward, terminated, truncated, info) == (0.0, False, False, {})
    assert env.step("```\na\n```\n```\nb\n```")[0] == "Reply with one block of code."
    _, reward, terminated, _, info = env.step(f"def f(x): return {formula.partition(' = ')[2]}")
    assert (reward, terminated, info["metrics"]["attempts"]) == (1.0, True, 3.0)
    env.reset(seed=5)
    env.step("def f(x): return '7'")
    assert env.truncate("turns")[1]["metrics"]["attempts"] == 1.0, "the latest try is graded where no other may come"
    env.reset(seed=5)
    hardcoded = f"def f(x): return {case.expected}"
    assert env.step(hardcoded)[:3] == ("Wrong.", 0.0, True), "hidden cases are not told of"
    env.reset(seed=5)
    spy = "import sys\ndef f(x): return repr(sys._getframe(1).f_locals['job']['cases'])"
    assert env.step(spy)[0].startswith(f'f({case.args[0]}) gave "[[{case.args[0]}]]", not'), "nor are their inputs"
    with pytest.raises(ConfigError, match="set examples to 1 or more"):
        Code(retries=1)


def test_exploits_are_watched() -> None:
    env = Code(watch_exploits=True)
    load()
    for name, reward, exploited in (("always_equal", -0.5, 1.0), ("sys_exit", -0.5, 1.0), ("echo_input", 0.0, 0.0)):
        env.reset(seed=0)
        _, paid, _, _, info = env.step(exploits.get(name).make(None))
        assert (paid, info["metrics"]["exploited"]) == (reward, exploited)
    env.reset(seed=0)
    assert env.step(env.scripted("expert", random.Random(0)))[4]["metrics"]["exploited"] == 0.0


@pytest.mark.parametrize("level", range(1, LEVELS + 1))
def test_drawn_problems_are_sound(level: int) -> None:
    assert len(draw(level, random.Random(0), hidden=100).cases) > 95
    for seed in range(100):
        problem = draw(level, random.Random(seed), shown=2, hidden=8)
        assert problem == draw(level, random.Random(seed), shown=2, hidden=8)
        assert 4 <= len(problem.cases) <= 10
        calls = [repr(case.args) for case in problem.cases]
        assert len(set(calls)) == len(calls)
        assert len({repr(case.expected) for case in problem.cases[2:]}) > 1, "a constant solves it"
        assert problem.returns is not None
        for case in problem.cases:
            assert function.matches(case.expected, function.pack(case.expected), problem.returns)


def test_every_family_is_drawn_and_solved() -> None:
    for level, made in families.items():
        for i, family in enumerate(made):
            sketch = family(random.Random(i))
            assert len(sketch.text) < 140
            space: dict = {}
            exec(sketch.solution, space)
            assert f"({parameters(sketch.solution)})" in sketch.text.partition(":")[0], sketch.text
            for args in (*sketch.edges, sketch.draw(random.Random(level))):
                value = function.pack(space["f"](*args))
                assert function.matches(space["f"](*args), value, sketch.returns, 1e-9)


BY_KIND = """
def f(s):
    for a, b in ("()", "[]", "{}"):
        depth = 0
        for c in s:
            depth += (c == a) - (c == b)
            if depth < 0:
                return False
        if depth:
            return False
    return True
"""
# A pattern of the description; of its solution a part, or all where it is empty; and what is wrong instead.
WRONG = [
    (r"f\(x\) = x \*", "x *", "x +"),
    (r"f\(x\) = \(x ", "return (x", "return (2 * x"),
    ("is above", "x > ", "x >= "),
    ("is above", " - x", " + x"),
    ("the remainder", "f(x): return x %", "f(x): import math; return int(math.fmod(x, 7)) + 0 * x %"),
    ("the remainder", "x %", "x //"),
    ("without its sign", "abs(x)", "-x"),
    ("without its sign", "abs(x)", "x if x < 0 else x"),
    ("but at most", "max(", "min("),
    ("but at most", "min(", "max("),
    ("but at most", "min(", "(lambda a, x: min(a - 1, x))("),
    ("decimal digits", "sum(int(d) for d in str(abs(x)))", "(abs(x) % 10 + abs(x) // 10)"),
    ("decimal digits", "sum(int(d) for d in str(abs(x)))", "(abs(x) // 10 % 10 + abs(x) % 10)"),
    ("decimal digits", "str(abs(x))", "str(x)"),
    ("is divisible by", "f(x): return 1 if", "f(x): return 1 if x > 0 and"),
    ("is divisible by", "f(x): return 1 if", "f(x): return 1 if x < 0 and"),
    ("the larger of", "max(x, y)", "max(abs(x), y)"),
    ("the larger of", "max(x, y)", "x"),
    ("the distance of", "abs(x - y)", "(x - y)"),
    ("the distance of", "abs(x - y)", "abs(x + y)"),
    ("both are positive", "x > 0 and y > 0", "x * y > 0"),
    ("both are positive", "x > 0 and y > 0", "x >= 0 and y > 0"),
    ("both are positive", "x > 0 and y > 0", "x > 0 and y >= 0"),
    (r"f\(x, y\): x plus", "x + ", "y + "),
    (r"in upper case, then [^;]*$", "v.upper()", "v.capitalize()"),
    (r"in upper case, then [^;]*$", "v.upper()", "v.casefold()"),
    (r"without spaces, then (in upper|repeated|reversed)[^;]*$", "v.replace(' ', '')", "v.strip()"),
    (r"with every a replaced by ., then (in upper|repeated|reversed)[^;]*$", "')", "', 1)"),
    (r"repeated . times, then (in upper|without)[^;]*$", "v * ", "v + v + 0 * "),
    (r"(in upper|repeated)[^;]*, then with its words in reverse order$", "v.split()[::-1]", "v.split()"),
    (r"(in upper|repeated)[^;]*, then with its words in reverse order$", "' '.join(v.split()[::-1])", "v[::-1]"),
    (r"take s [^;]*without spaces, then reversed; give whether", "v[:-1]", "v"),
    (r"take s [^;]*without spaces, then reversed; give whether", "v[:-1]", "v[1:]"),
    (r"take s (reversed|without).* give whether e", "v[:-1]", "v[-2:-1]"),
    (r"(reversed|without spaces); give how often", "v.count(", "v[:3].count("),
    (r"(reversed|upper case|sorted); give its length", "len(v)", "len(set(v))"),
    (r"sorted; give the list of its words", "v.split()", "v.split(' ')"),
    (r"without negative numbers, then (reversed|with|as|sorted)[^;]*$", "x >= 0", "x > 0"),
    (r"without multiples of \d, then (reversed|with|as|sorted)[^;]*$", "if x % ", "if x // "),
    (r"without what came before in it, then (reversed|with .)[^;]*$", "list(dict.fromkeys(v))", "sorted(set(v))"),
    (r"without what came before in it, then (reversed|with .)[^;]*$", "list(dict.fromkeys(v))", "v"),
    (r"without what came before in it, then (reversed|with .)[^;]*$", "(v))", "(v[::-1]))[::-1]"),
    (r"running sums, then (reversed|with|sorted)[^;]*$", "v[: i + 1]", "v[max(0, i - 1) : i + 1]"),
    (r"running sums, then (reversed|with|sorted)[^;]*$", "v[: i + 1]", "v[:i]"),
    (r"differences of neighbours, then (reversed|with|sorted)[^;]*$", "y - x", "x - y"),
    (r"differences of neighbours, then (reversed|with|sorted)[^;]*$", "y - x", "abs(y - x)"),
    (r"sorted, then (reversed|with )[^;]*$", "sorted(v)", "sorted(set(v))"),
    (r"sorted, then (reversed|with )[^;]*$", "sorted(v)", "sorted(v, key=abs)"),
    (r"without its first \d[^;]*$", ":]", ":-1]"),
    (r"; give the sum", "sum(v)", "max(v, default=0)"),
    (
        r"items (reversed|sorted|with \d add)[^,]*, then (reversed|sorted|with \d add)[^;]*; give the larg",
        "max(v, default=0)",
        "max([0, *v])",
    ),
    (
        r"items (reversed|sorted|with \d add)[^,]*, then (reversed|sorted|with \d add)[^;]*; give how many",
        "x > ",
        "x >= ",
    ),
    (r"(running sums|neighbours); give the smallest and", "(min(v), max(v))", "(v[0], v[-1])"),
    (r"; give the mean", "sum(v) / len(v)", "float(sum(v) // len(v))"),
    ("counts the words by first letter", "w[0]", "w[:1].upper()"),
    ("counts the words by first letter", "w[0]", "max(w)"),
    ("counts the words by last letter", "w[-1]", "w[0]"),
    ("counts the words by length", "len(w)", "len(set(w))"),
    ("counts the words by word", "for w in words", "for w in sorted(words)[1:]"),
    ("leaving out what has fewer than 2", "n >= 2", "n == 2"),
    ("leaving out what has fewer than 2", "n >= 2", "n > 2"),
    ("remainder by 3", "x % 3", "abs(x) % 3"),
    ("remainder by", "sorted(v)", "v"),
    ("remainder by", "sorted(v)", "sorted(set(v))"),
    ("the runs of equal", "(c, runs[-1][1] + 1)", "(c, 2)"),
    ("the runs of equal", "return [run for run in runs", "return [run for run in sorted(runs)"),
    ("at least 2 long", "run[1] >= 2", "run[1] == 2"),
    ("the brackets", "", "def f(s): return all(s.count(a) == s.count(b) for a, b in ('()', '[]', '{}'))"),
    ("the brackets", "", "def f(s): return len(s) % 2 == 0 and s[:1] not in list(')]}')"),
    ("the brackets", "", "def f(s): return sum(map(s.count, '([{')) == sum(map(s.count, ')]}'))"),
    (r"the brackets \(\)\[", "stack.pop() != closes[c]", "not stack.pop()"),
    (r"the brackets \(\)\[", "", BY_KIND),
    ("primes", "all(k % d for d in range(2, k))", "(k == 2 or k % 2 == 1)"),
    ("primes", "range(2, k)", "range(2, min(k, 8))"),
    ("primes", "range(2, n)", "range(2, n + 1)"),
    ("the digits of n", "return digits", "return digits[::-1]"),
    ("the digits of n", "while n:", "for _ in range(2):"),
    ("how many steps", "while n > 1", "while n > 2"),
    ("the sum of all", "range(n)", "range(n + 1)"),
    ("divisible by [2-6] or", " or ", " and "),
    ("overlap or touch", "<=", "<"),
    ("touching is not enough", "low < ", "low <= "),
    (r"f\(spans\)", "max(merged[-1][1], high)", "high"),
    (r"f\(spans\)", "sorted(spans)", "spans"),
    ("the longest stretch of rising", "< x", "<= x"),
    ("the longest stretch of falling", "> x", ">= x"),
    ("the longest stretch of equal", "", "def f(items): return max(map(items.count, items), default=0)"),
    ("the longest stretch", "return best", "return length"),
    ("the longest stretch", "best = max(best, length)", "best = max(best, length) if i else 0"),
]


def test_what_is_wrong_fails_on_nearly_every_drawn_problem() -> None:
    # On a few both are the same function: `x if x is above 3, else 6 minus x` at 3.
    found: dict[tuple[str, str, str], list[bool]] = {each: [] for each in WRONG}
    for level, count in enumerate((40, 60, 300, 1000, 1000, 700), 1):
        for seed in range(count):
            problem = draw(level, random.Random(seed))
            for each in WRONG:
                part, ours, theirs = each
                if re.search(part, problem.text):
                    solution = problem.solution or ""
                    assert ours in solution, each
                    found[each].append(passes(solution.replace(ours, theirs) if ours else theirs, problem))
    for each, passed in found.items():
        assert passed, f"{each} is never drawn"
        assert sum(passed) <= len(passed) / 25, f"{each} passes {sum(passed)} of {len(passed)}"


def passes(source: str, problem: Problem) -> bool:
    space: dict = {}
    exec(source, space)
    try:
        values = [function.pack(space["f"](*copy.deepcopy(case.args))) for case in problem.cases]
    except Exception:
        return False
    return all(
        function.matches(case.expected, value, problem.returns, problem.tolerance)
        for case, value in zip(problem.cases, values, strict=True)
    )


@pytest.mark.parametrize("level", range(1, LEVELS + 1))
def test_few_cases_have_a_drawn_one_among_them(level: int) -> None:
    problems = [draw(level, random.Random(seed), hidden=2) for seed in range(60)]
    assert all(len(each.cases) == 2 for each in problems)
    last = {repr(each.cases[1].args) for each in problems}
    assert len(last) > 20, "the last case is not the same for all"


def test_solutions_by_hand() -> None:
    """Algorithms of level 6 against values worked out by hand."""
    by_hand = {
        "the runs of equal characters of s that are at least 1": (
            ("aabbbca",),
            [("a", 2), ("b", 3), ("c", 1), ("a", 1)],
        ),
        "the runs of equal characters of s that are at least 2": (("aabbbca",), [("a", 2), ("b", 3)]),
        "a dict that counts the words by length": ((["ab", "a", "cd", "e"],), {2: 2, 1: 2}),
        "those merged that overlap or touch": (([[2, 5], [0, 2], [7, 8]],), [[0, 5], [7, 8]]),
        "those merged that overlap (touching": (([[2, 5], [0, 2], [1, 2]],), [[0, 2], [2, 5]]),
        "the longest stretch of rising": (([1, 2, 3, 3, 4],), 3),
        "the longest stretch of falling": (([5, 4, 4, 3, 2],), 3),
        "the longest stretch of equal": (([1, 1, 2, 2, 2],), 3),
        "whether the brackets () in": (("(()))",), False),
        "whether the brackets ()[] in": (("([)]",), False),
        "whether the brackets ()[]{} in": (("{[()]}[]",), True),
        "how many steps of n": ((6,), 8),
        "how many primes are below n, plus 5": ((12,), 10),
        "the digits of n in base 2": ((6,), [0, 1, 1]),
        "divisible by 3 or by 7": ((15,), 3 + 6 + 7 + 9 + 12 + 14),
        "remainder by 2": (([3, -1, 4, 2],), {0: [2, 4], 1: [-1, 3]}),
    }
    found = set()
    for each in range(3000):
        problem = draw(6, random.Random(each))
        for part, (args, expected) in by_hand.items():
            if part in problem.text and part not in found:
                found.add(part)
                space: dict = {}
                exec(problem.solution or "", space)
                assert space["f"](*args) == expected, problem.text
    assert found == set(by_hand)


@pytest.mark.parametrize("level", range(1, LEVELS + 1))
def test_the_expert_is_right(level: int) -> None:
    env = Code(level=level, examples=1)
    for seed in range(6):
        done = play(env, "expert", seed)
        assert (done.reward, done.metrics["correct"], done.metrics["credit"]) == (1.0, 1.0, 1.0)


@pytest.mark.slow
def test_aimless_code_is_well_formed_and_seldom_right() -> None:
    env = Code()
    aimless = [play(env, "random", seed) for seed in range(60)]
    assert not any(each.metrics["invalid"] for each in aimless)
    assert sum(each.reward for each in aimless) <= 10
    assert all(str(each.messages[-1].text).startswith("def f(x): return x ") for each in aimless)


@pytest.mark.parametrize("policy", ["empty", "echo"])
def test_do_nothing_policies_score_least(policy: str) -> None:
    for level in range(1, LEVELS + 1):
        env = Code(level=level, examples=1)
        text = question(env, level)
        assert env.step("" if policy == "empty" else text)[1] == -0.5


def test_tasks_bring_their_tests() -> None:
    env = Code()
    (system, user), _ = env.reset(options={"task": TASK})
    assert system.text == "Write the Python function on_axis. Reply with code only."
    assert user.text == "The points on the x axis.\non_axis([(1, 0), (2, 3)]) == [(1, 0)]"
    assert env.step(env.scripted("expert", random.Random(0)))[1] == 1.0
    env.reset(options={"task": TASK})
    assert env.step("def on_axis(points): return [list(p) for p in points if p[1] == 0]")[1] == 0.0
    env.reset(options={"task": TASK})
    assert env.scripted("random", random.Random(0)).startswith("def on_axis(")
    bare = Task(prompt=[Message(role="user", content="Twice x.")], tests=[{"args": [2], "expected": 4}])
    env.reset(options={"task": bare})
    with pytest.raises(ConfigError, match="no column solution"):
        env.scripted("expert", random.Random(0))
    assert env.step("def f(x): return 2 * x")[1] == 1.0


TWICE = Task(
    id="twice",
    prompt="Twice x.",
    tests=[{"args": [x], "expected": 2 * x} for x in (1, 4, 0, -7, 12)],
    solution="def f(x):\n    return x + x",
)


def test_a_table_of_the_published_tests_fails_where_there_is_a_solution() -> None:
    table = "def f(x): return {1: 2, 4: 8, 0: 0, -7: -14, 12: 24}.get(x, 0)"
    for dials, reward, credit in (({"drawn": 8}, 0.0, 4 / 12), ({}, 1.0, 1.0)):
        env = Code(**dials)
        for seed in range(4):
            env.reset(seed=seed, options={"task": TWICE})
            _, paid, *_, info = env.step(table)
            # Of 13 hidden cases 5 are right, and a constant or an echo gets 1; without drawn ones 5 of 5.
            assert (paid, info["metrics"]["credit"]) == (reward, pytest.approx(credit))
            env.reset(seed=seed, options={"task": TWICE})
            assert env.step("def f(y): return 2 * y")[1] == 1.0
    for none in (None, "", "  "):
        env = Code(drawn=8)
        env.reset(seed=0, options={"task": TWICE.model_copy(update={"solution": none})})
        assert env.step(table)[1] == 1.0, "without a solution its own tests judge alone"


def test_a_row_with_a_condition_that_it_does_not_say_is_judged_by_its_own_tests() -> None:
    # An index in the list: behind its end, the solution says something and a right answer raises.
    tests = [{"args": [[1, 2, 3], 0], "expected": [2, 3]}, {"args": [[4, 5, 6, 7], 3], "expected": [4, 5, 6]}]
    task = TWICE.model_copy(update={"tests": tests, "solution": "def f(a, i): return a[:i] + a[i + 1:]"})
    for seed in range(6):
        env = Code()
        env.reset(seed=seed, options={"task": task})
        assert env.step("def f(a, i):\n    del a[i]\n    return a")[1] == 1.0


def test_a_table_of_rare_answers_fails_too() -> None:
    tests = [{"args": [text], "expected": text == text[::-1]} for text in ("racecar", "abba", "hello", "ab")]
    task = TWICE.model_copy(update={"tests": tests, "solution": "def f(s): return s == s[::-1]"})
    for seed in range(4):
        env = Code(drawn=8)
        env.reset(seed=seed, options={"task": task})
        assert env.step("def f(s): return s in ('racecar', 'abba')")[1] == 0.0
        env.reset(seed=seed, options={"task": task})
        assert env.step("def f(s): return list(s) == list(reversed(s))")[1] == 1.0


def test_drawn_cases_follow_from_the_seed_and_hold_what_the_solution_returns() -> None:
    env = Code(drawn=5, examples=1)
    drawn = []
    for seed in (0, 0, 1):
        env.reset(seed=seed, options={"task": TWICE})
        own, others = env.problem.cases[:5], env.problem.cases[5:]
        assert own == problem_of(TWICE).cases
        assert env.problem.examples == "f(1) == 2", "drawn cases are never shown"
        assert len({case.args for case in others}) == 5
        assert all(case.expected == 2 * case.args[0] and -7 <= case.args[0] <= 12 for case in others)
        assert not {case.args for case in others} & {case.args for case in own}
        drawn.append(others)
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("solution", "kept"),
    [
        # It raises, returns another type, takes too long, does not say the same twice, dies.
        ("def f(x):\n    assert x in (1, 4, 0, -7, 12) or x % 2 == 0\n    return 2 * x", "x % 2 == 0"),
        ("def f(x):\n    return 2 * x if x in (1, 4, 0, -7, 12) or x < 3 else str(x)", "x < 3"),
        ("def f(x):\n    while x > 5 and x != 12: pass\n    return 2 * x", "x <= 5"),
        (
            "import random\ndef f(x): return 2 * x if x in (1, 4, 0, -7, 12) or x < 3 else random.getrandbits(64)",
            "x < 3",
        ),
        ("import os\ndef f(x): return 2 * x if x in (1, 4, 0, -7, 12) or x < 3 else os._exit(0)", "x < 3"),
    ],
)
def test_inputs_that_the_solution_does_not_take_are_dropped(solution: str, kept: str) -> None:
    env = Code(drawn=30, timeout=1.0)
    task = TWICE.model_copy(update={"solution": solution, "returns": "int"})
    env.reset(seed=0, options={"task": task})
    found = [case.args[0] for case in env.problem.cases[5:]]
    assert found
    assert all(eval(kept, {"x": x}) for x in found)
    assert env.step("def f(x): return 2 * x")[1] == 1.0


def test_a_solution_that_answers_nothing_in_time_draws_nothing() -> None:
    env = Code(drawn=8, timeout=1.0)
    env.reset(seed=0, options={"task": TWICE.model_copy(update={"solution": "def f(x):\n    while True: pass"})})
    assert env.problem.cases == problem_of(TWICE).cases


@pytest.mark.parametrize(
    ("solution", "said"),
    [
        ("def f(x): return x + 1", r"task 'twice': its solution says 5 for its own test f\(4\) == 8: mend one of them"),
        ("def f(x): return x / 0", "says ZeroDivisionError: division by zero for its own test"),
        ("def g(x): return 2 * x", "says NameError: there is no f for its own test"),
    ],
)
def test_a_solution_that_is_wrong_is_told(solution: str, said: str) -> None:
    env = Code(drawn=8)
    with pytest.raises(ValueError, match=said):
        env.reset(seed=0, options={"task": TWICE.model_copy(update={"solution": solution})})


def test_a_sandbox_that_breaks_under_the_solution_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **how: object) -> None:
        raise SandboxError("no sandbox")

    env = Code(drawn=8)
    monkeypatch.setattr(function, "run", broken)
    with pytest.raises(SandboxError):
        env.reset(seed=0, options={"task": TWICE})


def test_what_the_policy_can_reach_has_neither_the_solution_nor_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Code()
    env.reset(seed=0, options={"task": TWICE})
    jobs: list[dict] = []
    run = function.run

    def seen(program: str, *, stdin: bytes, **how: Any) -> Any:
        jobs.append(json.loads(stdin))
        return run(program, stdin=stdin, **how)

    monkeypatch.setattr(function, "run", seen)
    reply = "def f(x): return 2 * x"
    assert env.step(reply)[1] == 1.0
    assert jobs == [{"source": reply, "name": "f", "cases": [list(case.args) for case in env.problem.cases]}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tests": None}, "task 't'"),
        ({"tests": "[{]"}, "task 't'"),
        ({"tests": [{"args": [1]}]}, "'expected'"),
        ({"tests": []}, "shows 0 of 0 tests"),
        ({"examples": 1}, "shows 1 of 1 tests"),
        ({"returns": "str"}, "4 is not of type str"),
        ({"parameters": ["int", "int"]}, "task 't'"),
        ({"solution": ["x"]}, "its solution is code, a text, and no list"),
    ],
)
def test_a_task_without_usable_tests_is_told(change: dict, said: str) -> None:
    columns = {"id": "t", "prompt": "Twice x.", "tests": [{"args": [2], "expected": 4}], **change}
    with pytest.raises(ValueError, match=said):
        problem_of(Task(**columns))


def test_a_file_of_problems(tmp_path: Path) -> None:
    tests = [{"args": [n], "expected": None if n == 0 else n * 2} for n in range(4)]
    row = {"prompt": "Twice x, or None for 0.", "tests": json.dumps(tests), "returns": "int | None"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row | {"tests": tests}) + "\n")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        env = Code()
        [task] = read_tasks(tmp_path / name, Code.columns)
        env.check_task(task)
        env.reset(options={"task": task})
        assert env.step("def f(x): return x * 2 or None")[1] == 1.0
    with pytest.raises(ValueError, match="at least one has to stay hidden"):
        Code(examples=4, retries=1).check_task(task)


def test_the_same_seed_gives_the_same_problem_in_every_process() -> None:
    code = (
        "from latih.envs import make\n"
        "for level in range(1, 7):\n"
        "    env = make('code', level=level, examples=2)\n"
        "    print(env.reset(seed=4)[0][1].text, env.problem.cases)"
    )
    assert len(printed_in_other_processes(code)) == 1
