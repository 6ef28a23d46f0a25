import threading

import pytest

from latih.core import ConfigError, SandboxError
from latih.rewards import function
from latih.rewards.function import LIMITS, Case, Verdict, code_of, credit, grade
from latih.sandbox import Result

DOUBLE = [Case((1,), 2), Case((5,), 10), Case((0,), 0)]


def test_a_function_is_called_on_every_case() -> None:
    verdict = grade("def f(x):\n    print('noise')\n    return x * 2", "f", DOUBLE)
    assert verdict == Verdict((True,) * 3, ("2", "10", "0"), (True,) * 3)
    assert verdict.passed


def test_each_case_has_its_own_outcome() -> None:
    verdict = grade("def f(x):\n    return 10 // x * 2 if x < 5 else [x]", "f", DOUBLE)
    assert verdict.right == (False, False, False)
    assert verdict.said == ("20", "[5]", "ZeroDivisionError: integer division or modulo by zero")
    assert verdict.answered == (True, True, False)
    assert not verdict.passed


def test_values_of_all_kinds_go_in_and_out() -> None:
    cases = [Case(({1: (2, {3})}, "é\ud800"), [{1: (2, {3})}, "é\ud800", None, 0.5])]
    assert grade("def f(a, b): return [a, b, None, 0.5]", "f", cases).passed


def test_modules_state_and_classes_work_as_usual() -> None:
    source = """
import dataclasses, functools
@dataclasses.dataclass
class Pair:
    x: int
@functools.cache
def double(x):
    return Pair(x).x * 2
f = double
"""
    assert grade(source, "f", DOUBLE).passed


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(x) return x", "SyntaxError"),
        ("def g(x): return x", "NameError: there is no f"),
        ("f = 3", "TypeError: 'int' object is not callable"),
        ("", "NameError: there is no f"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("import os; os._exit(3)", "nothing came back"),
        ("\x00", "null bytes"),
    ],
)
def test_what_is_no_function_says_so(source: str, said: str) -> None:
    verdict = grade(source, "f", DOUBLE)
    assert not any(verdict.right + verdict.answered)
    assert all(said in each for each in verdict.said)


def test_time_that_runs_out_scores_nothing() -> None:
    limits = LIMITS.model_copy(update={"wall": 1.5})
    verdict = grade("import time\ndef f(x):\n    x or time.sleep(60)\n    return x * 2", "f", DOUBLE, limits=limits)
    assert verdict.timed_out
    assert verdict.right == (False,) * 3, "what was right before does not count either"


def test_two_results_for_a_case_are_none() -> None:
    source = """
import os
os.write(int(os.environ["LATIH_CHANNEL"]), b'{"case": 1, "value": 10}\\n')
def f(x): return x * 2
"""
    assert grade(source, "f", DOUBLE).right == (False,) * 3


def test_a_broken_sandbox_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Result(code=1, stdout=b"", stderr=b"no space left\n", channel=b"", timed_out=False, cut=False, seconds=0.1)
    monkeypatch.setattr(function, "run", lambda *args, **how: broken)
    with pytest.raises(SandboxError, match=r"before the function was called .*no space left"):
        grade("def f(x): return 0", "f", DOUBLE)


def test_expected_values_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    real = function.run

    def spy(*args: object, **how: object) -> Result:
        sent.append((args, how))
        return real(*args, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(function, "run", spy)
    assert not grade("def f(x): return x", "f", [Case((3,), 918273645)]).passed
    assert "918273645" not in repr(sent)


def test_a_type_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match="is no type"):
        grade("def f(x): return x * 2", "f", DOUBLE, returns="integer")


def test_several_at_once() -> None:
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.append(grade("def f(x): return x * 2", "f", DOUBLE).passed))
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [True] * 4


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("def f(): pass", "def f(): pass"),
        ("So:\n```python\nx = 1\n```\nDone.", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1\n```\n```python\nx = 2\n```", None),
        ("", ""),
        ("```python\nx = 1", "x = 1"),
        ("1. So:\n   ```python\n   if x:\n       y = 1\n   ```\n", "if x:\n    y = 1\n"),
        (" ```\n x = 1\n ```\n  ```\n  x = 2\n  ```", None),
        ("  ```\n  x = 1", "x = 1"),
        ("```\nx = 1\n```\n```\nDone.", "x = 1\n"),
        (
            'def f():\n    """\n    ```\n    f()\n    ```\n    """',
            'def f():\n    """\n    ```\n    f()\n    ```\n    """',
        ),
        ("<think>\n```python\nx = 2\n```\n</think>\n```python\nx = 1\n```", "x = 1\n"),
    ],
)
def test_a_reply_has_one_program(reply: str, code: str | None) -> None:
    assert code_of(reply) == code


def verdict(*right: int) -> Verdict:
    return Verdict(tuple(map(bool, right)), ("",) * len(right), (True,) * len(right))


def test_credit_pays_nothing_for_constants_and_echoes() -> None:
    thirds = [Case((x,), x % 3) for x in (1, 2, 3, 6, 9)]
    assert credit(verdict(0, 0, 1, 1, 1), thirds) == 0.0, "always 0"
    assert credit(verdict(1, 0, 1, 1, 1), thirds) == 0.5
    assert credit(verdict(1, 1, 1, 1, 1), thirds) == 1.0
    echo = [Case((7, x), x) for x in range(4)] + [Case((7, 9), 5)]
    assert credit(verdict(1, 1, 1, 1, 0), echo) == 0.0
    assert credit(verdict(1, 1, 1, 1, 1), echo) == 1.0
    same = [Case((x,), 3) for x in range(4)]
    assert credit(verdict(1, 1, 1, 0), same) == 0.0
    assert credit(verdict(1, 1, 1, 1), same) == 1.0
    assert credit(verdict(1, 1, 0, 0), [Case((x,), x + 1) for x in range(4)], shown=2) == 0.0, "only shown ones"
    assert credit(verdict(), []) == 0.0


def test_credit_pays_a_coin_nothing() -> None:
    bits = [Case((x,), x % 2) for x in range(8)]
    tosses = [[toss >> x & 1 for x in range(8)] for toss in range(256)]
    paid = [credit(verdict(*(a == case.expected for a, case in zip(toss, bits, strict=True))), bits) for toss in tosses]
    assert sorted(paid) == [0.0] * 255 + [1.0], "only the toss that is right everywhere is paid"
    assert credit(verdict(1, 1, 1, 0), [Case((x,), [True, 1][x % 2]) for x in range(4)]) == 0.0, "True is not 1"
