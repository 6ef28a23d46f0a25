"""The decoder against transformers, and packing against itself."""

from pathlib import Path

import pytest
import torch

from latih.models.attention import PackedCausal
from latih.models.policy import Policy
from latih.models.projection import LoraSettings
from tests.tiny import tiny_model

transformers = pytest.importorskip("transformers")


def pack(lengths: list[int], vocab: int = 256, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(vocab, (sum(lengths),), generator=torch.Generator().manual_seed(seed))
    return ids, torch.cat([torch.arange(n) for n in lengths])


@pytest.mark.parametrize(("family", "tied"), [("llama", True), ("llama", False), ("qwen2", True), ("qwen2", False)])
def test_logits_equal_transformers(tmp_path: Path, family: str, tied: bool) -> None:
    folder = tiny_model(tmp_path, family, tied=tied)
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    policy = Policy.load(folder, train=False, dtype="float32", device="cpu")
    lengths = [7, 1, 40]
    ids, positions = pack(lengths)
    with torch.no_grad():
        logits = policy.decoder.logits(policy.forward(ids, positions, PackedCausal(lengths)))
        expected = torch.cat([reference(each[None]).logits[0] for each in ids.split(lengths)])
    assert (logits - expected).abs().max() < 1e-4


def test_llama3_rope_scaling_equals_transformers(tmp_path: Path) -> None:
    import json

    folder = tiny_model(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["rope_scaling"] = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    (folder / "config.json").write_text(json.dumps(config))
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    policy = Policy.load(folder, train=False, dtype="float32", device="cpu")
    ids, positions = pack([200])
    with torch.no_grad():
        logits = policy.decoder.logits(policy.forward(ids, positions, PackedCausal([200])))
        assert (logits - reference(ids[None]).logits[0]).abs().max() < 1e-4


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_gradients_equal_transformers_with_peft(tmp_path: Path, family: str) -> None:
    peft = pytest.importorskip("peft")
    folder = tiny_model(tmp_path / "model", family)
    policy = Policy.load(folder, lora=LoraSettings(rank=4, alpha=8), dtype="float32", device="cpu", seed=3)
    generator = torch.Generator().manual_seed(5)
    policy.load_state({name: torch.randn(t.shape, generator=generator) * 0.1 for name, t in policy.state().items()})
    policy.refresh(1)
    policy.save_adapter(tmp_path / "adapter")
    reference = peft.PeftModel.from_pretrained(
        transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        tmp_path / "adapter",
        is_trainable=True,
    )
    ids, positions = pack([30])
    rows = torch.tensor([3, 10, 28])
    hidden = policy.forward(ids, positions, PackedCausal([30]))
    logprobs, entropies = policy.token_logprobs(hidden[rows], ids[rows + 1], 0.7, entropy_gradient=True)
    scale, worth = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.3, 0.0, 4.0])
    (logprobs * scale + entropies * worth).sum().backward()
    table = (reference(ids[None]).logits[0, rows] / 0.7).log_softmax(-1)
    expected = table.gather(1, ids[rows + 1][:, None]).squeeze(1)
    (expected * scale - (table.exp() * table).sum(-1) * worth).sum().backward()
    torch.testing.assert_close(logprobs, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(entropies, -(table.exp() * table).sum(-1), atol=1e-4, rtol=1e-4)
    theirs = {n: p.grad for n, p in reference.named_parameters() if p.requires_grad}
    assert len(theirs) == len(policy.masters) == 2 * 7 * 2
    for name, ours in policy.masters.items():
        torch.testing.assert_close(ours.grad, theirs[f"base_model.model.{name}.default.weight"], atol=1e-4, rtol=1e-3)


def test_a_shared_prefix_changes_neither_values_nor_gradients(tmp_path: Path) -> None:
    policy = Policy.load(tiny_model(tmp_path), lora=LoraSettings(rank=4), dtype="float32", device="cpu")
    ids, _ = pack([9 + 5 + 6 + 4])
    root, left, right, leaf = ids.split([9, 5, 6, 4])
    whole = [torch.cat([root, left]), torch.cat([root, right, leaf])]
    grads = []
    for shared in (False, True):
        if shared:
            packed, lengths, parents = torch.cat([root, left, right, leaf]), [9, 5, 6, 4], [-1, 0, 0, 2]
            positions = torch.cat([torch.arange(9), torch.arange(9, 14), torch.arange(9, 15), torch.arange(15, 19)])
            last = torch.tensor([13, 23])
        else:
            packed, lengths, parents = torch.cat(whole), [14, 19], None
            positions = torch.cat([torch.arange(14), torch.arange(19)])
            last = torch.tensor([13, 32])
        hidden = policy.forward(packed, positions, PackedCausal(lengths, parents))[last]
        hidden.sum().backward()
        grads.append([hidden.detach()] + [p.grad.clone() for p in policy.masters.values()])
        for p in policy.masters.values():
            p.grad = None
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_long_sequences_are_attended_in_blocks(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, context=2048)
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    policy = Policy.load(folder, train=False, dtype="float32", device="cpu")
    ids, positions = pack([1100])
    with torch.no_grad():
        logits = policy.decoder.logits(policy.forward(ids, positions, PackedCausal([1100])))
        assert (logits - reference(ids[None]).logits[0]).abs().max() < 1e-4


def test_full_training_gradients_reach_every_linear_layer(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path)
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    policy = Policy.load(folder, lora=None, dtype="float32", device="cpu")
    ids, positions = pack([20])
    hidden = policy.forward(ids, positions, PackedCausal([20]))
    logprobs, _ = policy.token_logprobs(hidden[:-1], ids[1:])
    logprobs.sum().backward()
    expected = reference(ids[None]).logits[0, :-1].log_softmax(-1).gather(1, ids[1:, None]).sum()
    expected.backward()
    theirs = dict(reference.named_parameters())
    for name, ours in policy.masters.items():
        torch.testing.assert_close(ours.grad, theirs[f"{name}.weight"].grad, atol=1e-4, rtol=1e-3)


def test_export_loads_in_transformers(tmp_path: Path) -> None:
    policy = Policy.load(
        tiny_model(tmp_path / "model", "qwen2", tied=False), lora=LoraSettings(rank=4), dtype="float32"
    )
    with torch.no_grad():
        for each in policy.masters.values():
            each.add_(torch.randn(each.shape, generator=torch.Generator().manual_seed(1)) * 0.1)
    policy.refresh(1)
    policy.export(tmp_path / "out")
    exported = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    ids, positions = pack([12])
    with torch.no_grad():
        logits = policy.decoder.logits(policy.forward(ids, positions, PackedCausal([12])))
        assert (logits - exported(ids[None]).logits[0]).abs().max() < 1e-4


@pytest.mark.skipif(not Path("/proc/self/maps").is_file(), reason="the system does not say what is mapped")
@pytest.mark.parametrize("train", [False, True])
def test_no_weight_keeps_the_whole_file_in_memory(tmp_path: Path, train: bool) -> None:
    policy = Policy.load(tiny_model(tmp_path, tied=False), train=train, dtype="float32", device="cpu")
    assert policy.decoder.layers
    assert f"{tmp_path}/model.safetensors" not in Path("/proc/self/maps").read_text()
