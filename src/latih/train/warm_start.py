"""Warm start: supervised steps on episodes that a scripted policy plays, so that RL has something to improve.

The environment knows what is legal, so it is its own source of data: play that is legal but aimless teaches the form
of a reply and nothing of how to win.
"""

import time
from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import replace

from latih.core.trajectories import Sequence, Task
from latih.rollout import Rollouts, plan
from latih.train.settings import WarmStartSettings
from latih.train.trainer import PolicyTrainer


def demonstrations(
    rollouts: Rollouts, policy: str, seed: int, step: int, games: int, tasks: SequenceOf[Task] = ()
) -> list[Sequence]:
    """The episodes of warm-start step `step`, played and recorded as any rollout, but by the env's scripted policy.

    Raises TooManyErrors.
    """
    groups = replace(rollouts, script=policy).run(plan(seed, "warm_start", step, groups=games, tasks=tasks))
    return [sequence for group in groups for each in group.valid for sequence in each.sequences]


def warm_start(
    trainer: PolicyTrainer, rollouts: Rollouts, settings: WarmStartSettings, tasks: SequenceOf[Task] = ()
) -> Iterator[dict[str, float]]:
    """Make the steps, each on new games; yields the metrics of each. RL begins with a fresh optimizer."""
    for step in range(1, settings.steps + 1):
        start = time.perf_counter()
        data = demonstrations(rollouts, settings.policy, trainer.seed, step, settings.games, tasks)
        metrics = trainer.supervised_step(data, settings.lr).metrics
        seconds = time.perf_counter() - start
        yield {"warm_start/step": step, "warm_start/seconds": seconds} | {
            f"warm_start/{name}": value for name, value in metrics.items()
        }
    trainer.restart()
