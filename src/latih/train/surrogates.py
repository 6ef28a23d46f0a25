"""Surrogates: the loss of a token, given its ratio and advantage. One registered function per surrogate."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from latih.core.registry import Registry

Surrogate: TypeAlias = Callable[[Tensor, Tensor, Tensor, float, float], tuple[Tensor, Tensor]]
"""(log ratio [M], new logprob [M], advantage [M], clip_low, clip_high) -> (loss [M], whether it was clipped [M] bool).

Gradients reach the policy through the log ratio or the logprob. The clipping range is [1 - clip_low, 1 + clip_high].
"""

surrogates = Registry[Surrogate]("surrogate")


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


@surrogates.register("cispo")
def cispo(
    log_ratio_M: Tensor, logprob_M: Tensor, advantage_M: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """-stop_gradient(clip(ratio)) A logprob: no token loses its gradient (MiniMax-M1, 2025, arXiv:2506.13585)."""
    ratio_M = log_ratio_M.detach().exp()
    held_M = ratio_M.clamp(1 - clip_low, 1 + clip_high)
    return -held_M * advantage_M * logprob_M, held_M != ratio_M


@surrogates.register("reinforce")
def reinforce(
    log_ratio_M: Tensor, logprob_M: Tensor, advantage_M: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """-ratio A, never clipped: importance-sampled REINFORCE (Williams 1992, doi:10.1007/BF00992696)."""
    return -log_ratio_M.exp() * advantage_M, torch.zeros_like(log_ratio_M, dtype=torch.bool)
