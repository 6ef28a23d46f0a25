import collections
import random

import pytest

from latih.envs.repo_repair.expectations import untellable
from latih.envs.repo_repair.forms import FORMS, OTHERS, PATTERNS, Secret, draw_forms, enough
from latih.rewards.repo import Edit


def edit(start: int, new: str) -> Edit:
    return Edit(path="t.py", start=start, old="0", new=new)


SECRETS = [Secret(f"t.py::{n}", frozenset({f"t.py::{n}"}), tuple(edit(n, each) for each in "123")) for n in range(3)]
OTHER = [edit(100 + n, "9") for n in range(8)]


def test_how_many_tests_must_be_guessed() -> None:
    # Two: a coin for each of 2 right and 4 wrong texts, at best (1/3)^2 (2/3)^4 = 1/46. Three: (1/3)^3 (2/3)^6 = 1/307.
    assert [enough(each) for each in range(5)] == [False, False, False, True, True]
    assert len(PATTERNS) == 10  # 6 ways to be wrong in two of four forms, 4 in three: known forms, (1/10)^3 = 1/1000


def test_a_secret_is_wrong_in_two_or_three_forms_and_never_twice_the_same() -> None:
    for seed in range(200):
        draws, odds = draw_forms(SECRETS, OTHER, random.Random(seed))
        assert len(draws) == FORMS
        wrong = [[each for draw in draws for each in draw.edits if each.start == n] for n in range(3)]
        for n, edits in enumerate(wrong):
            assert len(edits) == sum(f"t.py::{n}" in draw.changed for draw in draws)
            assert len({each.new for each in edits}) == len(edits)
            assert len(edits) in (2, 3)
        texts = sum(map(len, wrong))
        assert odds == pytest.approx((3 / (3 + texts)) ** 3 * (texts / (3 + texts)) ** texts)
        assert odds <= 1 / 256
        assert all(1 <= sum(each.start >= 100 for each in draw.edits) <= OTHERS for draw in draws)


def test_nothing_follows_from_other_secrets_or_from_the_number_of_other_changes() -> None:
    pairs, beside = collections.Counter[tuple[bool, bool]](), collections.Counter[tuple[bool, int]]()
    rng = random.Random(0)
    for _ in range(5000):
        [first, *_], _ = draw_forms(SECRETS, OTHER, rng)
        is_wrong = ["t.py::0" in first.changed, "t.py::1" in first.changed]
        pairs[is_wrong[0], is_wrong[1]] += 1
        beside[is_wrong[0], sum(each.start >= 100 for each in first.edits)] += 1
    # In 3 of 6 and 3 of 4 patterns a form is wrong: 6 of 10.
    for (a, b), count in pairs.items():
        assert count / 5000 == pytest.approx((0.6 if a else 0.4) * (0.6 if b else 0.4), abs=0.03)
    for (a, _), count in beside.items():
        assert count / 5000 == pytest.approx((0.6 if a else 0.4) / OTHERS, abs=0.03)


MODULE = """from shop import f, g


def test_a():
    assert f(1) == 10
    assert f(2) == 20
    assert f(3) == 30


class TestB:
    def test_b(self):
        got = g("no one can say yes for long")
        assert 5 == 5
        assert got["a"] == "yes"
        assert f(3) is True
        for each in [1, 2]:
            assert got == [each,
                           "long"]


def test_c():
    assert f(1) == True
    assert f(len("a")) == f(2)
"""


def places(function: str, text: str) -> set[str]:
    line = MODULE[: MODULE.index(text)].count("\n") + 1
    found = set()
    for seed in range(10):
        edits = untellable("t.py", MODULE, function, line, 3, random.Random(seed))
        for each in edits:
            assert MODULE[each.start :].startswith(each.old)
            assert each.new != each.old
        assert len({(each.start, each.new) for each in edits}) == len(edits)
        found |= {each.old for each in edits}
    return found


def test_what_broken_code_cannot_tell_stands_where_it_fails() -> None:
    assert places("test_a", "f(2)") == {"20"}
    assert places("TestB::test_b", "got = g") == {"yes", "long"}, "where it is assigned, what looks at it"
    assert places("TestB::test_b", "got == [") == {"long"}
    assert places("test_c", "f(1) == True") == set(), "of a truth value there is one wrong one"
    assert places("test_c", "f(len") == set()
    assert places("absent", "f(2)") == set()
    assert untellable("t.py", MODULE, "test_a", 0, 3, random.Random(0)) == []


TABLE = """from shop import f


def test_swap():
    assert f("<a>xyz</a>") == {"a": "xyz"}


def test_set():
    assert f("ab cd") == {"ab", "cd"}


def test_day():
    assert f("12/31") == date(2031, 12, 31)


def test_lone():
    assert f(0) == "word"
"""


def wrong(function: str, module: str = TABLE) -> set[str]:
    """What the failing statement of a test may expect instead: what follows the two equals signs."""
    line = next(n for n, text in enumerate(module.splitlines(), 1) if text.startswith(f"def {function}")) + 1
    found = set()
    for seed in range(100):
        for each in untellable("t.py", module, function, line, 1, random.Random(seed)):
            changed = module[: each.start] + each.new + module[each.start + len(each.old) :]
            found.add(changed.splitlines()[line - 1].partition(" == ")[2])
    return found


def test_wrong_expectations_are_as_familiar_as_the_right_one() -> None:
    # Its words stand in the test besides; so do those of each other, and none is left that stands nowhere else.
    assert wrong("test_swap") == {'{"xyz": "a"}', '{"xyz": "xyz"}', '{"a": "a"}'}
    assert wrong("test_set") == {'{"ab", "ab"}', '{"cd", "cd"}'}, "the two in the other order are the same set"
    assert "date(2031, 31, 12)" not in wrong("test_day"), "there is no such day: that would be told"
    assert (
        {"date(2031, 12, 12)"}
        <= wrong("test_day")
        <= {f"date({y}, {m}, {d})" for y in range(2022, 2041) for m in range(1, 13) for d in range(1, 32)}
    )
    assert wrong("test_lone") == set(), "no other word is found nowhere else"


def test_wrong_numbers_lie_near_and_are_drawn() -> None:
    drawn = wrong("test_a", MODULE.replace("assert f(1) == 10\n    ", ""))
    assert drawn <= {str(n) for n in range(11, 30)} - {"20"}
    assert len(drawn) > 10, "no rule says from the wrong one which was right"
