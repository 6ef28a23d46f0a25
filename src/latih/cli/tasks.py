"""`latih tasks build`: the tasks of an environment that makes its own, into a file."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latih.core.errors import ConfigError, LatihError
from latih.core.plugins import build
from latih.data import write_tasks
from latih.envs import find
from latih.envs.registry import builtin_names
from latih.sandbox import unisolated
from latih.train.overrides import override


def build_command(env: str, out: str, count: int, packages: Sequence[str], overrides: Sequence[str]) -> int:
    """Build tasks and write them. An env offers it by a static method `build_tasks(count, ...)` that yields tasks.

    Raises LatihError: an env that offers none, wrong options, a file that cannot be written.
    """
    if Path(out).suffix not in (".parquet", ".jsonl"):
        raise LatihError(f"--out {out} is neither .parquet nor .jsonl: tasks are written to these")
    maker = getattr(find(env), "build_tasks", None)
    if maker is None:
        able = [name for name in builtin_names() if hasattr(find(name), "build_tasks")]
        raise ConfigError(f"{env} builds no tasks; these do: {', '.join(able)}")
    if count < 1:
        raise ConfigError(f"--count {count}: give 1 or more")
    if not Path(out).absolute().parent.is_dir():  # told now, and not after the work
        raise LatihError(f"no folder {Path(out).absolute().parent} for --out: make it first")
    args: dict[str, Any] = {"count": count, "progress": _tell} | ({"packages": packages} if packages else {})
    for key, value in override({}, overrides).items():
        if key in ("count", "packages", "progress"):
            raise ConfigError(f"{key}= is none of the generator's options: there are --count and --packages")
        args[key] = value
    if unisolated():
        _tell(f"warning: {unisolated()}")
    tasks = []
    try:
        for task in build(f"{env}.build_tasks", maker, args):
            tasks.append(task)
    finally:  # what was built before an interruption or a fault is kept
        if tasks:
            write_tasks(out, tasks)
    if not tasks:
        raise LatihError("no task came out: name other packages, or another seed=")
    made = f"{len(tasks)} task{'s' * (len(tasks) > 1)} in {out}"
    print(f"{made}: with another file to measure on, latih train {env} data.train={out} data.eval=OTHER")
    return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
