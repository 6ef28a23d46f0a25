import random

from hypothesis import given
from hypothesis import strategies as st

from latih.train.batch import Row
from latih.train.packing import SHORTEST_SHARED, lay_out, pack, shared_prefix


def _row(ids, trajectory=0):
    at = [*range(0, len(ids), 3), len(ids) - 1]
    zeros = [0.0] * len(at)
    return Row(
        ids=ids, at=at, targets=[0] * len(at), sampler_logprobs=zeros, temperatures=zeros, advantages=zeros,
        trajectory=trajectory,
    )  # fmt: skip


def _context(layout, place):
    """The tokens that a place of the layout sees, itself last, by following the parents."""
    starts = [sum(layout.lengths[:i]) for i in range(len(layout.lengths))]
    segment = max(i for i, start in enumerate(starts) if start <= place)
    seen = layout.ids[starts[segment] : place + 1]
    while (segment := layout.parents[segment]) >= 0:
        seen = layout.ids[starts[segment] : starts[segment] + layout.lengths[segment]] + seen
    return seen


def _check(rows, parts, budget):
    assert sorted((each.ids, each.trajectory) for part in parts for each in part) == sorted(
        (each.ids, each.trajectory) for each in rows
    )
    for part in parts:
        layout = lay_out(part)
        assert len(layout.ids) == len(layout.positions) == sum(layout.lengths)
        assert len(layout.ids) <= budget or len(part) == 1
        assert all(parent < i for i, parent in enumerate(layout.parents))
        for each, places in zip(part, layout.at, strict=True):
            for at, place in zip(each.at, places, strict=True):
                assert _context(layout, place) == each.ids[: at + 1]
                assert layout.positions[place] == at


def test_shared_prefix():
    assert shared_prefix([1, 2, 3], [1, 2, 4, 5]) == 2
    assert shared_prefix([1, 2], [1, 2, 4]) == 2
    assert shared_prefix([1, 2, 4], [1, 2]) == 2
    assert shared_prefix([1], [2]) == 0


def test_a_shared_prompt_is_laid_once():
    prompt = list(range(100))
    rows = [_row([*prompt, 200 + i, 7, 8]) for i in range(5)]
    layout = lay_out(pack(rows, 1000)[0])
    assert layout.lengths == [100, 3, 3, 3, 3, 3]
    assert sorted(layout.parents) == [-1, 0, 0, 0, 0, 0]


def test_equal_rows_share_everything_and_one_may_continue_another():
    ids = list(range(50))
    layout = lay_out(pack([_row(ids), _row(ids), _row([*ids, 1, 2])], 1000)[0])
    assert layout.lengths == [50, 2]
    assert layout.parents == [-1, 0]


def test_short_prefixes_are_not_worth_a_segment():
    rows = [_row([1, 2, 10 + i]) for i in range(3)]
    assert lay_out(pack(rows, 1000)[0]).lengths == [3, 3, 3]


def test_budget_holds_and_long_rows_go_alone():
    rows = [_row([i] * (40 + i)) for i in range(10)] + [_row([99] * 300)]
    parts = pack(rows, 100)
    _check(rows, parts, 100)
    assert [len(part[0].ids) for part in parts if len(part[0].ids) > 100] == [300]


def test_order_of_rows_does_not_matter():
    rng = random.Random(0)
    rows = [_row([rng.randrange(3) for _ in range(rng.randint(1, 60))], i) for i in range(40)]
    shuffled = rng.sample(rows, len(rows))
    assert pack(rows, 150) == pack(shuffled, 150)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.integers(0, 1), min_size=1, max_size=8)), min_size=1, max_size=25
    ),
    st.integers(30, 400),
)
def test_every_prediction_sees_exactly_its_own_row(shapes, budget):
    stem = [9] * (SHORTEST_SHARED + 2)
    rows = [_row([*(stem * repeats), *tail], i) for i, (repeats, tail) in enumerate(shapes)]
    _check(rows, pack(rows, budget), budget)
