import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latih.core import ConfigError
from latih.rewards.caller import pack, unpack
from latih.rewards.values import conforms, matches, shaped

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(scalars, max_size=4)
        | st.dictionaries(scalars, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_values_survive_the_way_out(value: Any) -> None:
    wire = json.loads(json.dumps(pack(value)))
    assert repr(unpack(wire)) == repr(value) or unpack(wire) == value
    assert matches(value, wire)
    assert matches(value, wire, "any")


@given(values, values)
def test_equal_is_what_python_says_of_equal_types(one: Any, other: Any) -> None:
    if matches(one, json.loads(json.dumps(pack(other)))):
        assert one == other


@pytest.mark.parametrize(
    ("expected", "came", "returns", "right"),
    [
        (1, True, None, False),
        (1, 1.0, None, False),
        (1, True, "int", False),
        (1, 1.0, "int | float", True),
        (1, True, "int | bool", False),
        (True, 1, None, False),
        (True, True, "bool", True),
        (0, None, None, False),
        ("1", 1, None, False),
        ([1, 2], (1, 2), None, False),
        ((1, 2), (1, 2), "tuple[int, int]", True),
        ((1, 2), (1, 2), "tuple[int]", False),
        ((1, 2), (1, 2), "tuple[int, ...]", True),
        ([1, 2], [1, 2.0], None, False),
        ([1, 2], [1, 2, 3], None, False),
        ({1, 2}, {2, 1}, "set[int]", True),
        ({1, 2}, {True, 2}, None, False),
        ({1: "a"}, {True: "a"}, None, False),
        ({"a": [1]}, {"a": [1]}, "dict[str, list[int]]", True),
        ({"a": [1]}, {"a": [1]}, "dict[str, list[str]]", False),
        (None, None, "int | None", True),
        ([], {}, None, False),
        (10**30, 10**30 + 1, None, False),
        (10**30, 1e30, "int | float", True),
        (float("inf"), 1e308, None, False),
        (float("nan"), float("nan"), None, True),
        (1.0, float("nan"), None, False),
    ],
)
def test_types_count(expected: Any, came: Any, returns: str | None, right: bool) -> None:
    assert matches(expected, pack(came), returns) is right


def test_tolerance_is_that_of_the_expected_value() -> None:
    assert matches(0.3, 0.1 + 0.2, tolerance=1e-9)
    assert not matches(0.3, 0.1 + 0.2)
    assert matches(1000.0, 1000.9, tolerance=1e-3)
    assert not matches(1000.0, 1001.1, tolerance=1e-3)
    for far in (math.inf, -math.inf, 1e308, math.nan):
        assert not matches(1.0, far, tolerance=1e-3)
    assert not matches(5, 6, tolerance=1.0), "ints are exact"
    assert not matches(1.0, 10**400, "int | float", tolerance=1.0)


@pytest.mark.parametrize(
    "wire",
    [
        {"set": [1, 1]},
        {"set": [1, 2], "list": []},
        {"dict": [[1, 2], [1, 2]]},
        {"dict": [[1]]},
        {"dict": 5},
        {},
        {"tuple": None},
    ],
)
def test_forged_containers_are_none(wire: Any) -> None:
    for expected in ({1, 2}, {1: 2, 3: 4}, (1, 2), [1, 2]):
        assert not matches(expected, wire)
        assert not conforms(wire, "tuple[int, int] | dict[int, str]")


def test_subclasses_do_not_leave_the_sandbox() -> None:
    class Number(int):
        pass

    for odd in (Number(1), object(), 1j, (each for each in ()), [Number(1)], {1: Number(1)}):
        with pytest.raises(TypeError, match="is not a plain value"):
            pack(odd)


def test_json_takes_the_declared_shape() -> None:
    assert shaped([[1, 2], {"3": [4]}], "tuple[list[int], dict[int, set[int]]]") == ([1, 2], {3: {4}})
    assert repr(shaped([1, 2.5], "list[float]")) == "[1.0, 2.5]"
    assert shaped(None, "int | None") is None
    assert shaped({"a": True}, "dict[str, bool]") == {"a": True}
    for value, declared in ((True, "int"), (1.5, "int"), ([1], "tuple[int, int]"), ("x", "list[str]"), (1, "str")):
        with pytest.raises(ValueError, match="is not of type"):
            shaped(value, declared)


@pytest.mark.parametrize("declared", ["integer", "list[int", "dict[int]", "list[int, str]", "3", "int or None", ""])
def test_a_type_that_is_none_is_told(declared: str) -> None:
    with pytest.raises(ConfigError, match="is no type"):
        conforms(1, declared)


def test_the_members_of_a_set_are_compared_within_the_tolerance():
    assert matches({0.1 + 0.2, 5.0}, pack({0.3, 5.0}), "set[float]", 1e-6)
    assert not matches({0.1 + 0.2, 5.0}, pack({0.3, 5.0}), "set[float]")
    assert not matches({1.0, 1.0 + 1e-9}, pack({1.0, 7.0}), "set[float]", 1e-6), (
        "one is near to both, the other to none"
    )
