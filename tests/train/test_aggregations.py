import pytest

from latih.train.aggregations import aggregations


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # rows of 2, 6 and 4 tokens, of two trajectories; constant 10
        ("token", [1 / 12, 1 / 12, 1 / 12]),
        ("sequence", [1 / 6, 1 / 18, 1 / 12]),
        ("constant", [1 / 20, 1 / 20, 1 / 20]),
    ],
)
def test_weight_of_a_token_by_hand(name, expected):
    assert aggregations.get(name)([2, 6, 4], 2, 10) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["token", "sequence"])
def test_means_weigh_one_in_total(name):
    tokens = [3, 1, 9]
    weights = aggregations.get(name)(tokens, 3, 1)
    assert sum(w * t for w, t in zip(weights, tokens, strict=True)) == pytest.approx(1.0)
