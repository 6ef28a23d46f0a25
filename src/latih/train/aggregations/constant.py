"""Every token counts the same in every update."""

from collections.abc import Sequence

from latih.train.aggregations import aggregations


@aggregations.register("constant")
def constant(tokens: Sequence[int], trajectories: int, constant: int) -> list[float]:
    """Sum over tokens / (constant x trajectories): no bias by length (Dr. GRPO, Liu et al. 2025, arXiv:2503.20783)."""
    return [1 / (constant * trajectories) for _ in tokens]
