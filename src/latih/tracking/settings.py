"""Settings of the loggers."""

from typing import Literal

from latih.core.schema import Record


class TrackingSettings(Record):
    """Where metrics go, besides the screen."""

    loggers: list[str] = ["jsonl"]
    """Any of jsonl, tensorboard, wandb, and what other modules registered. `jsonl` is the run's own record, which
    resuming and retention read: it is always written, named or not."""
    project: str = "latih"
    """Of Weights & Biases."""
    entity: str | None = None
    """Of Weights & Biases: the team or user; None is the account's default."""
    tags: list[str] = []
    """Of Weights & Biases."""
    mode: Literal["auto", "online", "offline"] = "auto"
    """Of Weights & Biases. Offline needs no account and keeps its files in the run folder, to be sent later with
    `wandb sync`; auto is online where WANDB_MODE or WANDB_API_KEY says so, and offline otherwise."""
