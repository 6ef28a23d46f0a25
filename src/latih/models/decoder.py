"""The decoder: one definition for the Llama-shaped families, used by sampler and learner alike.

It runs on packed tokens [N] of any number of sequences; how they see each other is the business of the `Attention`
that the caller passes in (causal over segments when learning, the cache of the engine when sampling).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from latih.core.errors import ModelError
from latih.models.attention import Attention
from latih.models.config import DecoderConfig
from latih.models.ops import rms_norm, rotate, swiglu
from latih.models.projection import Projection, linear, pack


@dataclass
class Layer:
    """The weights of one decoder layer."""

    input_norm: Tensor
    qkv: Projection
    out: Projection
    post_norm: Tensor
    gate_up: Projection
    down: Projection

    @property
    def projections(self) -> tuple[Projection, ...]:
        """All linear layers."""
        return self.qkv, self.out, self.gate_up, self.down


class Decoder:
    """Weights and forward pass. The embedding and the head stay in float32: logits are never rounded."""

    def __init__(self, config: DecoderConfig, weights: dict[str, Tensor], dtype: torch.dtype) -> None:
        """`weights` are by Hugging Face names, on the device to use. Raises ModelError where one is missing or odd."""
        self.config, self.dtype = config, dtype
        take = _Taker(config, weights)
        table = config.vocab_size, config.hidden_size
        self.embedding = take.copy("model.embed_tokens.weight", torch.float32, *table)
        self.layers = [self._layer(take, f"model.layers.{i}.") for i in range(config.layers)]
        self.norm = take.copy("model.norm.weight", dtype, config.hidden_size)
        tied = config.tied_embeddings or "lm_head.weight" not in weights
        self.head = self.embedding if tied else take.copy("lm_head.weight", torch.float32, *table)
        self.packed_head = pack(self.head)
        positions = torch.arange(config.context_length, dtype=torch.float32)
        angles = torch.outer(positions, config.rope_frequencies()).to(self.embedding.device)
        self.cos, self.sin = angles.cos(), angles.sin()

    def _layer(self, take: "_Taker", at: str) -> Layer:
        c = self.config
        wide, narrow = c.heads * c.head_dim, c.kv_heads * c.head_dim

        def fused(sizes: dict[str, int], width: int, bias: bool = False) -> Projection:
            weights = {at + name: take(f"{at}{name}.weight", size, width) for name, size in sizes.items()}
            biases = {at + name: take(f"{at}{name}.bias", size) for name, size in sizes.items()} if bias else {}
            return Projection(weights, biases, self.dtype)

        return Layer(
            input_norm=take.copy(f"{at}input_layernorm.weight", self.dtype, c.hidden_size),
            qkv=fused(
                {"self_attn.q_proj": wide, "self_attn.k_proj": narrow, "self_attn.v_proj": narrow},
                c.hidden_size,
                c.qkv_bias,
            ),
            out=fused({"self_attn.o_proj": c.hidden_size}, wide),
            post_norm=take.copy(f"{at}post_attention_layernorm.weight", self.dtype, c.hidden_size),
            gate_up=fused({"mlp.gate_proj": c.intermediate_size, "mlp.up_proj": c.intermediate_size}, c.hidden_size),
            down=fused({"mlp.down_proj": c.hidden_size}, c.intermediate_size),
        )

    @property
    def projections(self) -> Iterator[Projection]:
        """Every linear layer, in order."""
        return (each for layer in self.layers for each in layer.projections)

    @cached_property
    def back_head(self) -> Tensor:
        """The head in the type of the layers, for gradients; made where something first learns."""
        return self.head.to(self.dtype)

    def forward(self, ids_N: Tensor, positions_N: Tensor, attention: Attention) -> Tensor:
        """Hidden states after the last norm, float32. [N, hidden]"""
        c = self.config
        x = self.embedding[ids_N].to(self.dtype)
        cos, sin = self.cos[positions_N, None], self.sin[positions_N, None]
        for i, layer in enumerate(self.layers):
            qkv = layer.qkv(rms_norm(x, layer.input_norm, c.norm_eps))
            qk, v = qkv.view(len(x), -1, c.head_dim).split([c.heads + c.kv_heads, c.kv_heads], dim=1)
            q, k = rotate(qk, cos, sin).split([c.heads, c.kv_heads], dim=1)
            x = x + layer.out(attention(i, q, k, v).reshape(len(x), -1))
            x = x + layer.down(swiglu(layer.gate_up(rms_norm(x, layer.post_norm, c.norm_eps))))
        return rms_norm(x.float(), self.norm.float(), c.norm_eps)

    def logits(self, hidden_MD: Tensor) -> Tensor:
        """Logits of the next token, float32, without a gradient. [M, vocab]"""
        return linear(hidden_MD, self.head, self.packed_head, None)


class _Taker:
    """Hands out weights by name, checked."""

    def __init__(self, config: DecoderConfig, weights: dict[str, Tensor]) -> None:
        self.config, self.weights = config, weights

    def __call__(self, name: str, *shape: int) -> Tensor:
        weight = self.weights.get(name)
        if weight is None:
            raise ModelError(
                f"the model has no weight {name!r}: fetch it again, or name a whole {self.config.family} model"
            )
        if tuple(weight.shape) != shape:
            raise ModelError(f"weight {name!r} has shape {list(weight.shape)}, but config.json says {list(shape)}")
        return weight

    def copy(self, name: str, dtype: torch.dtype, *shape: int) -> Tensor:
        """A weight of the decoder's own: one view of a file that is read keeps all of it in memory."""
        return self(name, *shape).to(dtype, copy=True)
