"""One ratio for all tokens of a sequence."""

import torch
from torch import Tensor

from latih.train.ratios import ratios


@ratios.register("sequence")
def sequence(log_ratio_M: Tensor, row_M: Tensor) -> Tensor:
    """The geometric mean over the sequence's sampled tokens (GSPO, Zheng et al. 2025, arXiv:2507.18071)."""
    rows = int(row_M.max()) + 1 if len(row_M) else 0
    sums_R = log_ratio_M.new_zeros(rows).index_add(0, row_M, log_ratio_M)
    counts_R = torch.bincount(row_M, minlength=rows).clamp(min=1)
    return (sums_R / counts_R)[row_M]
