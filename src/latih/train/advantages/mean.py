"""The return against the mean of its group."""

import math

from latih.train.advantages import advantages, episodic


@advantages.register("mean")
@episodic
def mean(returns: list[float]) -> list[float]:
    """Return minus the group's mean, not divided by its spread (Dr. GRPO, Liu et al. 2025, arXiv:2503.20783)."""
    baseline = math.fsum(returns) / len(returns)
    return [each - baseline for each in returns]
