"""The loop: play groups, train on them, write down what happened. Reads from top to bottom as the plan's picture."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from latih.core.errors import LatihError
from latih.core.seeds import derive_seed
from latih.core.trajectories import Group
from latih.data import write_trajectories
from latih.evaluation import evaluate
from latih.models.checkpoint import save_checkpoint
from latih.rollout import PAST, TaskSets, constant_reward, plan
from latih.runs import Run, step_name
from latih.tracking import Events, RunInfo, Silent, Tracker
from latih.train.config import Config
from latih.train.metrics import step_metrics
from latih.train.setup import Parts, parts
from latih.train.warm_start import warm_start

BEFORE, WARM, AFTER = "before", "after warm start", "after RL"
FIRST_STEPS = 3
"""Steps in which a constant reward is warned of."""


def check_resume(config: Config, run: Run) -> None:
    """Raises LatihError where `config` asks of a run what its checkpoints cannot give."""
    done = max(run.checkpoints().steps(), default=None)
    if done is None:
        return
    if config.trainer.steps < done:
        raise LatihError(f"run {run.name} has made {done} steps: set trainer.steps to {done} or more, or train anew")
    past = [role for role, each in config.roles.items() if each.player == PAST]
    if past and not run.pool().steps():
        raise LatihError(
            f"run {run.name} kept no earlier versions for roles.{past[0]}={PAST}: train anew, with this from the start"
        )


def train(
    config: Config, run: Run, events: Events | None = None, *, resume: bool = False, tasks: TaskSets | None = None
) -> None:
    """Train as `config` says, in the folder of `run`; `resume` goes on from its last whole checkpoint.

    `tasks` are what `try_out` gave whoever has called it for this config already: nothing is tried and read again.

    Everything it finds goes into the run's folder and to `events`. Raises LatihError. KeyboardInterrupt passes through
    after the write in progress; the run can be resumed then.
    """
    events = events or Silent()
    settings, steps = config.trainer, config.trainer.steps
    if resume:
        check_resume(config, run)
    last = run.checkpoints().last() if resume else None
    with parts(config, events, tasks) as p:
        done = p.cast.read(last) if last else None
        if resume:
            run.cut(-1 if done is None else done)
        with _Writer(config, run, events, p, done) as writer:
            if done is None:
                writer.evaluate(BEFORE, 0)
                if settings.warm_start:
                    writer.warm_start()
                    writer.evaluate(WARM, 0)
                writer.save(0)
            for step in range((done or 0) + 1, steps + 1):
                seconds: dict[str, float] = {}
                with _timed(seconds, "step"):
                    with _timed(seconds, "rollout"):
                        p.cast.recall(run.pool(), settings.checkpoint.pool, derive_seed(config.seed, "past", step))
                        groups = _play(config, p, events, step)
                    with _timed(seconds, "train"):
                        result = p.cast.learn(groups)
                    with _timed(seconds, "write"):
                        writer.trajectories(step, groups)
                metrics = step_metrics(groups, result, seconds)
                writer.log(step, metrics)
                events.step(step, steps, metrics)
                if config.evaluation.every and step % config.evaluation.every == 0 and step < steps:
                    writer.evaluate(f"after step {step}", step)
                # last, so that a run that dies before it makes the whole step again
                if step % settings.checkpoint.every == 0 or step == steps:
                    writer.save(step)
            if steps and not writer.measured(steps):
                writer.evaluate(AFTER, steps)


def _play(config: Config, p: Parts, events: Events, step: int) -> list[Group]:
    """The groups of a step, played by the policy as it is now."""
    rollout = config.rollout
    specs = plan(config.seed, "train", step, groups=rollout.groups, size=rollout.group_size, tasks=p.tasks.train)
    with events.progress(f"step {step}: playing", rollout.groups * rollout.group_size) as advance:
        groups = p.cast.rollouts.run(specs, lambda _: advance(1))
    if step <= FIRST_STEPS and (warning := constant_reward(groups)):
        events.warn(warning)
    return groups


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - start


class _Writer:
    """What is written of a run: metrics, trajectories, checkpoints and evaluations."""

    def __init__(self, config: Config, run: Run, events: Events, p: Parts, done: int | None) -> None:
        self.config, self.run, self.events, self.parts = config, run, events, p
        self.tracker = Tracker(RunInfo(run.folder, config.tracking, config.as_dict(), done), events.warn)
        self.log = self.tracker.log

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *exc: object) -> None:
        self.tracker.close()

    def trajectories(self, step: int, groups: list[Group]) -> None:
        """Every trajectory of a step."""
        everyone = [each for group in groups for each in group.trajectories]
        write_trajectories(self.run.trajectories_path(step), everyone)

    def save(self, step: int) -> None:
        """A checkpoint, whole or not at all; old ones go."""
        settings, cast = self.config.trainer.checkpoint, self.parts.cast
        version = {"version": cast.main.policy.version}
        if cast.past is not None:  # first: a run that dies in between cuts what is past its last checkpoint
            # beside those to draw from, as many as there are checkpoints to resume from
            pool = self.run.pool(keep=settings.pool + settings.keep)
            pool.save(step, lambda folder: save_checkpoint(cast.main.policy, folder), version)
            pool.retain(lambda _: None)
        checkpoints = self.run.checkpoints(keep=settings.keep)
        checkpoints.save(step, lambda folder: cast.write(folder, step), version)
        checkpoints.retain(self.events.note)

    def warm_start(self) -> None:
        """Learn the form of a reply from scripted games."""
        settings = self.config.trainer.warm_start
        assert settings is not None
        with self.events.progress("warm start", settings.steps) as advance:
            for metrics in warm_start(self.parts.cast, settings, self.config.seed, self.parts.tasks.train):
                self.log(0, metrics, axis="warm_start/step")
                advance(1)

    def measured(self, step: int) -> bool:
        """Whether the policy was evaluated after `step`, as in a run that is resumed after its end."""
        return any(row["step"] == step and "eval/reward" in row for row in self.run.metrics())

    def evaluate(self, label: str, step: int) -> None:
        """Measure the policy on held-out episodes."""
        settings, tasks, seatings = self.config.evaluation, self.parts.tasks.eval, self.parts.cast.held_out
        folder = self.run.folder / "evaluations" / f"{step_name(step)}-{label.replace(' ', '-')}"
        with self.events.progress(f"evaluation {label}", settings.count(tasks) * len(seatings)) as advance:
            result = asyncio.run(
                evaluate(
                    seatings,
                    settings,
                    label=label,
                    tasks=tasks,
                    data=self.config.data.eval or "",
                    folder=folder,
                    policy=str(self.run.folder),
                    env=self.config.env,
                    harness=self.config.harness,
                    on_done=lambda _: advance(1),
                )
            )
        self.log(step, result.metrics)
