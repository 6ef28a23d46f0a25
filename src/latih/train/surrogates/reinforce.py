"""The ratio as it is."""

import torch
from torch import Tensor

from latih.train.surrogates import surrogates


@surrogates.register("reinforce")
def reinforce(
    log_ratio_M: Tensor, logprob_M: Tensor, advantage_M: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """-ratio A, never clipped: importance-sampled REINFORCE (Williams 1992, doi:10.1007/BF00992696)."""
    return -log_ratio_M.exp() * advantage_M, torch.zeros_like(log_ratio_M, dtype=torch.bool)
