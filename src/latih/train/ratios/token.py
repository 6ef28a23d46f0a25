"""The ratio of each token by itself."""

from torch import Tensor

from latih.train.ratios import ratios


@ratios.register("token")
def token(log_ratio_M: Tensor, row_M: Tensor) -> Tensor:
    """Each token by itself (PPO, Schulman et al. 2017, arXiv:1707.06347)."""
    return log_ratio_M
