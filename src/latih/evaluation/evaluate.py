"""Evaluate: the training's own rollouts, on seeds that it never sees."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from latih.core import Task, Trajectory
from latih.data import write_trajectories
from latih.evaluation.result import EPISODES, EvalResult, estimate
from latih.evaluation.settings import EvaluationSettings
from latih.rollout import Rollouts, plan


async def evaluate(
    rollouts: Rollouts,
    settings: EvaluationSettings,
    *,
    label: str,
    tasks: Sequence[Task] = (),
    data: str = "",
    folder: Path | None = None,
    policy: str = "",
    on_done: Callable[[Trajectory], None] | None = None,
) -> EvalResult:
    """Play `settings.episodes` held-out episodes through `rollouts` and measure them.

    Where there are `tasks`, the rows of the data set `data`, each is played once at most. With `folder`, every episode
    goes to `episodes.parquet` there and the result to `eval.json`. Raises LatihError where more episodes fail than
    `rollout.max_error_fraction` allows, or nothing can be measured.
    """
    start = time.perf_counter()
    sampling = rollouts.settings.sampling
    if settings.temperature is not None:
        sampling = sampling.model_copy(update={"temperature": settings.temperature})
    player = replace(rollouts, settings=rollouts.settings.model_copy(update={"sampling": sampling}))
    version = rollouts.sampler.policy_version
    specs = plan(settings.seed, "eval", 0, groups=settings.count(tasks), tasks=tasks)
    groups = await player.play(specs, on_done)
    trajectories = [each for group in groups for each in group.trajectories]
    result = EvalResult(
        label=label,
        policy=policy,
        policy_version=version,
        env=rollouts.env,
        data=data,
        seed=settings.seed,
        sampling=player.settings.sampling,
        max_turns=player.settings.max_turns,
        seconds=time.perf_counter() - start,
        **estimate(trajectories),
    )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_trajectories(folder / EPISODES, trajectories)
        result.save(folder)
    return result
