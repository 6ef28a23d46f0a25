"""From the words of a command to a run's configuration."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latih.core import ConfigError
from latih.envs.registry import canonical
from latih.evaluation import Source
from latih.runs import Run
from latih.train.config import Config, load_plugins, resolve, validate
from latih.train.overrides import override


def runs_folder(overrides: Sequence[str]) -> Path:
    """Where runs are looked for: `run.folder=…`, or `runs`."""
    given = [each.partition("=")[2] for each in overrides if each.partition("=")[0].strip() == "run.folder"]
    return Path(given[-1] if given else "runs")


def resumed_config(run: Run, overrides: Sequence[str]) -> Config:
    """The configuration of an earlier run with changes. Raises ConfigError."""
    return validate(override(run.config, overrides))


def with_episodes(overrides: Sequence[str], episodes: int | None) -> list[str]:
    """The overrides, and that of `--episodes` where it was given. Raises ConfigError."""
    if episodes is not None and episodes < 1:
        raise ConfigError(f"--episodes {episodes}: give 1 or more")
    return [*overrides] if episodes is None else [*overrides, f"evaluation.episodes={episodes}"]


def eval_config(source: Source, env: str, overrides: Sequence[str]) -> Config:
    """How a policy is evaluated on an env: as it was trained there, or else as the env's recipe says.

    Raises ConfigError.
    """
    load_plugins(source.config)  # the run's own, which may have registered the env
    load_plugins(override({}, overrides))
    asked = resolve(env)
    if source.config:
        tree = dict(source.config)
        if canonical(str(_env_id(tree))) != canonical(asked.env.id):  # how another env is played is that env's affair
            tree |= {name: asked.as_dict()[name] for name in ("env", "data", "roles", "harness", "rollout")}
    else:
        tree = override(asked.as_dict(), [])
        tree["trainer"]["policy"]["model"]["path"] = source.model
    return validate(override(tree, overrides))


def _env_id(tree: dict[str, Any]) -> Any:
    env = tree.get("env")
    return env.get("id") if isinstance(env, dict) else None
