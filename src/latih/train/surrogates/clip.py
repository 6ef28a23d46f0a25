"""The clipped surrogate of PPO."""

import torch
from torch import Tensor

from latih.train.surrogates import surrogates


@surrogates.register("clip")
def clip(
    log_ratio_M: Tensor, logprob_M: Tensor, advantage_M: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """-min(ratio A, clip(ratio) A) (PPO, Schulman et al. 2017, arXiv:1707.06347).

    Unequal bounds are from DAPO (Yu et al. 2025, arXiv:2503.14476).
    """
    ratio_M = log_ratio_M.exp()
    free_M = ratio_M * advantage_M
    held_M = ratio_M.clamp(1 - clip_low, 1 + clip_high) * advantage_M
    return -torch.minimum(free_M, held_M), held_M < free_M
