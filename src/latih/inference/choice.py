"""Choosing tokens: one uniform number per row, searched in the cumulative distribution of its logits."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from latih.core.sampling import SamplingParams

_BLOCK = 256
_ROWS = 16


@dataclass(frozen=True)
class Chosen:
    """One token of one row. `full_logprob` is set where the sampled distribution was truncated."""

    id: int
    logprob: float
    full_logprob: float | None = None


def choose(logits_RV: Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]) -> list[Chosen]:
    """One token per row, by inverse transform of `uniforms` in [0, 1). The logits are overwritten.

    Greedy rows (temperature 0) take the highest logit and report its logprob under the full softmax at temperature 1.
    """
    if logits_RV.device.type == "mps":
        logits_RV = logits_RV.cpu()  # it has no float64
    temperatures = torch.tensor([each.temperature or 1.0 for each in params], device=logits_RV.device)
    if any(each.temperature not in (0.0, 1.0) for each in params):
        logits_RV /= temperatures[:, None]
    chosen: list[Chosen] = []
    for start in range(0, len(params), _ROWS):  # few rows at a time stay in the processor's cache
        rows = slice(start, start + _ROWS)
        chosen += _choose(logits_RV[rows], params[rows], uniforms[rows])
    return chosen


def _choose(logits_RV: Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]) -> list[Chosen]:
    best = logits_RV.max(-1)
    if not best.values.isfinite().all():
        raise FloatingPointError("the model's logits are not finite: its weights have diverged")
    logits_RV -= best.values[:, None]
    weights_RV = logits_RV.exp()
    ids = _search(weights_RV, torch.tensor(uniforms, dtype=torch.float64, device=logits_RV.device))
    greedy = torch.tensor([each.temperature == 0.0 for each in params], device=logits_RV.device)
    ids = torch.where(greedy, best.indices, ids)
    totals = weights_RV.sum(-1, dtype=torch.float64).log()
    logprobs = logits_RV.gather(1, ids[:, None]).squeeze(1).double() - totals
    chosen = [Chosen(i, p) for i, p in zip(ids.tolist(), logprobs.tolist(), strict=True)]
    for row, each in enumerate(params):
        if each.truncated and each.temperature > 0.0:
            chosen[row] = _choose_truncated(weights_RV[row].double(), each, uniforms[row])
    return chosen


def _search(weights_RV: Tensor, uniforms_R: Tensor) -> Tensor:
    """The index at which each row's cumulative sum first exceeds its uniform share. [R]

    Two levels, blocks and then inside one block: a running sum over a whole vocabulary costs more, and its float32
    rounding would starve the tokens at its end.
    """
    rows, size = weights_RV.shape
    if size % _BLOCK:
        weights_RV = F.pad(weights_RV, (0, _BLOCK - size % _BLOCK))
    blocks_RBK = weights_RV.view(rows, -1, _BLOCK)
    sums_RB = blocks_RBK.sum(-1, dtype=torch.float64).cumsum(-1)
    targets_R1 = uniforms_R[:, None] * sums_RB[:, -1:]
    block_R1 = torch.searchsorted(sums_RB, targets_R1, right=True).clamp_(max=sums_RB.shape[1] - 1)
    before_R1 = torch.where(block_R1 > 0, sums_RB.gather(1, (block_R1 - 1).clamp_(min=0)), 0.0)
    inside_RK = blocks_RBK[torch.arange(rows, device=block_R1.device), block_R1[:, 0]].double().cumsum(-1)
    place_R1 = torch.searchsorted(inside_RK, targets_R1 - before_R1, right=True)
    # rounding may point past the last weight that is not zero: step back onto it
    last_R1 = torch.searchsorted(inside_RK, inside_RK[:, -1:].contiguous())
    return (block_R1 * _BLOCK + torch.minimum(place_R1, last_R1)).squeeze(1)


def _choose_truncated(weights_V: Tensor, params: SamplingParams, uniform: float) -> Chosen:
    """Top-k, then top-p (Holtzman et al., 2020), then min-p (Nguyen et al., 2024). The likeliest token stays."""
    probs, order = (weights_V / weights_V.sum()).sort(descending=True, stable=True)
    keep = torch.ones_like(probs, dtype=torch.bool)
    if params.top_k:
        keep[params.top_k :] = False
    if params.top_p < 1.0:
        kept = probs * keep
        keep &= (kept.cumsum(0) - kept) < params.top_p * kept.sum()
    if params.min_p > 0.0:
        keep &= probs >= params.min_p * probs[0]
    keep[0] = True
    kept = probs * keep
    total = kept.sum()
    at = int(torch.searchsorted((kept / total).cumsum(0), kept.new_tensor(uniform), right=True))
    at = min(at, int(keep.nonzero()[-1]))
    return Chosen(int(order[at]), float((kept[at] / total).log()), float(probs[at].log()))
