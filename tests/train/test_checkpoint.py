import json

import pytest
import torch

from latih.core import ModelError
from latih.models.policy import LoraSettings, Policy
from latih.train import checkpoint
from latih.train.settings import TrainerSettings
from latih.train.trainer import PolicyTrainer
from tests.tiny import tiny_model
from tests.train.games import random_groups, tiny_policy


def _trained(tmp_path):
    trainer = PolicyTrainer(tiny_policy(tmp_path), TrainerSettings(steps=9), seed=5)
    trainer.step(random_groups(trainer.policy))
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    checkpoint.write(folder, trainer, 1)
    return trainer, folder


def _fresh(folder, **lora):
    policy = Policy.load(folder, lora=LoraSettings(**{"rank": 4, "alpha": 8.0, **lora}), dtype="float32", device="cpu")
    return PolicyTrainer(policy, TrainerSettings(steps=9), seed=5)


def test_what_is_read_is_what_was_written(tmp_path):
    trainer, folder = _trained(tmp_path)
    other = _fresh(trainer.policy.folder)
    progress = checkpoint.read(folder, other)
    assert (progress.step, progress.policy_version) == (1, 1)
    assert other.policy.version == 1
    assert other.steps == 1
    for mine, its in ((trainer.policy.state(), other.policy.state()), (trainer.state(), other.state())):
        assert mine.keys() == its.keys()
        assert all(torch.equal(mine[name], its[name]) for name in mine)


def test_nothing_in_it_needs_unpickling(tmp_path):
    _, folder = _trained(tmp_path)
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} == {".json", ".safetensors"}


def test_full_weights_are_kept_where_all_train(tmp_path):
    model = tiny_model(tmp_path / "model")
    trainer = PolicyTrainer(Policy.load(model, lora=None, dtype="float32", device="cpu"), TrainerSettings())
    trainer.step(random_groups(trainer.policy))
    checkpoint.write(tmp_path, trainer, 1)
    other = PolicyTrainer(Policy.load(model, lora=None, dtype="float32", device="cpu"), TrainerSettings())
    checkpoint.read(tmp_path, other)
    mine, its = trainer.policy.state(), other.policy.state()
    assert all(torch.equal(mine[name], its[name]) for name in mine)


def test_checkpoint_of_another_model_is_refused(tmp_path):
    _, folder = _trained(tmp_path)
    twin = tiny_model(tmp_path / "twin", seed=1)  # of the same shape
    with pytest.raises(ModelError, match=r"is of another model than .*: set trainer\.policy\.model\.path"):
        checkpoint.read(folder, _fresh(twin))


def test_checkpoint_of_another_adapter_is_refused(tmp_path):
    trainer, folder = _trained(tmp_path)
    for other in ({"rank": 2}, {"alpha": 16.0}):
        with pytest.raises(
            ModelError, match=r"has rank 4 and alpha 8: set trainer.policy.lora to \{rank: 4, alpha: 8\}"
        ):
            checkpoint.read(folder, _fresh(trainer.policy.folder, **other))


def test_checkpoint_without_the_adapters_settings_is_refused(tmp_path):
    trainer, folder = _trained(tmp_path)
    (folder / "adapter" / "adapter_config.json").write_text('{"r": 4}')
    with pytest.raises(ModelError, match=r"adapter_config\.json is no adapter's configuration: 'lora_alpha'$"):
        checkpoint.read(folder, trainer)


def test_checkpoint_of_the_model_that_another_training_made_is_refused(tmp_path):
    trainer, folder = _trained(tmp_path)
    trainer.policy.export(tmp_path / "merged")
    with pytest.raises(ModelError, match="is of another model than"):
        checkpoint.read(folder, _fresh(tmp_path / "merged"))
    assert _fresh(trainer.policy.folder).policy.fingerprint == trainer.policy.fingerprint  # trained or not
    halves = Policy.load(trainer.policy.folder, train=False, dtype="bfloat16", device="cpu")
    assert halves.fingerprint == trainer.policy.fingerprint


def test_broken_checkpoints_are_refused(tmp_path):
    trainer, folder = _trained(tmp_path)
    path = folder / checkpoint.OPTIMIZER
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelError, match="corrupt or truncated"):
        checkpoint.read(folder, trainer)
    (folder / checkpoint.PROGRESS).write_text(json.dumps({"step": 1}))
    with pytest.raises(ModelError, match="is no checkpoint of a training"):
        checkpoint.read(folder, trainer)
    with pytest.raises(ModelError, match="is no checkpoint of a training"):
        checkpoint.read(tmp_path / "nowhere", trainer)
