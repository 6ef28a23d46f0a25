"""Every token of an update counts the same."""

from collections.abc import Sequence

from latih.train.aggregations import aggregations


@aggregations.register("token")
def token(tokens: Sequence[int], trajectories: int, constant: int) -> list[float]:
    """Mean over all tokens (DAPO, Yu et al. 2025, arXiv:2503.14476)."""
    return [1 / sum(tokens) for _ in tokens]
