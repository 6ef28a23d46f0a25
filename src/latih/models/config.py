"""The shape of a decoder, read from a Hugging Face `config.json`; one shape covers the Llama and Qwen2 families."""

import json
import math
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, ValidationError

from latih.core.errors import ModelError
from latih.core.schema import Record

FAMILIES = ("llama", "qwen2")


class DecoderConfig(Record):
    """What `Decoder` needs to know. Sizes count elements, lengths count tokens."""

    family: str
    vocab_size: int = Field(gt=0)
    hidden_size: int = Field(gt=0)
    intermediate_size: int = Field(gt=0)
    layers: int = Field(gt=0)
    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0, multiple_of=2)
    context_length: int = Field(gt=0)
    norm_eps: float
    rope_theta: float = Field(gt=0)
    rope_scaling: dict[str, Any] | None = None
    """Of type `llama3`, or None."""
    qkv_bias: bool = False
    tied_embeddings: bool = True

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values that one cached token takes in 16-bit floats, all layers together."""
        return 2 * 2 * self.layers * self.kv_heads * self.head_dim

    @classmethod
    def from_folder(cls, folder: Path) -> "DecoderConfig":
        """Read `config.json`. Raises ModelError where it is missing, broken, nonsense or of another family."""
        path = folder / "config.json"
        try:
            raw = json.loads(path.read_text())
        except FileNotFoundError:
            raise ModelError(f"no model at {folder}: it has no config.json") from None
        except (OSError, ValueError, RecursionError) as exc:
            raise ModelError(f"{path} is not JSON ({exc}): fetch the model again") from None
        if not isinstance(raw, dict):
            raise ModelError(f"{path} does not hold a JSON object: fetch the model again")
        family = raw.get("model_type")
        if family not in FAMILIES:
            raise ModelError(f"{folder} is a {family!r} model; supported families: {', '.join(FAMILIES)}")
        try:
            config = cls._of(family, raw)
            if config.heads % config.kv_heads:
                raise ValueError(f"{config.heads} heads do not share {config.kv_heads} of keys and values evenly")
            config.rope_frequencies()  # what the scaling holds is read here only
            return config
        except KeyError as exc:
            raise ModelError(f"{path} lacks {exc}: it is not a whole {family} config") from None
        except ValidationError as exc:
            fault = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in exc.errors())
            raise ModelError(f"{path} is no {family} config ({fault}): fetch the model again") from None
        except (ValueError, TypeError, AttributeError, ArithmeticError) as exc:
            raise ModelError(f"{path} is no {family} config ({exc}): fetch the model again") from None

    @classmethod
    def _of(cls, family: str, raw: dict[str, Any]) -> "DecoderConfig":
        # transformers 5 moved the rope settings into one dictionary; both places are read
        rope = raw.get("rope_parameters") or {}
        scaling = raw.get("rope_scaling") or rope
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        if kind not in ("default", "llama3"):
            raise ModelError(f"rope scaling {kind!r} is not supported; supported: default, llama3")
        if raw.get("use_sliding_window") or raw.get("hidden_act", "silu") != "silu":
            raise ModelError("sliding windows and activations other than silu are not supported")
        heads = raw["num_attention_heads"]
        return cls(
            family=family,
            vocab_size=raw["vocab_size"],
            hidden_size=raw["hidden_size"],
            intermediate_size=raw["intermediate_size"],
            layers=raw["num_hidden_layers"],
            heads=heads,
            kv_heads=raw.get("num_key_value_heads", heads),
            head_dim=raw.get("head_dim") or raw["hidden_size"] // heads,
            context_length=raw["max_position_embeddings"],
            norm_eps=raw["rms_norm_eps"],
            rope_theta=raw.get("rope_theta") or rope.get("rope_theta", 10000.0),
            rope_scaling=scaling if kind == "llama3" else None,
            qkv_bias=raw.get("attention_bias", False) or family == "qwen2",
            tied_embeddings=raw.get("tie_word_embeddings", False),
        )

    def rope_frequencies(self) -> torch.Tensor:
        """Angular frequencies of the rotary embedding, float32. [head_dim / 2]"""
        exponents = torch.arange(0, self.head_dim, 2, dtype=torch.float32) / self.head_dim
        frequencies = 1.0 / self.rope_theta**exponents
        return frequencies if self.rope_scaling is None else _llama3(frequencies, self.rope_scaling)


def _llama3(frequencies: torch.Tensor, scaling: dict[str, Any]) -> torch.Tensor:
    """Llama 3.1's stretch of the long wavelengths, with a linear ramp between the two bounds."""
    factor, old = scaling["factor"], scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    wavelengths = 2 * math.pi / frequencies
    ramp: torch.Tensor = ((old / wavelengths - low) / (high - low)).clamp(0, 1)
    return torch.lerp(frequencies / factor, frequencies, ramp)
