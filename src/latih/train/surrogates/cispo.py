"""A clipped weight on the logprob, so that clipped tokens still learn."""

from torch import Tensor

from latih.train.surrogates import surrogates


@surrogates.register("cispo")
def cispo(
    log_ratio_M: Tensor, logprob_M: Tensor, advantage_M: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """-stop_gradient(clip(ratio)) A logprob: no token loses its gradient (MiniMax-M1, 2025, arXiv:2506.13585)."""
    ratio_M = log_ratio_M.detach().exp()
    held_M = ratio_M.clamp(1 - clip_low, 1 + clip_high)
    return -held_M * advantage_M * logprob_M, held_M != ratio_M
