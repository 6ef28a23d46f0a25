"""Tasks from the data sets that the settings name, checked by the env that is to play them."""

from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from latih.core import ConfigError, Env, LatihError, Task, first_line
from latih.data import DataSettings, read_tasks
from latih.data.to_json import to_json
from latih.envs import EnvSettings
from latih.rollout.plan import env_seed


@dataclass(frozen=True)
class TaskSets:
    """The rows to train and to evaluate on; none where the env makes up its own tasks."""

    train: SequenceOf[Task] = ()
    eval: SequenceOf[Task] = ()


def load_tasks(settings: DataSettings, env: Env, evaluated: Env | None = None) -> TaskSets:
    """Both data sets; `evaluated` is the env that plays the held-out one, where its dials differ from `env`'s.

    Raises LatihError as `read_rows` does, and where a row stands in both.
    """
    sets = TaskSets(read_rows(settings, settings.train, env), read_rows(settings, settings.eval, evaluated or env))
    known = {_content(task): task.id for task in sets.train}
    for task in sets.eval:
        if (trained := known.get(_content(task))) is not None:
            raise LatihError(f"row {task.id} of data.eval is row {trained} of data.train, too: leave it out of one")
    return sets


def held_out(settings: DataSettings, env: EnvSettings, seed: int) -> list[Task]:
    """The rows to evaluate on; none where the env makes up its own tasks. The env is reset once, with the first.

    Raises LatihError as `load_tasks` does, and where the env lacks what it needs: once, and not in every episode.
    """
    with trying_out(env.id), closing(env.make()) as world, closing(env.make_training()) as trained:
        tasks = list(load_tasks(settings, trained, world).eval)
        world.reset(seed=env_seed(seed, "eval", 0, 0), options={"task": tasks[0]} if tasks else None)
    return tasks


def read_rows(settings: DataSettings, source: str | None, env: Env) -> list[Task]:
    """The rows of one data set; none where it is not set.

    Raises LatihError where the files are missing, broken or empty, or where a row is none that the env can play.
    """
    if source is None:
        return []
    bare: Any = getattr(env, "unwrapped", env)
    columns, name = getattr(bare, "columns", ()), type(bare).__name__
    if not columns:
        raise ConfigError(f"{name} takes no tasks, so data has no use: leave {source} out, or declare its `columns`")
    tasks = read_tasks(source, columns, settings.columns)
    if not tasks:
        raise LatihError(f"{source} holds no rows")
    for task in tasks:
        try:
            bare.check_task(task)
        except ValueError as exc:
            raise LatihError(f"{source}, row {task.id}: {first_line(exc)}") from exc
    return tasks


@contextmanager
def trying_out(env: str) -> Iterator[None]:
    """For what is asked of an env before its first episode: whatever it raises becomes a LatihError of one line."""
    try:
        yield
    except LatihError:
        raise
    except Exception as exc:
        raise LatihError(f"environment {env} fails: {type(exc).__name__}: {exc}") from exc


def _content(task: Task) -> str:
    return to_json(task.model_dump(exclude={"id"}, exclude_none=True), sort_keys=True)
