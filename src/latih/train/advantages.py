"""Advantages: how much better than its group each sampled token's trajectory did: one registered function each.

An estimator takes the token rewards of every trajectory of one group and returns the advantage of the same tokens.
Those that look at whole episodes only are written as a function of the episodes' returns and wrapped by `episodic`.
"""

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

from latih.core.registry import Registry

TokenValues: TypeAlias = list[list[float]]
"""One list per trajectory, one entry per sampled token. [trajectories][sampled]"""
Advantage: TypeAlias = Callable[[TokenValues], TokenValues]
"""Token rewards of a group in, token advantages out, both shaped [trajectories][sampled]."""

advantages = Registry[Advantage]("advantage")

EPSILON = 1e-6


def episodic(estimate: Callable[[list[float]], list[float]]) -> Advantage:
    """Make an estimator of one that knows whole episodes only: each episode's advantage goes to all its tokens."""

    @functools.wraps(estimate)
    def spread(rewards: TokenValues) -> TokenValues:
        scores = estimate([math.fsum(each) for each in rewards])
        return [[score] * len(each) for score, each in zip(scores, rewards, strict=True)]

    return spread


@advantages.register("mean")
@episodic
def mean(returns: list[float]) -> list[float]:
    """Return minus the group's mean, not divided by its spread (Dr. GRPO, Liu et al. 2025, arXiv:2503.20783)."""
    baseline = math.fsum(returns) / len(returns)
    return [each - baseline for each in returns]


@advantages.register("grpo")
@episodic
def grpo(returns: list[float]) -> list[float]:
    """(Return - mean) / standard deviation of the group (GRPO, Shao et al. 2024, arXiv:2402.03300).

    The deviation is the population's (divided by n), with 1e-6 added.
    """
    baseline = math.fsum(returns) / len(returns)
    deviation = math.sqrt(math.fsum((each - baseline) ** 2 for each in returns) / len(returns))
    return [(each - baseline) / (deviation + EPSILON) for each in returns]


@advantages.register("rloo")
@episodic
def rloo(returns: list[float]) -> list[float]:
    """Return minus the mean of the others (REINFORCE leave-one-out, Ahmadian et al. 2024, arXiv:2402.14740)."""
    total = math.fsum(returns)
    return [each - (total - each) / (len(returns) - 1) for each in returns]
