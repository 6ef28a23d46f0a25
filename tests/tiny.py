"""Tiny random models in the Hugging Face layout, with a byte-level tokenizer and a ChatML template."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CHATML = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCAB = 259


def byte_tokenizer() -> Tokenizer:
    """One token per byte, then the three special tokens (ids 256, 257, 258)."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in SPECIALS])
    return tokenizer


def tiny_model(
    folder: Path,
    family: str = "llama",
    *,
    tied: bool = True,
    layers: int = 2,
    hidden: int = 32,
    heads: int = 4,
    kv_heads: int = 2,
    vocab: int = VOCAB,
    context: int = 512,
    seed: int = 0,
) -> Path:
    """Write a random float32 model of `family` ("llama" or "qwen2", which has qkv biases) and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    head = hidden // heads
    config = {
        "architectures": ["LlamaForCausalLM" if family == "llama" else "Qwen2ForCausalLM"],
        "model_type": family,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocab,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
        "torch_dtype": "float32",
        "bos_token_id": 256,
        "eos_token_id": 258,
        "pad_token_id": 256,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * (1.5 / shape[-1] ** 0.5)

    weights = {"model.embed_tokens.weight": random(vocab, hidden), "model.norm.weight": torch.ones(hidden)}
    if not tied:
        weights["lm_head.weight"] = random(vocab, hidden)
    for i in range(layers):
        at = f"model.layers.{i}."
        sizes = {"q": heads * head, "k": kv_heads * head, "v": kv_heads * head}
        for name, size in sizes.items():
            weights[f"{at}self_attn.{name}_proj.weight"] = random(size, hidden)
            if family == "qwen2":
                weights[f"{at}self_attn.{name}_proj.bias"] = random(size)
        weights[f"{at}self_attn.o_proj.weight"] = random(hidden, heads * head)
        weights[f"{at}mlp.gate_proj.weight"] = random(2 * hidden, hidden)
        weights[f"{at}mlp.up_proj.weight"] = random(2 * hidden, hidden)
        weights[f"{at}mlp.down_proj.weight"] = random(hidden, 2 * hidden)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{at}{norm}.weight"] = 1 + 0.1 * torch.randn(hidden, generator=generator)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "chat_template": CHATML})
    )
    return folder


def tiny_settings(model: Path, runs: Path) -> list[str]:
    """Overrides under which a training with a tiny model takes seconds: one step, kept in the folder `runs`."""
    return [
        f"trainer.policy.model.path={model}",
        "trainer.policy.model.dtype=float32",
        f"run.folder={runs}",
        "trainer.steps=1",
        "rollout.groups=2",
        "rollout.group_size=2",
        "evaluation.episodes=2",
        "inference.kv_cache_gb=0.05",
    ]
