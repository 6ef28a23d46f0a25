"""The cache of keys and values: rows of one buffer, and attention over them."""

import torch
from torch import Tensor

from latih.core.errors import ConfigError
from latih.models.attention import causal_mask, grouped, ungrouped
from latih.models.config import DecoderConfig

FIRST_CAPACITY = 256
_STEP = 32  # key lengths are rounded up to it: oneDNN builds a kernel for every new shape


class KVCache:
    """Keys and values of many rows in one buffer [2, layers, rows, kv_heads, capacity, head_dim].

    All rows have one capacity, which doubles when a row outgrows it; the number of rows is what the budget leaves.
    """

    def __init__(
        self, config: DecoderConfig, context_length: int, budget: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        """`budget` is in bytes. Raises ConfigError where it does not hold one row of `context_length` tokens."""
        self.config, self.context_length, self.dtype, self.device = config, context_length, dtype, device
        self._bytes_per_token = config.kv_bytes_per_token * dtype.itemsize // 2
        self._budget_tokens = budget // self._bytes_per_token
        if self._budget_tokens < context_length:
            need = context_length * self._bytes_per_token / 2**30
            raise ConfigError(
                f"inference.kv_cache_gb={budget / 2**30:.3g} holds {self._budget_tokens} tokens, but one context of "
                f"{context_length} tokens needs {need:.3g}: raise it, or lower inference.context_length"
            )
        self.capacity = 0
        self.grow(min(FIRST_CAPACITY, context_length))

    @property
    def max_rows(self) -> int:
        """How many rows the budget holds at the present capacity."""
        return self.rows_at(self.capacity)

    def rows_at(self, capacity: int) -> int:
        """How many rows of another capacity the budget would hold."""
        return self._budget_tokens // capacity

    def capacity_for(self, tokens: int) -> int:
        """The capacity to grow to for a row of `tokens`."""
        capacity = self.capacity
        while capacity < tokens:
            capacity *= 2
        return min(capacity, self.context_length)

    def grow(self, capacity: int, keep: int = 0) -> None:
        """Raise the capacity, keeping the first `keep` rows. Rows past the new `max_rows` are lost."""
        old = self.buffer if self.capacity else None
        kept = self.capacity
        self.capacity = capacity
        c = self.config
        # keep the pages of unused rows untouched: values are cleared when a row is first used
        self.buffer = torch.empty(
            2, c.layers, self.max_rows, c.kv_heads, capacity, c.head_dim, dtype=self.dtype, device=self.device
        )
        self._cleared = 0
        if old is not None and keep:
            self.clear_up_to(keep)
            self.buffer[:, :, :keep, :, :kept] = old[:, :, :keep]

    def clear_up_to(self, rows: int) -> None:
        """Make the first `rows` rows hold finite numbers: a masked position still meets a zero times its value."""
        if rows > self._cleared:
            self.buffer[:, :, self._cleared : rows] = 0
            self._cleared = rows

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first `tokens` positions of one row to another."""
        self.buffer[:, :, target, :, :tokens] = self.buffer[:, :, source, :, :tokens]


class CachedAttention:
    """Attention of one step of the engine: some rows with one new token each, then some with several.

    `singles` are (row, position) of the rows with one new token; `runs` are (row, first position, tokens). The packed
    batch holds the singles first, then the runs.
    """

    def __init__(self, cache: KVCache, singles: list[tuple[int, int]], runs: list[tuple[int, int, int]]) -> None:
        self.cache, self.runs, self.count = cache, runs, len(singles)
        device = cache.device
        rows = [row for row, _ in singles] + [row for row, _, n in runs for _ in range(n)]
        positions = [at for _, at in singles] + [start + i for _, start, n in runs for i in range(n)]
        cache.clear_up_to(max(rows) + 1)
        self.rows, self.positions = torch.tensor(rows, device=device), torch.tensor(positions, device=device)
        self.masks = [causal_mask(n, start + n, device) for _, start, n in runs]
        if singles:
            self._prepare_singles()

    def _prepare_singles(self) -> None:
        rows, positions = self.rows[: self.count], self.positions[: self.count]
        longest = int(positions.max()) + 1
        self.length = min(-(-longest // _STEP) * _STEP, self.cache.capacity)
        first, last = int(rows.min()), int(rows.max()) + 1
        # a view of neighbouring rows costs nothing; gathering scattered ones costs a copy of their keys and values
        self.window = slice(first, last) if (last - first) * 2 <= self.count * 3 else None
        self.places = rows - first if self.window else None
        seen = torch.arange(self.length, device=rows.device) <= positions[:, None]
        mask_RT = torch.zeros(seen.shape, device=rows.device).masked_fill_(~seen, torch.finfo(torch.float32).min)
        if self.window:
            mask_RT = self._spread(mask_RT)
        self.mask_R11T = mask_RT[:, None, None]

    def _spread(self, x: Tensor) -> Tensor:
        """Put one entry per single into its place in the window."""
        assert self.window is not None
        size = self.window.stop - self.window.start
        return x if size == self.count else x.new_zeros(size, *x.shape[1:]).index_copy_(0, self.places, x)

    def __call__(self, layer: int, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor) -> Tensor:
        """Store the new keys and values, and attend. See `latih.models.attention.Attention`."""
        keys, values = self.cache.buffer[0, layer], self.cache.buffer[1, layer]
        keys[self.rows, :, self.positions] = k_NKD
        values[self.rows, :, self.positions] = v_NKD
        out = torch.empty_like(q_NHD)
        if self.count:
            out[: self.count] = self._attend_singles(q_NHD[: self.count], keys, values)
        scale, kv_heads, at = q_NHD.shape[-1] ** -0.5, k_NKD.shape[1], self.count
        for (row, start, n), mask in zip(self.runs, self.masks, strict=True):
            past = slice(0, start + n)
            scores = torch.bmm(grouped(q_NHD[at : at + n], kv_heads), keys[row, :, past].transpose(1, 2))
            wide = scores.view(kv_heads, -1, n, start + n).float().mul_(scale).add_(mask)
            probs = wide.softmax(-1).to(q_NHD.dtype).view_as(scores)
            out[at : at + n] = ungrouped(torch.bmm(probs, values[row, :, past]), n)
            at += n
        return out

    def _attend_singles(self, q_RHD: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        kv_heads, dim = keys.shape[1], q_RHD.shape[-1]
        q_RKGD = q_RHD.view(len(q_RHD), kv_heads, -1, dim)
        if self.window:
            q_RKGD = self._spread(q_RKGD)
            keys, values = keys[self.window, :, : self.length], values[self.window, :, : self.length]
        else:
            rows = self.rows[: self.count]
            keys, values = keys[:, :, : self.length][rows], values[:, :, : self.length][rows]
        scores = torch.matmul(q_RKGD, keys.transpose(2, 3)).float().mul_(dim**-0.5).add_(self.mask_R11T)
        out = torch.matmul(scores.softmax(-1).to(q_RHD.dtype), values)
        out = out[self.places] if self.window and len(out) != self.count else out
        return out.reshape(q_RHD.shape)
