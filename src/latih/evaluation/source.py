"""What a policy is loaded from: a run, one of its checkpoints, or a model that nobody trained here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from latih.core import LatihError
from latih.runs import Run, read_marker
from latih.runs.run import CONFIG


@dataclass(frozen=True)
class Source:
    """Where a policy's weights and settings are."""

    model: str
    """The base model: a path or a name that `resolve_model` knows."""
    checkpoint: Path | None = None
    """What training made of it."""
    run: Path | None = None
    config: dict[str, Any] = field(default_factory=dict)
    """The run's resolved configuration."""

    @property
    def version(self) -> int:
        """The policy version that the checkpoint holds."""
        marker = read_marker(self.checkpoint) if self.checkpoint else None
        return int((marker or {}).get("info", {}).get("version", 0))

    def __str__(self) -> str:
        return str(self.checkpoint or self.model)


def find_source(path: str | Path, runs: str | Path = "runs") -> Source:
    """Tell a run (by path, or by name in `runs`) from a checkpoint and a model.

    A run gives its last whole checkpoint. Raises LatihError where a run has none, or a checkpoint is half-written or
    stands outside its run.
    """
    where = Path(path)
    if where.is_dir() and where.parent.name == "checkpoints":
        run = where.parent.parent
        if read_marker(where) is None:
            raise LatihError(f"{where} is no whole checkpoint: it was cut short; use another of {where.parent}")
        if not (run / CONFIG).is_file():
            raise LatihError(f"{where} stands outside its run: {run / CONFIG} is missing, which names the base model")
        return _of_run(Run.open(run), where)
    for folder in (where, Path(runs) / where):
        if (folder / CONFIG).is_file():
            opened = Run.open(folder)
            last = opened.checkpoints().last()
            if last is None:
                raise LatihError(f"run {folder} has no whole checkpoint yet: resume it with `latih train --resume`")
            return _of_run(opened, last)
    return Source(model=str(path))


def _of_run(run: Run, checkpoint: Path) -> Source:
    try:
        model = run.config["trainer"]["policy"]["model"]["path"]
    except (KeyError, TypeError):
        raise LatihError(f"{run.folder / CONFIG} names no trainer.policy.model.path: it is damaged") from None
    return Source(model=str(model), checkpoint=checkpoint, run=run.folder, config=run.config)
