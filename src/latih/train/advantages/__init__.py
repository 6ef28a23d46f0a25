"""Advantages: how much better than its group each sampled token's trajectory did. One file per estimator.

An estimator takes the token rewards of every trajectory of one group, and the trajectories, and returns the advantage
of the same tokens.
Those that look at whole episodes only are written as a function of the episodes' returns and wrapped by `episodic`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from latih.core.plugins import import_all
from latih.core.registry import Registry
from latih.core.trajectories import Trajectory

TokenValues: TypeAlias = list[list[float]]
"""One list per trajectory, one entry per sampled token. [trajectories][sampled]"""
Advantage: TypeAlias = Callable[[TokenValues, Sequence[Trajectory]], TokenValues]
"""Token rewards of a group and its trajectories in, token advantages out, both shaped [trajectories][sampled]."""

advantages = Registry[Advantage]("advantage")


def episodic(estimate: Callable[[list[float]], list[float]]) -> Advantage:
    """Make an estimator of one that knows whole episodes only: each episode's advantage goes to all its tokens."""

    @functools.wraps(estimate)
    def spread(rewards: TokenValues, trajectories: Sequence[Trajectory] = ()) -> TokenValues:
        scores = estimate([math.fsum(each) for each in rewards])
        return [[score] * len(each) for score, each in zip(scores, rewards, strict=True)]

    return spread


import_all(__name__)
