"""Conversion of a llama-shaped GGUF file to a Hugging Face folder: config.json, model.safetensors and the tokenizer.

The weights are dequantized and stored in bfloat16: half the bytes of float32 to write, to check and to read at every
start, and the rounding (one part in 512) is far below that of 4-bit or 8-bit quantization.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latih.core.errors import ModelError, first_line

if TYPE_CHECKING:
    import numpy as np
    import torch
    from gguf import GGUFReader, ReaderTensor

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and the total (0 where that is not known)."""

CONTROL = 3
"""The token type of control tokens such as <|im_end|>."""
PRETOKENIZERS = {"smollm": True}
"""Names of `tokenizer.ggml.pre` that we know: whether digits are split one by one before the byte-level split."""


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def convert_gguf(source: Path, folder: Path, progress: Progress = silent) -> None:
    """Write the model of `source` into `folder`, which exists and is empty.

    Raises ModelError where the file is damaged, not of llama architecture, or uses a tokenizer that we do not know;
    OSError and SafetensorError where the folder cannot be written.
    """
    from gguf import GGUFReader

    progress(f"reading {source.name}", 0, 0)
    try:
        reader = GGUFReader(source)
    except Exception as exc:  # the parser meets damage with whatever numpy or struct raise
        raise ModelError(f"{source} is not a whole GGUF file ({first_line(exc)}): get it again") from exc
    meta = Metadata(reader, source)
    config = _config(meta, reader)
    tokenizer, tokenizer_config = _tokenizer(meta)
    weights = _weights(meta, reader, config, progress)

    from safetensors.torch import save_file

    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for name, content in (("config.json", config), ("tokenizer_config.json", tokenizer_config)):
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")


class Metadata:
    """The key-value part of a GGUF file."""

    def __init__(self, reader: "GGUFReader", source: Path) -> None:
        self._fields = reader.fields
        self.source = source

    def get(self, key: str, default: Any = None) -> Any:
        """The value under `key`."""
        return self._fields[key].contents() if key in self._fields else default

    def need(self, key: str) -> Any:
        """The value under `key`. Raises ModelError where there is none."""
        if key not in self._fields:
            raise ModelError(f"{self.source} has no {key!r}: it is not a GGUF model that can be converted")
        return self.get(key)


