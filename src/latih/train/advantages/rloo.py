"""The return against the mean of the others."""

import math

from latih.train.advantages import advantages, episodic


@advantages.register("rloo")
@episodic
def rloo(returns: list[float]) -> list[float]:
    """Return minus the mean of the others (REINFORCE leave-one-out, Ahmadian et al. 2024, arXiv:2402.14740)."""
    total = math.fsum(returns)
    return [each - (total - each) / (len(returns) - 1) for each in returns]
