"""The recipes' GPU variants, which no test runs: they are whole, and learning fits the GPU that they name."""

import re
from importlib import resources
from pathlib import Path

import pytest
import torch

from latih.core import ConfigError
from latih.inference import EngineSettings
from latih.inference.cache import capacity
from latih.models.attention import BLOCK, PackedCausal
from latih.models.config import DecoderConfig
from latih.models.policy import Policy
from latih.models.projection import LoraSettings
from latih.train.config import Config, resolve
from tests.tiny import tiny_model

RECIPES = Path(str(resources.files("latih"))) / "recipes"
VARIANTS = sorted(RECIPES.glob("*/gpu.yaml"))
DOCS = Path(__file__).parents[2] / "docs" / "envs" / "README.md"


def qwen(layers: int, hidden: int, heads: int, kv_heads: int, wide: int, vocab: int, tied: bool) -> DecoderConfig:
    """The shape of a Qwen2.5 Instruct model, as its config.json on the hub says."""
    return DecoderConfig(
        family="qwen2",
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=wide,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=128,
        context_length=32768,
        norm_eps=1e-6,
        rope_theta=1e6,
        tied_embeddings=tied,
    )


MODELS = {
    "Qwen/Qwen2.5-3B-Instruct": qwen(36, 2048, 16, 2, 11008, 151936, True),
    "Qwen/Qwen2.5-7B-Instruct": qwen(28, 3584, 28, 4, 18944, 152064, False),
    "Qwen/Qwen2.5-14B-Instruct": qwen(48, 5120, 40, 8, 13824, 152064, False),
}
HELD = {
    "code": (2048, 233_016),
    "game_2048": (2048, 233_016),
    "gsm8k": (2048, 233_016),
    "mail_search": (4096, 43_690),
    "reasoning_gym": (2048, 233_016),
    "repo_repair": (8192, 149_796),
    "temporal_clue": (4096, 149_796),
    "tic_tac_toe": (2048, 233_016),
}
"""By recipe: the tokens of one context, and those that the cache holds."""
ROOM = 0.9
"""How much of a GPU may be held: the rest is for what lives within one layer, and for fragments."""


def linear_layers(model: DecoderConfig) -> list[tuple[int, int]]:
    """(rows, columns) of the linear layers of one decoder layer."""
    wide, narrow = model.heads * model.head_dim, model.kv_heads * model.head_dim
    d, i = model.hidden_size, model.intermediate_size
    return [(wide, d), (narrow, d), (narrow, d), (d, wide), (i, d), (i, d), (d, i)]


def weight_bytes(model: DecoderConfig, rank: int) -> int:
    """After an update: base and effective weights, embedding and head in float32, and the head for gradients.

    Of the adapter: master, gradient and Adam's two averages, in float32.
    """
    layer = sum(rows * columns for rows, columns in linear_layers(model))
    adapter = sum(rank * (rows + columns) for rows, columns in linear_layers(model))
    tables = (4 if model.tied_embeddings else 8) + 2
    return model.layers * (2 * 2 * layer + 4 * 4 * adapter) + tables * model.vocab_size * model.hidden_size


def activation_bytes(model: DecoderConfig) -> int:
    """What the layers keep of one token for the way back, attention's probabilities left out."""
    heads, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    return model.layers * 2 * (4 * model.hidden_size + 2 * heads + 2 * kv + 3 * model.intermediate_size)


def row_scores(tokens: int) -> int:
    """Probabilities of one head over one row: block by block, each query of a block with all keys of the last."""
    return sum(min(BLOCK, tokens - first) * min(first + BLOCK, tokens) for first in range(0, tokens, BLOCK))


def learning_bytes(model: DecoderConfig, config: Config) -> float:
    """The most that learning holds: one row of a whole context, and what else a micro-batch takes.

    Tokens beyond the row's see a whole context at most, with a quarter more for padding.
    """
    longest, _ = capacity(model, config.inference, torch.bfloat16)
    assert config.trainer.policy.lora is not None
    more = max(0, config.trainer.micro_batch_tokens - longest)
    scores = row_scores(longest) + 1.25 * more * longest
    return (
        weight_bytes(model, config.trainer.policy.lora.rank)
        + (longest + more) * activation_bytes(model)
        + scores * model.heads * model.layers * 2
        + config.inference.kv_cache_gb * 2**30
    )


