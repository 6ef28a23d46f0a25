"""The elementwise operations of a decoder layer, each with a hand-written gradient that keeps few temporaries."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class _RmsNorm(torch.autograd.Function):
    """x / rms(x) · w, computed in float32; the weight is frozen."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        ctx.eps = eps
        ctx.save_for_backward(x, weight)
        return F.rms_norm(x, x.shape[-1:], weight, eps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wide = x.float()
        inverse = (wide.square().mean(-1, keepdim=True) + ctx.eps).rsqrt_()
        grads = grad.float() * weight.float()
        along = (grads * wide).mean(-1, keepdim=True).mul_(inverse.pow(3))
        return grads.mul_(inverse).addcmul_(wide, along, value=-1).to(x.dtype), None, None


class _Rotate(torch.autograd.Function):
    """Rotary embedding in the half-split layout; its gradient is the rotation by the opposite angle."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotate(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        return _rotate(grad, cos, -sin), None, None


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    left, right = out.chunk(2, dim=-1)
    left.copy_(first * cos - second * sin)
    right.copy_(second * cos + first * sin)
    return out


class _SwiGlu(torch.autograd.Function):
    """silu(gate) · up, of the two halves of one product."""

    @staticmethod
    def forward(ctx: Any, gate_up: Tensor) -> Tensor:
        ctx.save_for_backward(gate_up)
        gate, up = gate_up.chunk(2, dim=-1)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor]:
        (gate_up,) = ctx.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        sigmoid = torch.sigmoid(gate)
        silu = gate * sigmoid
        out = torch.empty_like(gate_up)
        left, right = out.chunk(2, dim=-1)
        torch.mul(grad, silu, out=right)
        # d silu = sigmoid + silu · (1 - sigmoid)
        slope = torch.addcmul(sigmoid, silu, 1 - sigmoid)
        torch.mul(slope.mul_(up), grad, out=left)
        return (out,)


def rms_norm(x_ND: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    """Root-mean-square norm (Zhang and Sennrich, 2019). [N, D]"""
    return _RmsNorm.apply(x_ND, weight_D, eps)  # type: ignore[no-any-return, no-untyped-call]


def rotate(x_NHD: Tensor, cos_N1P: Tensor, sin_N1P: Tensor) -> Tensor:
    """Rotary position embedding (Su et al., 2021); P is half of D. [N, H, D]"""
    return _Rotate.apply(x_NHD, cos_N1P, sin_N1P)  # type: ignore[no-any-return, no-untyped-call]


def swiglu(gate_up_NF: Tensor) -> Tensor:
    """silu(gate) · up (Shazeer, 2020), gate being the first half of the last dimension. [N, F / 2]"""
    return _SwiGlu.apply(gate_up_NF)  # type: ignore[no-any-return, no-untyped-call]
