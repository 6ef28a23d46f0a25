"""Losses: what an update minimizes, put together from the four axes."""

from collections.abc import Mapping

import torch
from torch import Tensor

from latih.train.learner import MicroBatch, Objective
from latih.train.ratios import ratios
from latih.train.settings import AlgorithmSettings
from latih.train.surrogates import surrogates

LOG_RATIO_BOUND = 20.0
"""Where the log ratio is cut so that its exponential stays finite."""


def policy_objective(algorithm: AlgorithmSettings, entropy_bonus: float = 0.0) -> Objective:
    """The policy-gradient loss: surrogate of the ratio, weighted by aggregation and truncated importance weight.

    Statistics: `clip_fraction`, `ratio`; and of sampler against learner on the sampled tokens `kl` (the k3 estimator of
    KL(sampler || learner), Schulman 2020, http://joschu.net/blog/kl-approx.html) and `diff` (absolute, in nats).
    """
    level = ratios.get(algorithm.ratio)
    surrogate = surrogates.get(algorithm.surrogate)

    def objective(micro: MicroBatch, logprobs_M: Tensor, entropy_M: Tensor) -> tuple[Tensor, Mapping[str, Tensor]]:
        now_M = logprobs_M.detach()
        old_M = now_M if micro.old_M is None else micro.old_M
        log_ratio_M = level(logprobs_M - old_M, micro.row_M).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
        loss_M, clipped_M = surrogate(
            log_ratio_M, logprobs_M, micro.advantages_M, algorithm.clip_low, algorithm.clip_high
        )
        if algorithm.old == "learner":
            loss_M = loss_M * importance_weight(old_M, micro.sampler_M, algorithm.is_cap)
        if entropy_bonus:
            loss_M = loss_M - entropy_bonus * entropy_M
        statistics = {
            "clip_fraction": clipped_M,
            "ratio": log_ratio_M.detach().exp(),
            **mismatch(now_M, micro.sampler_M),
        }
        return (micro.weights_M * loss_M).sum(), statistics

    return objective


def importance_weight(old_M: Tensor, sampler_M: Tensor, cap: float) -> Tensor:
    """min(old learner / sampler, cap) of each token, no gradient [M]: truncated importance sampling.

    Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training".
    """
    return (old_M - sampler_M).detach().clamp(max=LOG_RATIO_BOUND).exp().clamp(max=cap)


def mismatch(learner_M: Tensor, sampler_M: Tensor) -> dict[str, Tensor]:
    """How far the learner's logprobs are from the sampler's: `kl` (k3 of each token) and `diff` (absolute). [M]"""
    difference_M = learner_M - sampler_M
    return {"kl": torch.expm1(difference_M) - difference_M, "diff": difference_M.abs()}


def supervised_objective(
    micro: MicroBatch, logprobs_M: Tensor, entropy_M: Tensor
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Weighted negative log-likelihood."""
    return -(micro.weights_M * logprobs_M).sum(), {}
