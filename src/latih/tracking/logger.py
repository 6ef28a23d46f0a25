"""The seam for loggers: what one is given, what it does, and where it is registered."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from latih.core import ConfigError, Registry
from latih.core.pip import extra
from latih.tracking.settings import TrackingSettings


@dataclass(frozen=True)
class RunInfo:
    """What a logger may want to know of its run."""

    folder: Path
    settings: TrackingSettings
    config: Mapping[str, Any] = field(default_factory=dict)
    """The resolved configuration."""
    resumed: int | None = None
    """The step that the run goes on from: anything logged past it is void. None for a new run."""


class Logger(Protocol):
    """Takes the numbers of each step somewhere. The numbers are final: a logger never averages or sums."""

    def log(self, step: int, metrics: Mapping[str, float], axis: str | None = None) -> None:
        """`axis`: which of the metrics the others are drawn over, where that is not the training step."""
        ...

    def close(self) -> None: ...


loggers = Registry[Callable[[RunInfo], Logger]]("logger")


def find_loggers(settings: TrackingSettings) -> dict[str, Callable[[RunInfo], Logger]]:
    """The makers of the loggers that the settings name, `jsonl` always among them. Raises ConfigError."""
    importlib.import_module("latih.tracking.writers")  # those that come with latih register themselves
    return {name: loggers.get(name) for name in dict.fromkeys(["jsonl", *settings.loggers])}


def missing(package: str) -> ConfigError:
    """The error of a logger whose package is not installed; the extra has the package's name."""
    return ConfigError(
        f"logger {package!r} needs a package that is not installed: {extra(package)}, or leave it out "
        "of tracking.loggers"
    )
