"""Checkpoints of a training: what is written beside the weights so that the run goes on as if it had never stopped.

A folder holds what `latih.models.checkpoint` says, with more in its `trainer.json`, and `optimizer.safetensors`. There
is no generator to save: every random choice is seeded by the run's seed, the step and an index.
"""

import json
from pathlib import Path

from pydantic import ValidationError

from latih.core.errors import ModelError, first_line
from latih.core.schema import Record
from latih.models.checkpoint import PROGRESS, load_checkpoint, save_weights
from latih.models.weights import read_tensors, write_tensors
from latih.train.trainer import PolicyTrainer

OPTIMIZER = "optimizer.safetensors"


class Progress(Record):
    """Where a training is."""

    step: int
    """Training steps done, and so the position in the data: step s plays the groups planned for s."""
    policy_version: int
    """Optimizer steps that made the weights."""
    model: str
    """The fingerprint of the base model."""


def write(folder: Path, trainer: PolicyTrainer, step: int) -> None:
    """Write everything into an existing folder; whoever calls makes it whole (`latih.runs.Checkpoints.save`)."""
    policy = trainer.policy
    save_weights(policy, folder)
    write_tensors(folder / OPTIMIZER, trainer.state())
    progress = Progress(step=step, policy_version=policy.version, model=policy.fingerprint)
    (folder / PROGRESS).write_text(progress.model_dump_json(indent=1), encoding="utf-8")


def read(folder: Path, trainer: PolicyTrainer) -> Progress:
    """Put weights, version, optimizer and schedule back. Raises ModelError where it is broken or of another model."""
    policy = trainer.policy
    try:
        progress = Progress.model_validate(json.loads((folder / PROGRESS).read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as exc:
        raise ModelError(f"{folder} is no checkpoint of a training: {first_line(exc)}") from None
    load_checkpoint(policy, folder)
    policy.refresh(progress.policy_version)
    trainer.load_state(read_tensors(folder / OPTIMIZER))
    return progress
