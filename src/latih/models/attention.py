"""Attention of the learner: causal, over packed sequences of different lengths, without padding.

Written out in matrix products because the fused kernel that torch has for CPUs takes four to six times as long in
its bfloat16 backward pass. Long sequences are cut into blocks of queries, so memory stays linear in the block.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

BLOCK = 512
_NEGATIVE = torch.finfo(torch.float32).min


class Attention(Protocol):
    """How the tokens of a packed batch see each other."""

    def __call__(self, layer: int, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor) -> Tensor:
        """Attend; q and k are rotated already. Returns [N, H, D]."""
        ...


def causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """Additive float32 mask of the last `queries` positions of `keys`: 0 where seen, very negative where not."""
    mask = torch.full((queries, keys), _NEGATIVE, device=device)
    return mask.triu_(keys - queries + 1)


def grouped(q_THD: Tensor, kv_heads: int) -> Tensor:
    """Query heads that share a key head, laid out as rows of one product. [K, G * T, D]"""
    tokens, heads, dim = q_THD.shape
    return q_THD.view(tokens, kv_heads, heads // kv_heads, dim).permute(1, 2, 0, 3).reshape(kv_heads, -1, dim)


def ungrouped(o_KRD: Tensor, tokens: int) -> Tensor:
    """The inverse of `grouped`. [T, H, D]"""
    kv_heads, rows, dim = o_KRD.shape
    return o_KRD.view(kv_heads, rows // tokens, tokens, dim).permute(2, 0, 1, 3).reshape(tokens, -1, dim)


class PackedCausal:
    """Causal attention inside each segment of a packed batch.

    `lengths` are the segments' token counts, in order. `parents[i]`, where given and not -1, is the earlier segment
    that segment i continues: its tokens (and its own parents') are seen too. So a prefix that several sequences share
    is computed once.
    """

    def __init__(self, lengths: Sequence[int], parents: Sequence[int] | None = None) -> None:
        starts = [0]
        for length in lengths:
            starts.append(starts[-1] + length)
        self.blocks: list[tuple[int, int, list[slice]]] = []
        pasts: list[list[slice]] = []
        for i, length in enumerate(lengths):
            parent = -1 if parents is None else parents[i]
            if parent >= i:
                raise ValueError(f"segment {i} has the later segment {parent} as its parent")
            past = [] if parent < 0 else [*pasts[parent], slice(starts[parent], starts[parent + 1])]
            pasts.append(past)
            for start in range(starts[i], starts[i] + length, BLOCK):
                end = min(start + BLOCK, starts[i] + length)
                self.blocks.append((start, end, [*past, slice(starts[i], end)]))

    def __call__(self, layer: int, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor) -> Tensor:
        """See `Attention`."""
        return _Causal.apply(q_NHD, k_NKD, v_NKD, self.blocks)  # type: ignore[no-any-return, no-untyped-call]


def _take(x_NKD: Tensor, ranges: list[slice]) -> Tensor:
    """The rows of several ranges, head first. [K, S, D]"""
    rows = x_NKD[ranges[0]] if len(ranges) == 1 else torch.cat([x_NKD[each] for each in ranges])
    return rows.transpose(0, 1)


def _add(into_NKD: Tensor, rows_KSD: Tensor, ranges: list[slice]) -> None:
    """Add the rows back to where `_take` had them from."""
    at = 0
    for each in ranges:
        size = each.stop - each.start
        into_NKD[each] += rows_KSD[:, at : at + size].transpose(0, 1)
        at += size


class _Causal(torch.autograd.Function):
    """softmax(q kᵀ / √D + mask) v, block by block, with the probabilities kept for the way back."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, blocks: list[tuple[int, int, list[slice]]]) -> Tensor:
        kv_heads, scale = k.shape[1], q.shape[-1] ** -0.5
        out = torch.empty_like(q)
        saved = []
        for start, end, ranges in blocks:
            keys, values = _take(k, ranges), _take(v, ranges)
            scores = torch.bmm(grouped(q[start:end], kv_heads), keys.transpose(1, 2))
            scores_KGTS = scores.view(kv_heads, -1, end - start, keys.shape[1]).float().mul_(scale)
            scores_KGTS += causal_mask(end - start, keys.shape[1], q.device)
            probs = scores_KGTS.softmax(-1).to(q.dtype).view_as(scores)
            out[start:end] = ungrouped(torch.bmm(probs, values), end - start)
            saved.append(probs)
        if any(ctx.needs_input_grad):
            ctx.blocks = blocks
            ctx.save_for_backward(q, k, v, out, *saved)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, *saved = ctx.saved_tensors
        kv_heads, scale = k.shape[1], q.shape[-1] ** -0.5
        # keys and values of a shared prefix collect gradients from many sequences: add them up in float32
        dq, dk, dv = (
            torch.empty_like(q),
            torch.zeros_like(k, dtype=torch.float32),
            torch.zeros_like(v, dtype=torch.float32),
        )
        for (start, end, ranges), probs in zip(ctx.blocks, saved, strict=True):
            keys, values = _take(k, ranges), _take(v, ranges)
            queries, grads = grouped(q[start:end], kv_heads), grouped(grad[start:end], kv_heads)
            outs = grouped(out[start:end], kv_heads)
            _add(dv, torch.bmm(probs.transpose(1, 2), grads), ranges)
            dprobs = torch.bmm(grads, values.transpose(1, 2)).float()
            dprobs -= (grads.float() * outs.float()).sum(-1, keepdim=True)
            dscores = (dprobs * probs).mul_(scale).to(q.dtype)
            dq[start:end] = ungrouped(torch.bmm(dscores, keys), end - start)
            _add(dk, torch.bmm(dscores.transpose(1, 2), queries), ranges)
        return dq, dk.to(k.dtype), dv.to(v.dtype), None
