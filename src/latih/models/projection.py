"""Linear layers: frozen base weights, float32 masters that train, and the effective weights that both compute with.

The effective weight is built once per optimizer step from the masters: base + (alpha / rank) · B A for a low-rank
adapter (Hu et al., 2021), or the master itself in full fine-tuning. Sampler and learner multiply by that same tensor;
the gradient reaches the masters by the chain rule, without a second branch in the forward pass.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from latih.core.schema import Record


class LoraSettings(Record):
    """A low-rank adapter on every linear layer."""

    rank: int = Field(default=16, ge=1)
    """Columns of B and rows of A."""
    alpha: float = Field(default=32.0, gt=0.0)
    """B A is scaled by alpha / rank."""

    @property
    def scale(self) -> float:
        """What B A is multiplied by."""
        return self.alpha / self.rank


@dataclass(frozen=True)
class Part:
    """One Hugging Face weight inside a fused one."""

    name: str
    rows: slice


def pack(weight: Tensor) -> Tensor | None:
    """The weight in the layout that oneDNN multiplies by fastest, or None where there is no such thing."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return None
    return torch.ops.mkldnn._reorder_linear_weight(weight, 64)  # type: ignore[no-any-return]


def linear(x_NI: Tensor, weight_OI: Tensor, packed: Tensor | None, bias_O: Tensor | None) -> Tensor:
    """x Wᵀ + b, by the packed weight where there is one. [N, O]"""
    if packed is None:
        return F.linear(x_NI, weight_OI, bias_O)
    return torch.ops.mkldnn._linear_pointwise(x_NI, packed, bias_O, "none", [], "")  # type: ignore[no-any-return]


class Projection:
    """One or more linear layers with the same input, fused by rows: q, k and v, or gate and up."""

    def __init__(self, weights: dict[str, Tensor], biases: dict[str, Tensor], dtype: torch.dtype) -> None:
        self.parts: list[Part] = []
        for name, weight in weights.items():
            start = self.parts[-1].rows.stop if self.parts else 0
            self.parts.append(Part(name, slice(start, start + weight.shape[0])))
        self.weight = torch.cat(list(weights.values())).to(dtype)
        self.bias = torch.cat(list(biases.values())).to(dtype) if biases else None
        self.base = self.weight
        self.masters: dict[str, nn.Parameter] = {}
        """By name: `<weight>.lora_A` [rank, in] and `<weight>.lora_B` [out, rank], or `<weight>` [out, in]."""
        self.scale = 0.0
        self.packed = pack(self.weight)

    def adapt(self, lora: LoraSettings, generator: torch.Generator) -> None:
        """Add a low-rank adapter to each part; A is random as in PEFT, B is zero."""
        self.scale = lora.scale
        width = self.weight.shape[1]
        for part in self.parts:
            bound = 1 / math.sqrt(width)  # Kaiming's uniform bound with a = sqrt(5)
            a = torch.empty(lora.rank, width).uniform_(-bound, bound, generator=generator)
            b = torch.zeros(part.rows.stop - part.rows.start, lora.rank)
            for name, value in (("lora_A", a), ("lora_B", b)):
                self.masters[f"{part.name}.{name}"] = nn.Parameter(value.to(self.weight.device))

    def unfreeze(self, weights: dict[str, Tensor]) -> None:
        """Train the weights themselves, from these float32 values."""
        where = self.weight.device  # copies: one view of a file that is read keeps all of it in memory
        self.masters = {name: nn.Parameter(each.to(where, torch.float32, copy=True)) for name, each in weights.items()}

    @torch.no_grad()
    def refresh(self) -> None:
        """Rebuild the effective weight from the masters."""
        if not self.masters:
            return
        fresh = torch.empty_like(self.base)
        for part in self.parts:
            if self.scale:
                a, b = (self.masters[f"{part.name}.lora_{each}"] for each in "AB")
                fresh[part.rows] = torch.addmm(self.base[part.rows].float(), b, a, alpha=self.scale)
            else:
                fresh[part.rows] = self.masters[part.name]
        self.weight = fresh
        self.packed = pack(fresh)

    def __call__(self, x_NI: Tensor) -> Tensor:
        """x Wᵀ + b. [N, O]"""
        if not torch.is_grad_enabled() or not (self.masters or x_NI.requires_grad):
            return linear(x_NI, self.weight, self.packed, self.bias)
        return _Linear.apply(x_NI, self, *self.masters.values())  # type: ignore[no-any-return, no-untyped-call]


class _Linear(torch.autograd.Function):
    """The product by the effective weight, and the gradients of the masters behind it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: Projection, *masters: Tensor) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(x, layer.weight, *masters)
        return linear(x, layer.weight, layer.packed, layer.bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, *masters = ctx.saved_tensors
        dx = grad @ weight if ctx.needs_input_grad[0] else None
        parts, scale = ctx.layer.parts, ctx.layer.scale
        if not masters:
            return dx, None
        if not scale:
            return dx, None, *((grad[:, part.rows].T @ x).float() for part in parts)
        downs, ups = [each.to(x.dtype) for each in masters[::2]], [each.to(x.dtype) for each in masters[1::2]]
        rank = downs[0].shape[0]
        inner = x @ torch.cat(downs).T
        back = torch.cat([grad[:, part.rows] @ up for part, up in zip(parts, ups, strict=True)], dim=1)
        d_downs = (back.T @ x).float().mul_(scale).split(rank)
        d_ups = [
            (grad[:, part.rows].T @ inner[:, i * rank : (i + 1) * rank]).float().mul_(scale)
            for i, part in enumerate(parts)
        ]
        return dx, None, *(each for pair in zip(d_downs, d_ups, strict=True) for each in pair)
