"""Log probabilities of chosen tokens, with a gradient that never keeps the logits.

The gradient of a row's log probability with respect to its hidden state is ((target - p) W) / temperature, p being its
softmax and the target a one-hot row, times whatever scalar comes from above; that of its entropy H is
-(p (log p + H)) W / temperature. So they are computed on the way forward, chunk by chunk, and only [M, D] of each is
kept. Logits are float32 always; the products behind a gradient are of the type that the layers below compute in.
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
        back: Tensor,
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
            logs = table.log_softmax(-1)
            probs = torch.exp(logs, out=table)
            logprobs[rows] = logs.gather(1, targets[rows, None]).squeeze(1)
            entropies[rows] = -torch.linalg.vecdot(probs, logs)
            if entropy_slopes is not None:
                weights = logs.add_(entropies[rows, None]).mul_(probs)
                entropy_slopes[rows] = (weights.to(back.dtype) @ back) / -temperature
            if slopes is not None:
                # p - target is taken in float32: of a sure token, the rounded p would leave nothing
                probs.scatter_add_(1, targets[rows, None], probs.new_full((len(probs), 1), -1))
                slopes[rows] = (probs.to(back.dtype) @ back) / -temperature
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
        return grads, None, None, None, None, None, None


def token_logprobs(
    hidden_MD: Tensor,
    head_VD: Tensor,
    packed: Tensor | None,
    back_VD: Tensor,
    targets_M: Tensor,
    temperature: float = 1.0,
    entropy_gradient: bool = False,
) -> tuple[Tensor, Tensor]:
    """Log probabilities of `targets_M` and the entropies of their distributions, in nats, float32. ([M], [M])

    The log probabilities carry a gradient to `hidden_MD`, and the entropies too where `entropy_gradient` asks for it;
    the head is frozen. `packed` is the head as `pack` lays it out, `back_VD` the head in the type of gradients.
    """
    return _TokenLogprobs.apply(hidden_MD, head_VD, packed, back_VD, targets_M, temperature, entropy_gradient)  # type: ignore[no-any-return, no-untyped-call]
