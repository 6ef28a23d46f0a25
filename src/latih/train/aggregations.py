"""Aggregations: the weight of each token in the loss. One registered function per way to count.

The loss of an update is the sum over its tokens of weight x token loss. The weights are set for the whole update before
it is split into micro-batches, so the gradient does not depend on the split. Only tokens that count are given here:
what is masked has left the denominators.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from latih.core.registry import Registry

Aggregation: TypeAlias = Callable[[Sequence[int], int, int], list[float]]
"""(tokens that count in each row [rows], trajectories, constant) -> the weight of each token of a row [rows]."""

aggregations = Registry[Aggregation]("aggregation")


@aggregations.register("token")
def token(tokens: Sequence[int], trajectories: int, constant: int) -> list[float]:
    """Mean over all tokens (DAPO, Yu et al. 2025, arXiv:2503.14476)."""
    return [1 / sum(tokens) for _ in tokens]


@aggregations.register("sequence")
def sequence(tokens: Sequence[int], trajectories: int, constant: int) -> list[float]:
    """Mean over sequences of the mean over a sequence's tokens (GRPO, Shao et al. 2024, arXiv:2402.03300)."""
    return [1 / (len(tokens) * each) for each in tokens]


@aggregations.register("constant")
def constant(tokens: Sequence[int], trajectories: int, constant: int) -> list[float]:
    """Sum over tokens / (constant x trajectories): no bias by length (Dr. GRPO, Liu et al. 2025, arXiv:2503.20783)."""
    return [1 / (constant * trajectories) for _ in tokens]
