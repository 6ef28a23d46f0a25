"""The cache of keys and values: rows of one buffer, and attention over them."""

import torch
from torch import Tensor

from latih.core.errors import ConfigError
from latih.inference.settings import EngineSettings
from latih.models.attention import causal_mask, grouped, probabilities, ungrouped
from latih.models.config import DecoderConfig

_TOKENS, _ROWS = 64, 16
"""Capacity grows in steps of so many tokens and rows."""


def capacity(config: DecoderConfig, settings: EngineSettings, dtype: torch.dtype) -> tuple[int, int]:
    """The tokens of one context, and those that the budget holds. It needs a model's shape and none of its weights.

    Raises ConfigError where the context is past the model's own, or the budget does not hold it once.
    """
    longest = config.context_length
    context = settings.context_length or longest
    if context > longest:
        raise ConfigError(f"inference.context_length={context} is past the model's own {longest}")
    bytes_per_token = config.kv_bytes_per_token * dtype.itemsize // 2
    held = int(settings.kv_cache_gb * 2**30) // bytes_per_token
    if held < context:
        raise ConfigError(
            f"inference.kv_cache_gb={settings.kv_cache_gb:.3g} holds {held} tokens, but one context of "
            f"{context} tokens needs {context * bytes_per_token / 2**30:.3g}: raise it, or lower "
            "inference.context_length"
        )
    return context, held


class KVCache:
    """Keys and values by layer: [rows, kv_heads, capacity, head_dim] each.

    All rows have one capacity, kept close to the longest, so that the products read whole tensors and nothing is
    copied. The budget bounds rows times capacity.
    """

    def __init__(
        self, config: DecoderConfig, settings: EngineSettings, dtype: torch.dtype, device: torch.device
    ) -> None:
        """Raises as `capacity` does."""
        context_length, self._budget_tokens = capacity(config, settings, dtype)
        self.context_length, self.device = context_length, device
        self._layers = config.layers
        self._empty = torch.empty(0, config.kv_heads, 0, config.head_dim, dtype=dtype, device=device)
        self.clear()

    def clear(self) -> None:
        """Hold no rows, of the capacity that a new cache has."""
        self.capacity, self.rows = min(_TOKENS, self.context_length), 0
        self.keys, self.values = [self._empty] * self._layers, [self._empty] * self._layers

    @property
    def max_rows(self) -> int:
        """How many rows the budget holds at the present capacity."""
        return self.rows_at(self.capacity)

    def rows_at(self, capacity: int) -> int:
        """How many rows of another capacity the budget would hold."""
        return self._budget_tokens // capacity

    def capacity_for(self, tokens: int) -> int:
        """The capacity that rows of up to `tokens` need."""
        return max(self.capacity, min(-(-tokens // _TOKENS) * _TOKENS, self.context_length))

    def resize(self, rows: int, capacity: int) -> None:
        """Make room for `rows` rows of `capacity` tokens; the first rows keep what they hold."""
        rows = min(-(-rows // _ROWS) * _ROWS, self.rows_at(capacity))
        if rows == self.rows and capacity == self.capacity:
            return
        kept, self.rows, self.capacity = min(self.rows, rows), rows, capacity
        for tensors in (self.keys, self.values):
            for layer, old in enumerate(tensors):
                # zeros, because a masked position still meets a probability of zero times its value
                new = old.new_zeros(rows, old.shape[1], capacity, old.shape[3])
                new[:kept, :, : old.shape[2]] = old[:kept]
                tensors[layer] = new

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first `tokens` positions of one row to another."""
        for tensor in (*self.keys, *self.values):
            tensor[target, :, :tokens] = tensor[source, :, :tokens]


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
        self.rows, self.positions = torch.tensor(rows, device=device), torch.tensor(positions, device=device)
        self.masks = [causal_mask(n, start + n, device)[None, None] for _, start, n in runs]
        if singles:
            self._prepare_singles()

    def _prepare_singles(self) -> None:
        rows, positions = self.rows[: self.count], self.positions[: self.count]
        longest = int(positions.max()) + 1
        # a copy of short rows costs less than reading long ones, a copy of nearly all costs more
        self.length = longest if longest * 4 < self.cache.capacity * 3 else self.cache.capacity
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
        assert self.places is not None
        size = self.window.stop - self.window.start
        return x if size == self.count else x.new_zeros(size, *x.shape[1:]).index_copy_(0, self.places, x)

    def __call__(self, layer: int, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor) -> Tensor:
        """Store the new keys and values, and attend. See `latih.models.attention.Attention`."""
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        keys[self.rows, :, self.positions] = k_NKD
        values[self.rows, :, self.positions] = v_NKD
        out = torch.empty_like(q_NHD)
        if self.count:
            out[: self.count] = self._attend_singles(q_NHD[: self.count], keys, values)
        kv_heads, at = k_NKD.shape[1], self.count
        for (row, start, n), mask in zip(self.runs, self.masks, strict=True):
            past = slice(0, start + n)
            probs = probabilities(grouped(q_NHD[None, at : at + n], kv_heads), keys[row, :, past], mask)
            out[at : at + n] = ungrouped(torch.bmm(probs, values[row, :, past]), 1, n)[0]
            at += n
        return out

    def _attend_singles(self, q_RHD: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        kv_heads = keys.shape[1]
        if self.window:
            q_RHD = self._spread(q_RHD)
            keys, values = keys[self.window, :, : self.length], values[self.window, :, : self.length]
        else:
            rows = self.rows[: self.count]
            keys, values = keys[rows, :, : self.length], values[rows, :, : self.length]
        # the product would copy too, but ten times slower
        keys, values = keys.contiguous().flatten(0, 1), values.contiguous().flatten(0, 1)
        probs = probabilities(grouped(q_RHD[:, None], kv_heads), keys, self.mask_R11T)
        out = ungrouped(torch.bmm(probs, values), len(q_RHD), 1)[:, 0]
        return out[self.places] if self.window and len(out) != self.count else out
