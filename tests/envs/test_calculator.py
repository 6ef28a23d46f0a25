import contextlib
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.envs.calculator import evaluate, show


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("7 / 2", Fraction(7, 2)),
        ("-3 - -4", 1),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("10000000000000000.1", Fraction(100000000000000001, 10)),
        (" .5 * 4. ", 2),
        ("8 / 4 / 2", 1),
    ],
)
def test_calculator_is_exact(expression: str, value: Fraction) -> None:
    assert evaluate(expression) == value


@given(
    st.recursive(
        st.integers(0, 999).map(str),
        lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        max_leaves=8,
    )
)
def test_calculator_agrees_with_python(expression: str) -> None:
    assert evaluate(expression) == eval(expression)


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("9**9**9", "numbers, + - * / and parentheses only"),
        ("7 // 2", "numbers, + - * / and parentheses only"),
        ("()", "numbers, + - * / and parentheses only"),
        ("__import__('os')", "numbers, + - * / and parentheses only"),
        ("2 + x", "numbers, + - * / and parentheses only"),
        ("1e9", "numbers, + - * / and parentheses only"),
        ("", "numbers, + - * / and parentheses only"),
        ("2 +", "cannot be parsed"),
        ("2(3)", "numbers, + - * / and parentheses only"),
        ("007", "cannot be parsed"),
        ("(" * 150, "cannot be parsed"),
        ("1 / (2 - 2)", "division by zero"),
        ("9" * 100, "too large"),
        ("*".join(["999999999"] * 20), "too large"),
        ("1+" * 100 + "1", "longer than 200 characters"),
        ("\uff11 + 1", "numbers, + - * / and parentheses only"),
    ],
)
def test_calculator_refuses_the_rest_quickly(expression: str, fault: str) -> None:
    started = time.perf_counter()
    with pytest.raises(ValueError, match=fault.replace("+", r"\+").replace("*", r"\*")):
        evaluate(expression)
    assert time.perf_counter() - started < 0.1


@settings(deadline=None)
@given(st.text(alphabet="0123456789+-*/(). ", max_size=200))
def test_calculator_gives_a_number_or_a_value_error(expression: str) -> None:
    with contextlib.suppress(ValueError):
        assert show(evaluate(expression))


def test_display() -> None:
    assert [show(Fraction(x)) for x in ("14", "-3", "7/2", "1/3", "10/5")] == ["14", "-3", "3.5", "0.3333333333", "2"]
