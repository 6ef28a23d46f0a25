"""Warm start: supervised steps on episodes that a scripted policy plays, so that RL has something to improve.

The environment knows what is legal, so it is its own source of data: play that is legal but aimless teaches the form
of a reply and nothing of how to win.
"""

import time
from collections.abc import Callable, Iterator
from typing import cast

from latih.core.protocols import Env
from latih.core.trajectories import Sequence
from latih.envs import MessageEnv, demonstrate, episode_seed
from latih.models.chat import Renderer
from latih.train.settings import WarmStartSettings
from latih.train.trainer import PolicyTrainer


def demonstrations(env: Env, renderer: Renderer, policy: str, seed: int, first: int, count: int) -> list[Sequence]:
    """Episodes `first` to `first + count - 1` of the warm start, rendered as the recorder would have recorded them.

    Raises ConfigError where the env has no such scripted policy.
    """
    episodes = (
        demonstrate(cast(MessageEnv, env), policy, episode_seed(seed, "warm_start", first + i)) for i in range(count)
    )
    return [renderer.demonstrate(each.messages, env.tools) for each in episodes]


def warm_start(
    trainer: PolicyTrainer, make_env: Callable[[], Env], renderer: Renderer, settings: WarmStartSettings
) -> Iterator[dict[str, float]]:
    """Make the steps, each on new games; yields the metrics of each. RL begins with a fresh optimizer."""
    env = make_env()
    try:
        for step in range(settings.steps):
            start = time.perf_counter()
            data = demonstrations(env, renderer, settings.policy, trainer.seed, step * settings.games, settings.games)
            metrics = trainer.supervised_step(data, settings.lr).metrics
            seconds = time.perf_counter() - start
            yield {"warm_start/step": step + 1, "warm_start/seconds": seconds} | {
                f"warm_start/{name}": value for name, value in metrics.items()
            }
    finally:
        env.close()
    trainer.restart()
