"""The policy's part of a checkpoint, written and read: an adapter or all trained weights, and whose they are.

A folder holds `adapter/` in PEFT's format or, where all weights train, `masters.safetensors`; and `trainer.json`, which
names the base model by its fingerprint. What a training needs to go on is added by `latih.train.checkpoint`.
"""

import json
from pathlib import Path

from latih.core.errors import ConfigError, ModelError, first_line
from latih.models.policy import Policy
from latih.models.weights import read_tensors, write_tensors

ADAPTER = "adapter"
MASTERS = "masters.safetensors"
PROGRESS = "trainer.json"
"""Holds the fingerprint of the base model, as `model`, beside what a training adds."""


def save_weights(policy: Policy, folder: Path) -> None:
    """Write the trained weights into an existing folder, and not yet whose they are."""
    if policy.lora is not None:
        policy.save_adapter(folder / ADAPTER)
    else:
        write_tensors(folder / MASTERS, policy.state())


def save_checkpoint(policy: Policy, folder: Path) -> None:
    """Write what plays, and nothing that a training needs to go on, into an existing folder."""
    save_weights(policy, folder)
    (folder / PROGRESS).write_text(json.dumps({"model": policy.fingerprint}), encoding="utf-8")


def load_checkpoint(policy: Policy, folder: Path) -> None:
    """Read a checkpoint's adapter, or all of its trained weights; call `policy.refresh` afterwards.

    Raises ModelError where it is broken or of another model, if only of the same shape; ConfigError where it holds an
    adapter and the policy has none.
    """
    try:
        base = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))["model"]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ModelError(f"{folder} is no checkpoint of a training: {first_line(exc)}") from None
    if base != policy.fingerprint:
        raise ModelError(
            f"checkpoint {folder} is of another model than {policy.folder}: set trainer.policy.model.path to the one "
            "that it was trained from"
        )
    if (folder / ADAPTER).is_dir():
        if policy.lora is None:
            raise ConfigError(f"{folder} holds an adapter, but trainer.policy.lora is null")
        policy.load_adapter(folder / ADAPTER)
    elif (folder / MASTERS).is_file():
        policy.load_state(read_tensors(folder / MASTERS))
    else:
        raise ModelError(f"{folder} holds neither an adapter nor weights: it is no checkpoint of a policy")
