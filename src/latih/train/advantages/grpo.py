"""The return against its group, in units of the spread of the group."""

import math

from latih.train.advantages import advantages, episodic

EPSILON = 1e-6


@advantages.register("grpo")
@episodic
def grpo(returns: list[float]) -> list[float]:
    """(Return - mean) / standard deviation of the group (GRPO, Shao et al. 2024, arXiv:2402.03300).

    The deviation is the population's (divided by n), with 1e-6 added.
    """
    baseline = math.fsum(returns) / len(returns)
    deviation = math.sqrt(math.fsum((each - baseline) ** 2 for each in returns) / len(returns))
    return [(each - baseline) / (deviation + EPSILON) for each in returns]
