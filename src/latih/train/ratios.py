"""Ratio levels: over what the ratio of the new to the old policy is taken. One registered function per level."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from latih.core.registry import Registry

RatioLevel: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(new - old logprob of each token [M] float32, its row's number in the micro-batch [M] int64) -> log ratio [M]."""

ratios = Registry[RatioLevel]("ratio")


@ratios.register("token")
def token(log_ratio_M: Tensor, row_M: Tensor) -> Tensor:
    """Each token by itself (PPO, Schulman et al. 2017, arXiv:1707.06347)."""
    return log_ratio_M


@ratios.register("sequence")
def sequence(log_ratio_M: Tensor, row_M: Tensor) -> Tensor:
    """The geometric mean over the sequence's sampled tokens (GSPO, Zheng et al. 2025, arXiv:2507.18071)."""
    rows = int(row_M.max()) + 1 if len(row_M) else 0
    sums_R = log_ratio_M.new_zeros(rows).index_add(0, row_M, log_ratio_M)
    counts_R = torch.bincount(row_M, minlength=rows).clamp(min=1)
    return (sums_R / counts_R)[row_M]
