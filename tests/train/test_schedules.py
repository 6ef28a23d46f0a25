import pytest

from latih.train.schedules import learning_rate
from latih.train.settings import OptimizerSettings


def _rates(**settings):
    return [learning_rate(OptimizerSettings(lr=1.0, **settings), step, 6) for step in range(6)]


def test_constant_after_warmup():
    assert _rates(warmup_steps=3) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])


def test_linear():
    assert _rates(schedule="linear", warmup_steps=2) == pytest.approx([1 / 3, 2 / 3, 1, 0.75, 0.5, 0.25])


def test_cosine():
    # 0.5 (1 + cos(pi k / 6))
    assert _rates(schedule="cosine") == pytest.approx([1, 0.9330127, 0.75, 0.5, 0.25, 0.0669873])


def test_past_the_end_the_rate_stays_at_zero():
    assert learning_rate(OptimizerSettings(schedule="linear"), 9, 6) == 0.0
    assert learning_rate(OptimizerSettings(schedule="cosine"), 9, 6) == pytest.approx(0.0)
