"""A run: the folder that holds everything one training made."""

import datetime
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

import yaml

from latih.core import ConfigError, LatihError, first_line, nearest
from latih.core.files import writing
from latih.runs.checkpoints import Checkpoints, step_name
from latih.runs.files import sweep, write_text
from latih.runs.lock import RunLock
from latih.runs.metrics import Row, cut_metrics, read_metrics
from latih.runs.settings import RunSettings

CONFIG = "config.yaml"
EVALUATIONS = "evaluations"


class Run:
    """`<folder>/` with config.yaml, metrics.jsonl, trajectories/, checkpoints/, report.md and reward.png.

    Made by `create` (a new one, locked for writing) or `open` (an earlier one, locked where `write` is asked for).
    """

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.folder = folder
        self.config = config
        """The resolved configuration, as saved."""
        self._lock = RunLock(folder)

    @classmethod
    def create(cls, settings: RunSettings, config: dict[str, Any], target: str = "run") -> "Run":
        """Make the folder, lock it and save the resolved config. Raises ConfigError where the name is taken."""
        name = settings.name or default_name(target)
        folder = Path(settings.folder) / name
        with writing("a run", folder.parent):
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.mkdir()
            except FileExistsError:
                raise ConfigError(
                    f"run {folder} exists: resume it with `latih train --resume {name}`, or choose another run.name"
                ) from None
        run = cls(folder, config)
        run._lock.acquire()
        run.save_config(config)
        return run

    @classmethod
    def open(cls, which: str | Path | None = None, folder: str | Path = "runs", *, write: bool = False) -> "Run":
        """An earlier run, by path or by its name in `folder`; None is the latest. Raises LatihError.

        `write` locks it and clears what a killed process left half-written.
        """
        path = find_run(which, Path(folder))
        try:
            config = yaml.safe_load((path / CONFIG).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
            raise LatihError(f"cannot read {path / CONFIG}: {first_line(exc)}") from exc
        if not isinstance(config, dict):
            raise LatihError(f"{path / CONFIG} is damaged: it holds no mapping")
        run = cls(path, config)
        if write:
            run._lock.acquire()
            run.checkpoints().sweep()
            run.pool().sweep()
            for each in (path, path / "trajectories", *(path / EVALUATIONS).glob("step-*")):
                sweep(each)
        return run

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.folder.name

    def save_config(self, config: dict[str, Any]) -> None:
        """Write config.yaml. Raises LatihError."""
        self.config = config
        self.write(CONFIG, yaml.safe_dump(config, sort_keys=False, allow_unicode=True))

    @property
    def metrics_path(self) -> Path:
        """One JSON object per line, each with its `step`."""
        return self.folder / "metrics.jsonl"

    def metrics(self) -> list[Row]:
        """The rows of metrics.jsonl."""
        return read_metrics(self.metrics_path)

    def trajectories_path(self, step: int) -> Path:
        """Where the trajectories of a step go; the folder exists."""
        with writing("trajectories", self.folder):
            (self.folder / "trajectories").mkdir(exist_ok=True)
        return self.folder / "trajectories" / f"{step_name(step)}.parquet"

    def checkpoints(self, keep: int = 2, best: str | None = "reward") -> Checkpoints:
        """The run's checkpoints, under a retention rule."""
        return Checkpoints(self.folder / "checkpoints", self.metrics_path, keep, best)

    def pool(self, keep: int = 1) -> Checkpoints:
        """Earlier versions of the policy, for its later ones to play against; the latest `keep` stay."""
        return Checkpoints(self.folder / "pool", self.metrics_path, keep, None)

    def cut(self, step: int) -> None:
        """Forget everything past `step`: metrics, trajectories, checkpoints, evaluations.

        What a resumed run begins with.
        """
        for checkpoints in (self.checkpoints(), self.pool()):
            for later in checkpoints.steps():  # first, so that a crash here cannot resume past what is cut below
                if later > step:
                    checkpoints.delete(later)
        cut_metrics(self.metrics_path, step)
        for path in (self.folder / "trajectories").glob("*-*.parquet"):
            number = path.stem.rpartition("-")[2]
            if number.isdecimal() and int(number) > step:
                path.unlink()
        for path in (self.folder / EVALUATIONS).glob("step-*"):  # those made by hand are of a checkpoint that was
            number = path.name.split("-")[1]
            if number.isdecimal() and int(number) > step:
                shutil.rmtree(path)

    def write(self, name: str, text: str) -> Path:
        """Write a text file of the run, such as report.md, whole or not at all. Raises LatihError."""
        with writing(name, self.folder):
            write_text(self.folder / name, text)
        return self.folder / name

    def close(self) -> None:
        """Unlock the run."""
        self._lock.release()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def default_name(target: str) -> str:
    """The target, the date and four random letters: `tic_tac_toe-20260131-1a2b`."""
    slug = re.sub(r"[^\w.+-]+", "-", Path(target).name).strip("-.") or "run"
    return f"{slug}-{datetime.date.today():%Y%m%d}-{secrets.token_hex(2)}"


def find_run(which: str | Path | None, folder: Path) -> Path:
    """The folder of a run by path or name; None finds the one whose config was written last. Raises LatihError."""
    known = {each.parent.name: each for each in folder.glob(f"*/{CONFIG}")}
    if which is None:
        if not known:
            raise LatihError(f"there is no run in {folder}: start one with `latih train`, or name its folder")
        return max(known.values(), key=lambda config: config.stat().st_mtime_ns).parent
    for path in (folder / which, Path(which)):
        if (path / CONFIG).is_file():
            return path
    raise LatihError(f"there is no run {str(which)!r} in {folder}: {nearest(Path(which).name, known)}")
