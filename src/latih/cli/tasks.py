"""`latih tasks build`: the tasks of an environment that makes its own, into a file."""

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from latih.core.errors import ConfigError, LatihError
from latih.core.plugins import build
from latih.data import write_tasks
from latih.envs import find
from latih.envs.registry import builtin_names


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
    options = dict(each.split("=", 1) for each in overrides)
    args = {key: yaml.safe_load(value) for key, value in options.items()} | ({"packages": packages} if packages else {})
    tasks = list(build(f"{env}.build_tasks", maker, {"count": count, "progress": _tell, **args}))
    if not tasks:
        raise LatihError("no task came out: name other packages, or another seed=")
    write_tasks(out, tasks)
    print(f"{len(tasks)} tasks in {out}: latih train {env} env.args.tasks={out}")
    return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