def test_all_are_here() -> None:
    assert [each.parent.name for each in VARIANTS] == sorted(HELD)


@pytest.mark.parametrize("file", VARIANTS, ids=lambda file: file.parent.name)
def test_learning_fits_the_gpu_that_it_names(file: Path) -> None:
    config = resolve(str(file))
    assert config.env.id.partition(":")[0] == file.parent.name
    model = MODELS[config.trainer.policy.model.path]
    assert capacity(model, config.inference, torch.bfloat16) == HELD[file.parent.name]
    assert config.rollout.sampling.max_tokens < config.trainer.micro_batch_tokens
    named = re.search(r"GPU of (\d+) GB", file.read_text(encoding="utf-8").replace("\n# ", " "))
    assert named, "say on which GPU it fits: `on a GPU of 80 GB`"
    assert learning_bytes(model, config) <= ROOM * int(named[1]) * 2**30
    readme = (file.parent / "README.md").read_text(encoding="utf-8")
    assert f"latih train src/latih/recipes/{file.parent.name}/gpu.yaml" in readme
    assert re.search(r"pip install -c constraints.txt '\.\[hub\b", readme), "a model's id needs the extra hub"
    assert f"GPU of {named[1]} GB" in readme.replace("\n", " ")
    assert f"recipes/{file.parent.name}/gpu.yaml" in DOCS.read_text(encoding="utf-8")


def test_the_default_cache_does_not_hold_one_context_of_14b() -> None:
    # 2 GiB / 192 KiB = 10,922 tokens; 32,768 x 192 KiB = 6 GiB
    with pytest.raises(
        ConfigError, match=r"kv_cache_gb=2 holds 10922 tokens, but one context of 32768 tokens needs 6:"
    ):
        capacity(MODELS["Qwen/Qwen2.5-14B-Instruct"], EngineSettings(), torch.bfloat16)


def test_the_sums_by_hand() -> None:
    # 14B, in GiB: 2 x 2 bytes x 48 x 275,251,200 weights, 2 x 4 + 2 bytes x 152,064 x 5,120; 16,000 tokens; one row
    model = MODELS["Qwen/Qwen2.5-14B-Instruct"]
    gib = [weight_bytes(model, 0), 16_000 * activation_bytes(model), row_scores(4096) * 40 * 48 * 2]
    assert [round(each / 2**30, 1) for each in gib] == [56.5, 106.2, 33.8]
    assert row_scores(1200) == 512 * 512 + 512 * 1024 + 176 * 1200


def test_the_sums_are_what_learning_holds(tmp_path: Path) -> None:
    tiny_model(tmp_path / "tiny", "qwen2", tied=False)
    policy = Policy.load(tmp_path / "tiny", lora=LoraSettings(rank=4), dtype="bfloat16", device="cpu")
    model, tokens = policy.config, 700
    saved: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    ids, positions = torch.zeros(tokens, dtype=torch.int64), torch.arange(tokens) % model.context_length
    policy.refresh(1)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        hidden = policy.forward(ids, positions, PackedCausal([tokens]))
    assert hidden.requires_grad
    decoder = policy.decoder
    held = [decoder.norm, decoder.cos, *policy.masters.values()]
    held += [each.weight for each in decoder.projections]
    held += [norm for layer in decoder.layers for norm in (layer.input_norm, layer.post_norm)]
    for each in held:
        saved.pop(each.untyped_storage().data_ptr(), None)
    # beside the layers: the last hidden states and their norm in float32, and the angles of each position
    beside = tokens * (4 * model.hidden_size + 2 * 4 * model.head_dim // 2) + 4 * model.hidden_size
    layers = tokens * activation_bytes(model) + row_scores(tokens) * model.heads * model.layers * 2
    assert layers <= sum(saved.values()) <= layers + beside
    weights = [tensor for each in decoder.projections for tensor in (each.base, each.weight)]
    tables = [decoder.embedding, decoder.head, decoder.back_head]
    masters = [each for each in policy.masters.values() for _ in range(4)]
    assert sum(each.nbytes for each in weights + tables + masters) == weight_bytes(model, 4)