def _config(meta: Metadata, reader: "GGUFReader") -> dict[str, Any]:
    architecture = meta.need("general.architecture")
    if architecture != "llama":
        raise ModelError(
            f"{meta.source} is of architecture {architecture!r}: only 'llama' is read from GGUF, "
            "so use the model's Hugging Face folder"
        )
    names = {tensor.name for tensor in reader.tensors}
    if "rope_freqs.weight" in names or meta.get("llama.rope.scaling.type", "none") != "none":
        raise ModelError(
            f"{meta.source} scales its rotary frequencies, which GGUF does not record as such: "
            "use the model's Hugging Face folder"
        )
    heads = meta.need("llama.attention.head_count")
    hidden = meta.need("llama.embedding_length")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": meta.need("llama.feed_forward_length"),
        "num_hidden_layers": meta.need("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": meta.get("llama.attention.head_count_kv", heads),
        "head_dim": meta.get("llama.attention.key_length", hidden // heads),
        "vocab_size": len(meta.need("tokenizer.ggml.tokens")),
        "max_position_embeddings": meta.need("llama.context_length"),
        # stored as float32: seven digits give back the number that was meant
        "rms_norm_eps": float(f"{meta.need('llama.attention.layer_norm_rms_epsilon'):.7g}"),
        "rope_theta": float(meta.get("llama.rope.freq_base", 10000.0)),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in names,
        "torch_dtype": "bfloat16",
        "bos_token_id": meta.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": meta.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": meta.get("tokenizer.ggml.padding_token_id"),
    }


def _tokenizer(meta: Metadata) -> tuple[str, dict[str, Any]]:
    """tokenizer.json's text, and tokenizer_config.json's content."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind, pre = meta.need("tokenizer.ggml.model"), meta.get("tokenizer.ggml.pre", "")
    if kind != "gpt2" or pre not in PRETOKENIZERS:
        raise ModelError(
            f"{meta.source} has tokenizer {kind!r} with pre-tokenizer {pre!r}: only 'gpt2' with "
            f"{', '.join(PRETOKENIZERS)} is read from GGUF, so use the model's Hugging Face folder"
        )
    tokens: list[str] = meta.need("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ", 1)) for merge in meta.need("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    splits: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    if PRETOKENIZERS[pre]:
        splits.insert(0, pre_tokenizers.Digits(individual_digits=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokenizer.decoder = decoders.ByteLevel()
    controls = [
        token for token, kind in zip(tokens, meta.need("tokenizer.ggml.token_type"), strict=True) if kind == CONTROL
    ]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in controls])
    named = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    ids = {name: meta.get(f"tokenizer.ggml.{key}_token_id") for name, key in named.items()}
    return tokenizer.to_str(), {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{name}_token": tokens[i] for name, i in ids.items() if i is not None},
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": meta.need("llama.context_length"),
        "chat_template": meta.get("tokenizer.chat_template"),
    }


def _names(config: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """GGUF's name of every tensor, with Hugging Face's name and shape."""
    hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    q = config["num_attention_heads"] * config["head_dim"]
    kv = config["num_key_value_heads"] * config["head_dim"]
    names: dict[str, tuple[str, tuple[int, ...]]] = {
        "token_embd": ("model.embed_tokens", (vocab, hidden)),
        "output_norm": ("model.norm", (hidden,)),
    }
    if not config["tie_word_embeddings"]:
        names["output"] = ("lm_head", (vocab, hidden))
    for i in range(config["num_hidden_layers"]):
        to = f"model.layers.{i}"
        names |= {
            f"blk.{i}.attn_norm": (f"{to}.input_layernorm", (hidden,)),
            f"blk.{i}.attn_q": (f"{to}.self_attn.q_proj", (q, hidden)),
            f"blk.{i}.attn_k": (f"{to}.self_attn.k_proj", (kv, hidden)),
            f"blk.{i}.attn_v": (f"{to}.self_attn.v_proj", (kv, hidden)),
            f"blk.{i}.attn_output": (f"{to}.self_attn.o_proj", (hidden, q)),
            f"blk.{i}.ffn_norm": (f"{to}.post_attention_layernorm", (hidden,)),
            f"blk.{i}.ffn_gate": (f"{to}.mlp.gate_proj", (inner, hidden)),
            f"blk.{i}.ffn_up": (f"{to}.mlp.up_proj", (inner, hidden)),
            f"blk.{i}.ffn_down": (f"{to}.mlp.down_proj", (hidden, inner)),
        }
    return names


def _weights(
    meta: Metadata, reader: "GGUFReader", config: dict[str, Any], progress: Progress
) -> dict[str, "torch.Tensor"]:
    import torch

    tensors: dict[str, ReaderTensor] = {tensor.name: tensor for tensor in reader.tensors}
    names = _names(config)
    weights = {}
    for done, (name, (target, shape)) in enumerate(names.items()):
        progress("converting the weights", done, len(names))
        try:
            values = _dequantized(tensors[f"{name}.weight"])
        except KeyError:
            raise ModelError(f"{meta.source} has no tensor {name}.weight: get the file again") from None
        if values.shape != shape:
            raise ModelError(f"{meta.source}: {name}.weight has shape {values.shape}, expected {shape}")
        heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(target.rsplit(".", 1)[-1])
        if heads:
            values = unpermute(values, config[heads])
        weights[f"{target}.weight"] = torch.from_numpy(values).to(torch.bfloat16)
    progress("converting the weights", len(names), len(names))
    return weights


def _dequantized(tensor: "ReaderTensor") -> "np.ndarray[Any, np.dtype[np.float32]]":
    import numpy as np
    from gguf.quants import dequantize

    # a copy, since an unquantized tensor is a read-only view of the file
    return np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)


def unpermute(rows: "np.ndarray[Any, np.dtype[np.float32]]", heads: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Undo llama.cpp's order of the query and key rows.

    It stores each head's rotary pairs side by side (0, d/2, 1, d/2+1, …); Hugging Face rotates halves. [rows, hidden]
    """
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, rows.shape[1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)
