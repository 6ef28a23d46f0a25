"""Evaluate: the training's own rollouts, on seeds that it never sees."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from latih.core import Task, Trajectory
from latih.core.files import need_writable, writing
from latih.data import write_trajectories
from latih.envs import EnvSettings
from latih.evaluation.result import EPISODES, EvalResult, estimate
from latih.evaluation.settings import EvaluationSettings
from latih.harnesses import HarnessSettings
from latih.rollout import Rollouts, plan
from latih.sandbox import unisolated


async def evaluate(
    rollouts: Rollouts | Sequence[Rollouts],
    settings: EvaluationSettings,
    *,
    label: str,
    tasks: Sequence[Task] = (),
    data: str = "",
    folder: Path | None = None,
    policy: str = "",
    env: EnvSettings | None = None,
    harness: HarnessSettings | None = None,
    on_done: Callable[[list[Trajectory]], None] | None = None,
) -> EvalResult:
    """Play `settings.episodes` held-out episodes and measure them; the same episodes by each of `rollouts`.

    Where there are `tasks`, the rows of the data set `data`, each is played once at most. `env` and `harness` are the
    settings that `rollouts` was made by, for the record. With `folder`, every episode goes to `episodes.parquet` there
    and the result to `eval.json`. Raises LatihError where more episodes fail than
    `rollout.max_error_fraction` allows, nothing can be measured, or nothing can be written to `folder`: that is told
    before anything is played, where it is known then.
    """
    if folder is not None:
        with writing("the evaluation", folder):
            need_writable(folder)
    start = time.perf_counter()
    seatings = [rollouts] if isinstance(rollouts, Rollouts) else rollouts
    first = seatings[0]
    sampling = first.settings.sampling
    if settings.temperature is not None:
        sampling = sampling.model_copy(update={"temperature": settings.temperature})
    dials = first.settings.model_copy(update={"sampling": sampling})
    version = first.sampler.policy_version
    specs = plan(settings.seed, "eval", 0, groups=settings.count(tasks), tasks=tasks)
    trajectories = []
    for seating in seatings:
        groups = await replace(seating, settings=dials).play(specs, on_done)
        trajectories += [each for group in groups for each in group.trajectories]
    result = EvalResult(
        label=label,
        policy=policy,
        policy_version=version,
        env=first.env,
        env_args=env.args if env else {},
        data=data,
        seed=settings.seed,
        harness=harness,
        sampling=dials.sampling,
        unisolated=unisolated(),
        max_turns=dials.max_turns,
        seconds=time.perf_counter() - start,
        **estimate(trajectories),
    )
    if folder is not None:
        write_trajectories(folder / EPISODES, trajectories)
        result.save(folder)
    return result
