"""Attention of the learner: causal, over packed sequences of different lengths.

Written out in matrix products because the fused kernel that torch has for CPUs takes four to six times as long in
its bfloat16 backward pass. Segments of about the same size are laid side by side, since many short products cost more
than a few long ones with a little padding; long segments are cut into blocks of queries, which bounds memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

BLOCK = 512
"""The most queries of one segment in one product."""
_PADDING = 1.25
"""Segments share a product while it computes at most so many times the scores that they need."""
_SCORES = 1 << 18
"""Scores of one head in one product, beyond which no more segments join."""
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


def grouped(q_BTHD: Tensor, kv_heads: int) -> Tensor:
    """Query heads that share a key head, laid out as rows of one product. [B * K, G * T, D]"""
    batch, tokens, heads, dim = q_BTHD.shape
    q_BTKGD = q_BTHD.view(batch, tokens, kv_heads, heads // kv_heads, dim)
    return q_BTKGD.permute(0, 2, 3, 1, 4).reshape(batch * kv_heads, -1, dim)


def ungrouped(o: Tensor, batch: int, tokens: int) -> Tensor:
    """The inverse of `grouped`. [B, T, H, D]"""
    rows, dim = o.shape[0] // batch, o.shape[2]
    return o.view(batch, rows, -1, tokens, dim).permute(0, 3, 1, 2, 4).reshape(batch, tokens, -1, dim)


def probabilities(queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """softmax(q kᵀ / √D + mask), in the type of the queries: the one place where sampler and learner weigh tokens.

    Queries are as `grouped` lays them out [B * K, G * T, D], keys [B * K, S, D]; the float32 mask broadcasts against
    [B, K * G, T, S] and has B and T of its own. Returns [B * K, G * T, S].
    """
    scores = torch.bmm(queries, keys.transpose(1, 2))
    batch, _, tokens, _ = mask.shape
    wide = scores.view(batch, -1, tokens, keys.shape[1]).float().mul_(queries.shape[-1] ** -0.5).add_(mask)
    return wide.softmax(-1).to(queries.dtype).view_as(scores)


@dataclass(frozen=True)
class _Piece:
    """Queries of one segment, and all the tokens that the last of them sees."""

    queries: range
    keys: list[int]


@dataclass(frozen=True)
class _Block:
    """Pieces side by side, padded at their ends.

    Keys stand in their order from the first on, as in the cache of the engine, so that sums run in the same order.
    """

    queries_BT: Tensor
    keys_BS: Tensor
    real_BT: Tensor
    """Which queries are not padding."""
    mask_B1TS: Tensor


class PackedCausal:
    """Causal attention inside each segment of a packed batch.

    `lengths` are the segments' token counts, in order. `parents[i]`, where given and not -1, is the earlier segment
    that segment i continues: its tokens (and its own parents') are seen too. So a prefix that several sequences share
    is computed once.
    """

    def __init__(
        self, lengths: Sequence[int], parents: Sequence[int] | None = None, device: torch.device | str = "cpu"
    ) -> None:
        """Raises ValueError where a parent comes after its segment."""
        pieces = sorted(_pieces(lengths, parents), key=lambda piece: (len(piece.keys), len(piece.queries)))
        self.blocks: list[_Block] = []
        batch: list[_Piece] = []
        need = 0
        for piece in pieces:
            size = len(piece.queries) * len(piece.keys)
            both = [*batch, piece]
            taken = len(both) * max(len(each.queries) for each in both) * len(piece.keys)
            if batch and (taken > _PADDING * (need + size) or taken > _SCORES):
                self.blocks.append(_block(batch, device))
                batch, need = [], 0
            batch.append(piece)
            need += size
        if batch:
            self.blocks.append(_block(batch, device))

    def __call__(self, layer: int, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor) -> Tensor:
        """See `Attention`."""
        return _Causal.apply(q_NHD, k_NKD, v_NKD, self.blocks)  # type: ignore[no-any-return, no-untyped-call]


def _pieces(lengths: Sequence[int], parents: Sequence[int] | None) -> Iterator[_Piece]:
    seen: list[list[int]] = []
    start = 0
    for i, length in enumerate(lengths):
        parent = -1 if parents is None else parents[i]
        if parent >= i:
            raise ValueError(f"segment {i} has the later segment {parent} as its parent")
        past = seen[parent] if parent >= 0 else []
        seen.append(past + list(range(start, start + length)))
        for first in range(0, length, BLOCK):
            last = min(first + BLOCK, length)
            yield _Piece(range(start + first, start + last), seen[i][: len(past) + last])
        start += length


def _block(pieces: list[_Piece], device: torch.device | str) -> _Block:
    queries, keys = max(len(each.queries) for each in pieces), max(len(each.keys) for each in pieces)

    def padded(rows: list[Sequence[int]], size: int) -> Tensor:
        return torch.tensor([[*row, *[0] * (size - len(row))] for row in rows], device=device)

    counts_B1 = torch.tensor([[len(each.queries)] for each in pieces], device=device)
    totals_B1 = torch.tensor([[len(each.keys)] for each in pieces], device=device)
    at_BT = totals_B1 - counts_B1 + torch.arange(queries, device=device)  # the last key that each query sees
    hidden_BTS = torch.arange(keys, device=device) > at_BT[:, :, None]
    return _Block(
        queries_BT=padded([each.queries for each in pieces], queries),
        keys_BS=padded([each.keys for each in pieces], keys),
        real_BT=torch.arange(queries, device=device) < counts_B1,
        mask_B1TS=torch.zeros(hidden_BTS.shape, device=device).masked_fill_(hidden_BTS, _NEGATIVE)[:, None],
    )


class _Causal(torch.autograd.Function):
    """softmax(q kᵀ / √D + mask) v, block by block, with the probabilities kept for the way back."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, blocks: list[_Block]) -> Tensor:
        out = torch.empty_like(q)
        saved = []
        for block in blocks:
            batch, tokens = block.queries_BT.shape
            queries, keys, values = _take(q, k, v, block)
            probs = probabilities(queries, keys, block.mask_B1TS)
            outs_BTHD = ungrouped(torch.bmm(probs, values), batch, tokens)
            out[block.queries_BT[block.real_BT]] = outs_BTHD[block.real_BT]
            saved.append(probs)
        if any(ctx.needs_input_grad):
            ctx.blocks = blocks
            ctx.save_for_backward(q, k, v.contiguous(), out, *saved)  # v may be a view of q, k and v in one
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, *saved = ctx.saved_tensors
        kv_heads, scale = k.shape[1], q.shape[-1] ** -0.5
        # keys and values of a shared prefix collect gradients from many sequences: add them up in float32
        dq = torch.empty_like(q)
        dk, dv = torch.zeros_like(k, dtype=torch.float32), torch.zeros_like(v, dtype=torch.float32)
        along_NH = (grad.float() * out.float()).sum(-1)
        for block, probs in zip(ctx.blocks, saved, strict=True):
            batch, tokens = block.queries_BT.shape
            queries, keys, values = _take(q, k, v, block)
            real_BT11 = block.real_BT[:, :, None, None]
            grads = grouped(grad[block.queries_BT] * real_BT11, kv_heads)
            along = grouped(along_NH[block.queries_BT, :, None] * real_BT11, kv_heads)
            _add(dv, torch.bmm(probs.transpose(1, 2), grads), block)
            dscores = torch.bmm(grads, values.transpose(1, 2)).float().sub_(along).mul_(probs).mul_(scale).to(q.dtype)
            dq_BTHD = ungrouped(torch.bmm(dscores, keys), batch, tokens)
            dq[block.queries_BT[block.real_BT]] = dq_BTHD[block.real_BT]
            _add(dk, torch.bmm(dscores.transpose(1, 2), queries), block)
        return dq, dk.to(k.dtype), dv.to(v.dtype), None


def _take(q: Tensor, k: Tensor, v: Tensor, block: _Block) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [B * K, G * T, D], keys and values [B * K, S, D] of a block."""
    heads, dim = k.shape[1:]
    keys, values = (x[block.keys_BS].transpose(1, 2).reshape(-1, block.keys_BS.shape[1], dim) for x in (k, v))
    return grouped(q[block.queries_BT], heads), keys, values


def _add(into_NKD: Tensor, rows: Tensor, block: _Block) -> None:
    """Add gradients of a block's keys or values back to where they were taken from."""
    batch, keys = block.keys_BS.shape
    rows_BSKD = rows.view(batch, -1, keys, rows.shape[-1]).transpose(1, 2).float()
    into_NKD.index_add_(0, block.keys_BS.flatten(), rows_BSKD.flatten(0, 1))
