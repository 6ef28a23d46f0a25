"""Nonsense from an env is named."""

import math

import numpy as np
import pytest

from latih.core import Message
from latih.rollout.answers import Nonsense, checked_reset, checked_step


def test_every_form_of_observation():
    message = Message(role="tool", content="x")
    assert checked_reset(("hi", {}))[0] == [Message(role="user", content="hi")]
    assert checked_reset((message, {}))[0] == [message]
    assert checked_reset(([message, message], {"metrics": {"a": 1}})) == ([message, message], {"a": 1.0})
    assert checked_step(([], 0, True, False, {})).messages == []


def test_numbers_and_flags_of_numpy_are_fine():
    outcome = checked_step(("x", np.float32(0.5), np.bool_(True), False, {"metrics": {"win": True, "n": np.int64(3)}}))
    assert (outcome.reward, outcome.terminated, outcome.metrics) == (0.5, True, {"win": 1.0, "n": 3.0})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "returned NoneType None; expected (observation, info)"),
        ("hi", "returned str 'hi'; expected (observation, info)"),
        ((5, {}), "returned int 5 as the observation; expected a str, a Message or a list of Messages"),
        (([{"role": "user"}], {}), "returned a list of 1: [{'role': 'user'}] as the observation"),
        (([], {}), "returned no messages"),
        (("hi", None), "returned NoneType None as info; expected a dict"),
        (("hi", {"metrics": [1]}), 'returned a list of 1: [1] as info["metrics"]'),
        (
            ("hi", {"metrics": {"win": "yes"}}),
            "returned str 'yes' as info[\"metrics\"]['win']; expected a finite number",
        ),
    ],
)
def test_nonsense_of_reset(answer, text):
    with pytest.raises(Nonsense) as caught:
        checked_reset(answer)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            ("x", 1.0, True, {}),
            "returned a tuple of 4: ('x', 1.0, True, {}); expected (observation, reward, terminated",
        ),
        (("x", "1", True, False, {}), "returned str '1' as the reward; expected a finite number"),
        (("x", math.nan, True, False, {}), "returned float nan as the reward"),
        (("x", 1.0, "yes", False, {}), "returned str 'yes' as terminated; expected True or False"),
        (("x", 1.0, True, None, {}), "returned NoneType None as truncated; expected True or False"),
        (("x" * 200, 1.0, True, False, {}, 1), "..."),
    ],
)
def test_nonsense_of_step(answer, text):
    with pytest.raises(Nonsense) as caught:
        checked_step(answer)
    assert text in str(caught.value)
