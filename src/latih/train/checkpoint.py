"""Checkpoints of a training: what is written beside the weights so that the run goes on as if it had never stopped.

A folder holds `adapter/` in PEFT's format (or, where all weights train, `masters.safetensors`), `optimizer.safetensors`
and `trainer.json`. There is no generator to save: every random choice is seeded by the run's seed, the step and an
index.
"""

import json
from pathlib import Path

from pydantic import ValidationError

from latih.core.errors import ModelError
from latih.core.schema import Record
from latih.evaluation.agent import ADAPTER, MASTERS, PROGRESS, load_checkpoint
from latih.models.policy import Policy
from latih.models.weights import read_tensors, write_tensors
from latih.train.trainer import PolicyTrainer

OPTIMIZER = "optimizer.safetensors"


class Progress(Record):
    """Where a training is."""

    step: int
    """Training steps done, and so the position in the data: step s plays the groups planned for s."""
    seed: int
    """The run's, from which the generators of every later step derive."""
    policy_version: int
    """Optimizer steps that made the weights."""
    schedule_step: int
    """Steps that the learning rate's schedule has seen."""
    model: str
    """The fingerprint of the base model."""


def write(folder: Path, trainer: PolicyTrainer, step: int) -> None:
    """Write everything into an existing folder; whoever calls makes it whole (`latih.runs.Checkpoints.save`)."""
    policy = trainer.policy
    _write_weights(folder, policy)
    write_tensors(folder / OPTIMIZER, trainer.state())
    progress = Progress(
        step=step,
        seed=trainer.seed,
        policy_version=policy.version,
        schedule_step=trainer.steps,
        model=policy.fingerprint,
    )
    (folder / PROGRESS).write_text(progress.model_dump_json(indent=1), encoding="utf-8")


def write_policy(folder: Path, policy: Policy) -> None:
    """Write what plays, and nothing that a training needs to go on: for `load_checkpoint`."""
    _write_weights(folder, policy)
    (folder / PROGRESS).write_text(json.dumps({"model": policy.fingerprint}), encoding="utf-8")


def _write_weights(folder: Path, policy: Policy) -> None:
    if policy.lora is not None:
        policy.save_adapter(folder / ADAPTER)
    else:
        write_tensors(folder / MASTERS, policy.state())


def read(folder: Path, trainer: PolicyTrainer) -> Progress:
    """Put weights, version, optimizer and schedule back. Raises ModelError where it is broken or of another model."""
    policy = trainer.policy
    try:
        progress = Progress.model_validate(json.loads((folder / PROGRESS).read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as exc:
        raise ModelError(f"{folder} is no checkpoint of a training: {str(exc).splitlines()[0]}") from None
    load_checkpoint(policy, folder)
    policy.refresh(progress.policy_version)
    trainer.load_state(read_tensors(folder / OPTIMIZER))
    return progress
