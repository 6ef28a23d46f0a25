"""The recipes' GPU variants, which no test runs: they are whole, and their cache fits their model."""

from importlib import resources
from pathlib import Path

import pytest
import torch

from latih.core import ConfigError
from latih.inference import EngineSettings
from latih.inference.cache import capacity
from latih.models.config import DecoderConfig
from latih.train.config import resolve

RECIPES = Path(str(resources.files("latih"))) / "recipes"
VARIANTS = sorted(RECIPES.glob("*/gpu.yaml"))
DOCS = Path(__file__).parents[2] / "docs" / "envs" / "README.md"


def qwen(layers: int, hidden: int, heads: int, kv_heads: int, wide: int, vocab: int) -> DecoderConfig:
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
    )


MODELS = {
    "Qwen/Qwen2.5-3B-Instruct": qwen(36, 2048, 16, 2, 11008, 151936),
    "Qwen/Qwen2.5-7B-Instruct": qwen(28, 3584, 28, 4, 18944, 152064),
    "Qwen/Qwen2.5-14B-Instruct": qwen(48, 5120, 40, 8, 13824, 152064),
}
HELD = {
    "code": (32768, 233_016),
    "game_2048": (32768, 233_016),
    "gsm8k": (32768, 233_016),
    "mail_search": (32768, 87_381),
    "reasoning_gym": (32768, 233_016),
    "repo_repair": (32768, 87_381),
    "temporal_clue": (4096, 599_186),
    "tic_tac_toe": (32768, 233_016),
}


def test_all_are_here() -> None:
    assert [each.parent.name for each in VARIANTS] == sorted(HELD)


@pytest.mark.parametrize("file", VARIANTS, ids=lambda file: file.parent.name)
def test_the_cache_fits_the_model(file: Path) -> None:
    config = resolve(str(file))
    assert config.env.id.partition(":")[0] == file.parent.name
    model = MODELS[config.trainer.policy.model.path]
    assert capacity(model, config.inference, torch.bfloat16) == HELD[file.parent.name]
    assert config.rollout.sampling.max_tokens < config.trainer.micro_batch_tokens
    assert "gpu.yaml" in (file.parent / "README.md").read_text(encoding="utf-8")
    assert f"recipes/{file.parent.name}/gpu.yaml" in DOCS.read_text(encoding="utf-8")


def test_the_default_cache_does_not_hold_one_context_of_14b() -> None:
    # 2 GiB / 192 KiB = 10,922 tokens; 32,768 x 192 KiB = 6 GiB
    with pytest.raises(
        ConfigError, match=r"kv_cache_gb=2 holds 10922 tokens, but one context of 32768 tokens needs 6:"
    ):
        capacity(MODELS["Qwen/Qwen2.5-14B-Instruct"], EngineSettings(), torch.bfloat16)
