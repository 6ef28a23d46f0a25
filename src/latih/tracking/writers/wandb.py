"""Metrics to Weights & Biases, online or in its offline files."""

import os
from collections.abc import Mapping
from typing import Any

from latih.tracking.logger import RunInfo, loggers, missing


@loggers.register("wandb")
class WandbLogger:
    """One W&B run per folder name; a resumed run continues it.

    W&B cannot take steps back: of steps that were cut and made again, it keeps what it saw first where it is online.
    """

    def __init__(self, info: RunInfo) -> None:
        try:
            import wandb
        except ImportError:
            raise missing("wandb") from None
        settings = info.settings
        self._run: Any = wandb.init(
            project=settings.project,
            entity=settings.entity,
            tags=settings.tags,
            name=info.folder.name,
            id=info.folder.name,
            dir=str(info.folder),
            config=dict(info.config),
            mode=_mode(settings.mode),
            resume="allow" if info.resumed is not None else None,
            settings=wandb.Settings(silent=True, console="off"),
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Queue the numbers; W&B's own process sends or stores them."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Wait until everything is sent or stored, and end W&B's process."""
        self._run.finish()


def _mode(setting: str) -> Any:
    if setting != "auto":
        return setting
    if said := os.environ.get("WANDB_MODE"):
        return said
    return "online" if os.environ.get("WANDB_API_KEY") else "offline"
