import random
from typing import Any

from latih.envs.code.variations import variations
from tests.envs.playing import printed_in_other_processes


def drawn(inputs: list[tuple[Any, ...]], count: int = 40) -> list[tuple[Any, ...]]:
    """Some of each of twenty seeds; none is one of the row's own."""
    found = [args for seed in range(20) for args in variations(inputs, count, random.Random(seed))]
    assert found
    assert not any(args in inputs for args in found)
    return found


def test_numbers_keep_to_the_range_of_the_row() -> None:
    ints = {args[0] for args in drawn([(1,), (4,), (0,), (-7,), (12,)])}
    assert ints == set(range(-7, 13)) - {1, 4, 0, -7, 12}
    floats = {args[0] for args in drawn([(0.5,), (0.25,), (0.75,)])}
    assert floats == {n / 100 for n in range(25, 76)} - {0.5, 0.25, 0.75}, "to as many digits as the row writes"


def test_an_int_of_which_the_row_shows_few_has_room_away_from_zero() -> None:
    assert {args[0] for args in drawn([(2,)])} == {3, 4, 5, 6, 7, 8, 9, 10}
    assert {args[0] for args in drawn([(-2,)])} == set(range(-10, -2))
    assert {args[0] for args in drawn([(-1,), (1,)])} == set(range(-9, 10)) - {-1, 1}
    bits = drawn([([0, 1, 1, 0],)])
    assert {bit for args in bits for bit in args[0]} == {0, 1}, "inside of a list it has not"


def test_texts_keep_their_form_and_characters() -> None:
    found = drawn([("Ab1-c",), ("Xb",), ("",)])
    assert {len(args[0]) for args in found} == {2, 5}
    for (text,) in found:
        assert text[0] in "AX"
        assert text[1] in "bc"
        assert text[2:4] in ("", "1-")


def test_lists_keep_their_length_and_what_all_of_them_are() -> None:
    assert all(args[0] == sorted(args[0]) for args in drawn([([1, 5, 9],), ([2, 30],)])), "rising"
    assert any(args[0] != sorted(args[0]) for args in drawn([([1, 9, 5],), ([2, 30],)]))
    for (permuted,) in drawn([([3, 0, 1],), ([2, 1, 0],)]):
        assert len(set(permuted)) == 3, "nothing twice"
        assert set(permuted) <= {0, 1, 2, 3}
    for (spans,) in drawn([([[0, 2], [5, 6]],), ([[3, 8]],)]):
        assert [len(span) for span in spans] in ([2, 2], [2])
        assert all(low < high for low, high in spans)


def test_in_half_of_the_inputs_what_was_equal_stays_equal() -> None:
    found = drawn([("racecar",)])
    assert 0.4 < sum(text == text[::-1] for (text,) in found) / len(found) < 0.7
    found = drawn([("listen", "silent"), ("one", "two")])
    assert 0.1 < sum(sorted(one) == sorted(other) for one, other in found) / len(found) < 0.7
    inside = [x in items for items, x in drawn([([10, 30, 50, 70], 50), ([20, 90], 20)])]
    assert 0.15 < sum(inside) / len(inside) < 0.7
    # A count of the same size as an element is none: it keeps to its own range.
    assert {k for _, k in drawn([([3, 40, 60], 3), ([90, 80], 2), ([70], 11)])} == set(range(2, 12))


def test_values_that_repeat_are_a_closed_set() -> None:
    found = drawn([("up", 1), ("down", 20), ("up", 30)])
    assert {args[0] for args in found} == {"up", "down"}
    assert {args[1] for args in found} == set(range(1, 31))


def test_every_type_keeps_its_own() -> None:
    one = (None, True, {"b": 2, "a": 1}, {3, 9}, (1.5, "x"), [[1], []])
    other = (None, False, {"b": 7}, {4, 5}, (2.5, "y"), [[6]])
    for none, flag, table, group, pair, lists in drawn([one, other]):
        assert none is None
        assert flag in (True, False)
        assert list(table) in (["b", "a"], ["b"])
        assert set(map(type, table.values())) == {int}
        assert (type(group), len(group)) == (set, 2)
        assert [type(each) for each in pair] == [float, str]
        assert [len(each) for each in lists] in ([1, 0], [1])


def test_where_there_is_no_other_input_none_is_drawn() -> None:
    for args in ((), (None,), ([],), ("aaa",), (float("inf"),), ({"a": "b"},)):
        assert variations([args], 5, random.Random(0)) == []


def test_the_smallest_come_first() -> None:
    found = variations([(30,), (2,), (17,)], 8, random.Random(0))
    assert len(found) == 8
    assert found == sorted(found)


def test_the_same_in_every_process() -> None:
    code = (
        "import random\n"
        "from latih.envs.code.variations import variations\n"
        "inputs = [({'b', 'a', 'c'}, 'abc', [1, 2]), ({'x'}, 'xyz', [7, 3])]\n"
        "found = variations(inputs, 8, random.Random(0))\n"
        "print([(sorted(each[0]), *each[1:]) for each in found])"
    )
    assert len(printed_in_other_processes(code)) == 1
