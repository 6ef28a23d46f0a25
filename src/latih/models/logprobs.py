"""Log probabilities of chosen tokens, with a gradient that never keeps the logits.

The gradient of a row's log probability with respect to its hidden state is (W[target] - p W) / temperature, p being its
softmax, times whatever scalar comes from above; that of its entropy H is -(p (log p + H)) W / temperature. So they are
computed on the way forward, chunk by chunk, and only [M, D] of each is kept.
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
        ctx: Any,
        hidden: Tensor,
        head: Tensor,
        packed: Tensor | None,
        targets: Tensor,
        temperature: float,
        entropy_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        logprobs, entropies = hidden.new_empty(len(hidden)), hidden.new_empty(len(hidden))
        slopes = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        entropy_slopes = torch.empty_like(hidden) if ctx.needs_input_grad[0] and entropy_gradient else None
        for start in range(0, len(hidden), CHUNK):
            rows = slice(start, start + CHUNK)
            table = linear(hidden[rows], head, packed, None)
            if temperature != 1.0:
                table /= temperature
            table -= table.amax(-1, keepdim=True)
            probs = table.exp()
            total = probs.sum(-1, keepdim=True)
            table -= total.log()
            probs /= total
            logprobs[rows] = table.gather(1, targets[rows, None]).squeeze(1)
            entropies[rows] = -torch.linalg.vecdot(probs, table)
            if slopes is not None:
                slopes[rows] = (head[targets[rows]] - probs @ head) / temperature
            if entropy_slopes is not None:
                weights = table.add_(entropies[rows, None]).mul_(probs)
                entropy_slopes[rows] = (weights @ head) / -temperature
        ctx.save_for_backward(slopes, entropy_slopes)
        if entropy_slopes is None:
            ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, grad: Tensor, entropy_grad: Tensor) -> tuple[Tensor | None, ...]:
        slopes, entropy_slopes = ctx.saved_tensors
        grads = grad[:, None] * slopes
        if entropy_slopes is not None:
            grads.addcmul_(entropy_grad[:, None], entropy_slopes)
        return grads, None, None, None, None, None


def token_logprobs(
    hidden_MD: Tensor,
    head_VD: Tensor,
    packed: Tensor | None,
    targets_M: Tensor,
    temperature: float = 1.0,
    entropy_gradient: bool = False,
) -> tuple[Tensor, Tensor]:
    """Log probabilities of `targets_M` and the entropies of their distributions, in nats, float32. ([M], [M])

    The log probabilities carry a gradient to `hidden_MD`, and the entropies too where `entropy_gradient` asks for it;
    the head is frozen.
    """
    return _TokenLogprobs.apply(hidden_MD, head_VD, packed, targets_M, temperature, entropy_gradient)  # type: ignore[no-any-return, no-untyped-call]
