"""Every sequence of an update counts the same."""

from collections.abc import Sequence

from latih.train.aggregations import aggregations


@aggregations.register("sequence")
def sequence(tokens: Sequence[int], trajectories: int, constant: int) -> list[float]:
    """Mean over sequences of the mean over a sequence's tokens (GRPO, Shao et al. 2024, arXiv:2402.03300)."""
    return [1 / (len(tokens) * each) for each in tokens]
