"""Setting up: the parts that a config asks for, wired together."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from latih.core.errors import LatihError
from latih.inference.engine import Engine
from latih.models.chat import Renderer
from latih.models.policy import Policy
from latih.models.source import resolve_model
from latih.models.tokenizer import Tokenizer
from latih.rollout import Rollouts, env_seed
from latih.tracking import Events, named_progress
from latih.train.config import Config
from latih.train.trainer import PolicyTrainer


@dataclass(frozen=True)
class Parts:
    """What the loop works with."""

    policy: Policy
    rollouts: Rollouts
    held_out: Rollouts
    """The same for evaluations, in the env as it is without `env.training`."""
    trainer: PolicyTrainer


@contextmanager
def parts(config: Config, events: Events) -> Iterator[Parts]:
    """Load the model and start the engine, which stops at the end of the block.

    Raises ConfigError for an env, harness, dial or device that is not there, ModelError for a model that is missing or
    broken.
    """
    try_out(config)
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
            config.env.make_training,
            config.harness.make(),
            renderer,
            engine,
            env=config.env.id,
            deterministic=config.deterministic,
        )
        trainer = PolicyTrainer(policy, config.trainer, config.seed)
        yield Parts(policy, rollouts, replace(rollouts, make_env=config.env.make), trainer)


def try_out(config: Config) -> None:
    """Make the harness and the env, reset it, and ask the warm start's policy once, before anything long begins.

    Raises ConfigError for what is not there, LatihError where the env fails.
    """
    config.harness.make()
    config.env.make().close()
    env, warm_start = config.env.make_training(), config.trainer.warm_start
    bare: Any = getattr(env, "unwrapped", env)
    try:
        env.reset(seed=env_seed(config.seed, "warm_start", 0, 0))
        if warm_start is not None:
            bare.scripted(warm_start.policy, random.Random(0))
    except LatihError:
        raise
    except Exception as exc:
        raise LatihError(f"environment {config.env.id} fails: {type(exc).__name__}: {exc}") from exc
    finally:
        env.close()
