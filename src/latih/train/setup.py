"""Setting up: the parts that a config asks for, wired together."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from latih.core.errors import LatihError
from latih.inference.engine import Engine
from latih.models.chat import Renderer
from latih.models.policy import Policy
from latih.models.source import resolve_model
from latih.models.tokenizer import Tokenizer
from latih.rollout import Rollouts, TaskSets, env_seed, load_tasks
from latih.tracking import Events, named_progress
from latih.train.config import Config
from latih.train.trainer import PolicyTrainer


@dataclass(frozen=True)
class Parts:
    """What the loop works with."""

    policy: Policy
    rollouts: Rollouts
    trainer: PolicyTrainer
    tasks: TaskSets


@contextmanager
def parts(config: Config, events: Events) -> Iterator[Parts]:
    """Load the model and start the engine, which stops at the end of the block.

    Raises ConfigError for an env, harness, dial or device that is not there, LatihError for data that is missing or
    not what the env needs, ModelError for a model that is missing or broken.
    """
    tasks = try_out(config)
    settings = config.trainer.policy
    with named_progress(events) as progress:
        folder = resolve_model(settings.model.path, progress)
    tokenizer = Tokenizer.from_folder(folder)
    renderer = Renderer.from_folder(folder, tokenizer)
    policy = Policy.load(
        folder, lora=settings.lora, dtype=settings.model.dtype, device=settings.model.device, seed=config.seed
    )
    with Engine(policy, tokenizer.decode, config.inference) as engine:
        rollouts = Rollouts(
            config.rollout,
            config.env.make,
            config.harness.make(),
            renderer,
            engine,
            env=config.env.id,
            deterministic=config.deterministic,
        )
        trainer = PolicyTrainer(policy, config.trainer, config.seed)
        yield Parts(policy, rollouts, trainer, tasks)


def try_out(config: Config) -> TaskSets:
    """Make the harness and the env, read the data, reset the env with a task of each set, and ask the warm start's
    policy once, before anything long begins. The data is handed back.

    Raises ConfigError for what is not there, LatihError where the env or the data fails.
    """
    config.harness.make()
    env, warm_start = config.env.make(), config.trainer.warm_start
    bare: Any = getattr(env, "unwrapped", env)
    try:
        tasks = load_tasks(config.data, env)
        for each in (tasks.eval, tasks.train):
            options = {"task": each[0]} if each else None
            env.reset(seed=env_seed(config.seed, "warm_start", 0, 0), options=options)
        if warm_start is not None:
            bare.scripted(warm_start.policy, random.Random(0))
        return tasks
    except LatihError:
        raise
    except Exception as exc:
        raise LatihError(f"environment {config.env.id} fails: {type(exc).__name__}: {exc}") from exc
    finally:
        env.close()
