"""Setting up: the parts that a config asks for, wired together."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from latih.core.seeds import derive_seed
from latih.inference.engine import Engine
from latih.models.chat import Renderer
from latih.models.policy import Policy
from latih.models.source import resolve_model
from latih.models.tokenizer import Tokenizer
from latih.rollout import Rollouts, TaskSets, env_seed, load_tasks, trying_out
from latih.tracking import Events, named_progress
from latih.train.config import Config
from latih.train.roles import MAIN, Cast, Side, make_cast
from latih.train.trainer import PolicyTrainer


@dataclass(frozen=True)
class Parts:
    """What the loop works with."""

    cast: Cast
    tasks: TaskSets


@contextmanager
def parts(config: Config, events: Events, tasks: TaskSets | None = None) -> Iterator[Parts]:
    """Load the model and start the engine, which stops at the end of the block. `tasks`: what `try_out` gave already.

    Raises ConfigError for an env, harness, player, dial or device that is not there, LatihError for data that is
    missing or not what the env needs, ModelError for a model that is missing or broken.
    """
    tasks = try_out(config) if tasks is None else tasks
    settings = config.trainer.policy
    with named_progress(events) as progress:
        folder = resolve_model(settings.model.path, progress)
    tokenizer = Tokenizer.from_folder(folder)
    renderer = Renderer.from_folder(folder, tokenizer)
    with ExitStack() as stack:

        def side(name: str = MAIN) -> Side:
            policy = Policy.load(
                folder,
                lora=settings.lora,
                dtype=settings.model.dtype,
                device=settings.model.device,
                seed=derive_seed(config.seed, "side", name) if name else config.seed,
            )
            engine = stack.enter_context(Engine(policy, tokenizer.decode, config.inference))
            return Side(policy, engine, PolicyTrainer(policy, config.trainer, config.seed))

        main = side()
        rollouts = Rollouts(
            config.rollout,
            config.env.make_training,
            config.harness.make(),
            renderer,
            main.engine,
            env=config.env.id,
            deterministic=config.deterministic,
        )
        yield Parts(make_cast(config, rollouts, main, side, stack), tasks)


def try_out(config: Config) -> TaskSets:
    """Make the harness and the env, as evaluated and as trained on; read the data and reset each with a task of its
    own; ask the warm start's policy once. All before anything long begins. The data is handed back.

    Raises ConfigError for what is not there, LatihError where the env or the data fails.
    """
    config.harness.make()
    warm_start = config.trainer.warm_start
    with trying_out(config.env.id), closing(config.env.make()) as evaluated, closing(config.env.make_training()) as env:
        tasks = load_tasks(config.data, env, evaluated)
        for world, rows in ((evaluated, tasks.eval), (env, tasks.train)):
            options = {"task": rows[0]} if rows else None
            world.reset(seed=env_seed(config.seed, "warm_start", 0, 0), options=options)
        if warm_start is not None:
            bare: Any = getattr(env, "unwrapped", env)
            bare.scripted(warm_start.policy, random.Random(0))
    return tasks
