"""Log probabilities of chosen tokens, with a gradient that never keeps the logits.

The gradient of a row's log probability with respect to its hidden state is (W[target] - softmax · W) / temperature,
times whatever scalar comes from above. So it is computed on the way forward, chunk by chunk, and only [M, D] is kept.
"""

from typing import Any

import torch
from torch import Tensor

from latih.models.projection import linear

CHUNK = 128
"""Rows of logits alive at a time: 128 x 49,152 float32 is 25 MB."""


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, head: Tensor, packed: Tensor | None, targets: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        logprobs = torch.empty(len(hidden), device=hidden.device)
        entropies = torch.empty_like(logprobs)
        slopes = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        for start in range(0, len(hidden), CHUNK):
            rows = slice(start, start + CHUNK)
            logits = linear(hidden[rows], head, packed, None)
            if temperature != 1.0:
                logits /= temperature
            top = logits.amax(-1, keepdim=True)
            logits -= top
            chosen = logits.gather(1, targets[rows, None]).squeeze(1)
            weights = logits.exp()
            total = weights.sum(-1)
            logprobs[rows] = chosen - total.log()
            # entropy = log sum exp(z) - sum p z
            entropies[rows] = total.log() - (weights * logits).sum(-1) / total
            if slopes is not None:
                mean = (weights @ head) / total[:, None]
                slopes[rows] = (head[targets[rows]] - mean) / temperature
        ctx.save_for_backward(slopes)
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return grad[:, None] * slopes, None, None, None, None


def token_logprobs(
    hidden_MD: Tensor, head_VD: Tensor, packed: Tensor | None, targets_M: Tensor, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Log probabilities of `targets_M` and the entropies of their distributions, in nats, float32. ([M], [M])

    The log probabilities carry a gradient to `hidden_MD`; the head is frozen and the entropies are only measured.
    """
    return _TokenLogprobs.apply(hidden_MD, head_VD, packed, targets_M, temperature)  # type: ignore[no-any-return, no-untyped-call]
