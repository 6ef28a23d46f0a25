"""Metrics to Weights & Biases, online or in its offline files."""

import os
from collections.abc import Mapping
from typing import Any

from latih.tracking.logger import RunInfo, loggers, missing


@loggers.register("wandb")
class WandbLogger:
    """One W&B run per folder name; a resumed run continues it.

    W&B's own step only counts the calls, since it can neither go back nor take two rows of one step: each metric is
    told over which other one it is drawn. Steps that were cut and made again are there twice.
    """

    def __init__(self, info: RunInfo) -> None:
        try:
            import wandb
        except ImportError:
            raise missing("wandb") from None
        settings = info.settings
        self._known: set[str] = set()
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

    def log(self, step: int, metrics: Mapping[str, float], axis: str | None = None) -> None:
        """Queue the numbers; W&B's own process sends or stores them."""
        for name in metrics.keys() - self._known - {axis}:
            self._run.define_metric(name, step_metric=axis or "step")
        self._known |= metrics.keys()
        self._run.log({"step": step, **metrics})

    def close(self) -> None:
        """Wait until everything is sent or stored, and end W&B's process."""
        self._run.finish()


def _mode(setting: str) -> Any:
    if setting != "auto":
        return setting
    if said := os.environ.get("WANDB_MODE"):
        return said
    return "online" if os.environ.get("WANDB_API_KEY") else "offline"
