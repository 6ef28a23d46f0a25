import math

import pytest

from latih.evaluation.intervals import Estimate, clustered, student, t_quantile, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # Newcombe, "Two-sided confidence intervals for the single proportion", Stat. Med. 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_against_a_published_table(successes: int, n: int, low: float, high: float) -> None:
    got = wilson(successes, n)
    assert (got.low, got.high) == pytest.approx((low, high), abs=5e-5)
    mirrored = wilson(n - successes, n)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (10, 2.2281), (30, 2.0423), (120, 1.9799)],
)
def test_t_quantile_against_the_tables(freedom: int, quantile: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(quantile, rel=1.3e-3 if freedom < 5 else 2e-4)


def test_student_by_hand() -> None:
    # mean 3, s = sqrt(2.5), n = 5: 3 ± 2.7764 · 1.5811 / 2.2361
    got = student([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (got.value, got.n) == (3.0, 5)
    assert (got.low, got.high) == pytest.approx((3 - 1.9632, 3 + 1.9632), abs=1e-3)


def test_edges() -> None:
    assert student([0.5, 0.5]).low == student([0.5, 0.5]).high == 0.5
    alone = student([1.0])
    assert (alone.low, alone.high) == (-math.inf, math.inf)
    assert Estimate.model_validate_json(alone.model_dump_json()) == alone
    for bad in [(1, 0), (3, 2), (-1, 2)]:
        with pytest.raises(ValueError, match="make no rate"):
            wilson(*bad)
    with pytest.raises(ValueError, match="make no mean"):
        student([])


def test_a_rate_rests_on_the_games_and_not_on_their_roles() -> None:
    helping = clustered([[0.0, 0.0]] * 50 + [[1.0, 1.0]] * 50)  # one thing said twice: 50 of 100
    assert helping == wilson(50, 100)
    against = clustered([[0.0, 1.0]] * 100)  # a win is a loss: the rate is certain, and the bound is that of 200
    assert against == wilson(100, 200)
    apart = clustered([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 25)  # variance 1/8, half of one value's
    assert apart == wilson(100, 200)
    # means 0, 1/2, 1, 1: variance 11/64 where one value has 15/64; 4 · 15/11 = 5.45 is 5
    assert clustered([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]]) == wilson(5 * 5 / 8, 5)
    assert clustered([[1.0, 1.0]] * 10) == wilson(10, 10)  # nothing tells whether the roles differ
    assert clustered([[1.0], [0.0], [0.0]]) == wilson(1, 3)
