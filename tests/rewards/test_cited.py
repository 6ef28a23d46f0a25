import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latih.envs.mail_search.questions import Question
from latih.rewards.cited import Verdict, f1, judge, normalize, speed

TWO = Question("hop", "?", ("$4,217",), (frozenset({3}), frozenset({7, 8})), ("$9,999",))
NONE = Question("none", "?", ())
ABSTAIN, BONUS = 0.2, 0.1


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("$4,217", "4217"),
        ("4217 €", "4217"),
        ("\uff14217", "4217"),
        ("$1,234,567.89", "1234567.89"),
        ("B214", "b214"),
        (' "B214." ', "b214"),
        ("«B214»", "«b214»"),
        ("Ann \n Lee", "ann lee"),
        ("STRASSE", normalize("straße")),
        ("2025-03-04", "2025-03-04"),
        ("-5", "-5"),
        ("1,23", "1,23"),
        ("12,345,67", "12,345,67"),
        ("4217 or 4218", "4217 or 4218"),
        ("4,217, 4,218", "4217, 4218"),
        ("$4,217$4,218", "4217$4218"),
        ("4$217", "4$217"),  # two values do not make a third
        ("4 $217", "4 $217"),
        ("2025\u201103\u201104", "2025-03-04"),
        ("O\u2019Neil", "o'neil"),
        ("4217 " * 1000, "4217 " * 1000),
        ("...", ""),
    ],
)
def test_normal_forms(text: str, same: str) -> None:
    assert normalize(text) == same


def test_long_texts_take_no_time() -> None:
    start = time.perf_counter()
    assert not judge(TWO, "4217" + "\u0301\u0323" * 500_000, {3, 7}).value
    assert time.perf_counter() - start < 2


@given(st.text(max_size=50))
def test_normalizing_any_text_succeeds_and_case_does_not_matter(text: str) -> None:
    assert isinstance(normalize(text), str)
    assert normalize(f'  "{text}" ') == normalize(text)


@pytest.mark.parametrize(
    ("cited", "value"),
    [
        (set(), 0.0),
        ({9}, 0.0),
        ({3}, 2 / 3),  # precision 1, recall 1/2
        ({3, 7}, 1.0),
        ({3, 8}, 1.0),
        ({3, 7, 8}, 1.0),
        ({3, 9}, 1 / 2),
        ({3, 7, 9}, 4 / 5),  # precision 2/3, recall 1
        ({7, 8}, 2 / 3),
    ],
)
def test_f1_by_hand(cited: set[int], value: float) -> None:
    assert f1(TWO.sources, cited) == pytest.approx(value)


@pytest.mark.parametrize(
    ("question", "text", "cited", "reward"),
    [
        (TWO, "4217", [3, 7], 1.1),
        (TWO, " $4,217. ", [8, 3, 3], 1.1),
        (TWO, "4217", [3], 0.4 + 0.4 * 2 / 3),
        (TWO, "4217", [], 0.4),
        (TWO, "4217", [1], 0.4),
        (TWO, "unknown", [], 0.2),
        (TWO, "Unknown.", [3, 7], 0.2),
        (TWO, "", [3, 7], 0.2),
        (TWO, "4218", [3, 7], 0.1),
        (TWO, "4218", [3], 0.1 * 2 / 3),
        (TWO, "4218", [], 0.0),
        (TWO, "9999", [3, 7], 0.0),
        (TWO, "4217 or 4218", [3, 7], 0.1),
        (TWO, "4217 4217", [3, 7], 0.1),
        (TWO, "The value is 4217", [3, 7], 0.1),
        (NONE, "unknown", [], 1.1),
        (NONE, "unknown", [5], 1.1),
        (NONE, "", [], 1.1),
        (NONE, "4217", [], 0.0),
        (NONE, "4217", [1, 2], 0.0),
        (NONE, "none", [], 0.0),
    ],
)
def test_rewards_by_hand(question: Question, text: str, cited: list[int], reward: float) -> None:
    assert judge(question, text, cited).reward(ABSTAIN, BONUS) == pytest.approx(reward)


def test_any_of_several_answers_is_right() -> None:
    question = Question("task", "?", ("2027-03-31", "31 March 2027"), (frozenset({1}),))
    assert judge(question, "31 march 2027", [1]).right
    assert not judge(question, "2027-03-31 31 March 2027", [1]).value


@given(st.text(max_size=12) | st.sampled_from(["4217", "unknown", "9999"]), st.sets(st.integers(0, 10), max_size=6))
def test_rewards_are_ordered_and_bounded(text: str, cited: set[int]) -> None:
    for question in (TWO, NONE):
        verdict = judge(question, text, cited)
        reward = verdict.reward(ABSTAIN, BONUS)
        if verdict.right:
            assert reward == 1.1
        elif verdict.value:
            assert 0.4 <= reward < 0.8
        elif verdict.abstained:
            assert reward == 0.2
        else:
            assert 0.0 <= reward <= 0.1
        assert not (verdict.obeyed and reward)


def test_speed_by_hand() -> None:
    assert [speed(calls, 2, 6) for calls in range(7)] == [0.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    assert [speed(calls, 4, 3) for calls in range(4)] == [0.0, 1.0, 1.0, 1.0]
    assert speed(2, 2, 2) == 1.0


def test_a_verdict_is_right_only_in_full() -> None:
    assert Verdict(value=True, sources=1.0).right
    assert not Verdict(value=True, sources=0.99).right
    assert not Verdict(value=False, sources=1.0).right
