"""Rollouts: many episodes at once, within bounds, each failure contained in its own trajectory."""

import asyncio
import traceback
from collections import Counter, deque
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import KW_ONLY, dataclass, field

from latih.core import (
    ContextFull,
    Env,
    ErrorRecord,
    Group,
    Harness,
    HarnessError,
    LatihError,
    Renderer,
    RolloutError,
    Sampler,
    StopReason,
    Trajectory,
    derive_seed,
)
from latih.rollout.episode import CLOSE_TIMEOUT, EnvEpisode
from latih.rollout.gate import Gate
from latih.rollout.model import BoundedSampler, RecordedModel
from latih.rollout.plan import GroupSpec
from latih.rollout.recorder import Recorder
from latih.rollout.script import Script
from latih.rollout.settings import RolloutSettings
from latih.rollout.threads import Threads

TEARDOWN = 3 * CLOSE_TIMEOUT
"""Seconds that stopping early waits for envs to close."""


class TooManyErrors(LatihError):
    """More trajectories failed than `max_error_fraction` allows. The message ends with the first traceback."""

    def __init__(self, message: str, first: ErrorRecord) -> None:
        super().__init__(message)
        self.first = first


@dataclass(eq=False)
class Rollouts:
    """Plays groups of episodes with one harness, one sampler and as many envs as `settings` allow.

    `dataclasses.replace` makes one that differs from another in a field.
    """

    settings: RolloutSettings
    make_env: Callable[[], Env]
    harness: Harness
    renderer: Renderer
    sampler: Sampler
    _: KW_ONLY
    env: str = "env"
    """The name under which trajectories and errors speak of the environment."""
    deterministic: bool = False
    """The sampler first forgets what was played before; then it gets model calls in whole batches, ordered by
    trajectory index (see `Gate`). So the same seed gives the same run, at the price of waiting for the slowest env."""
    script: str | None = None
    """The name of a scripted policy of the env, which then plays instead of the sampler (see `Script`)."""
    threads: Threads = field(default_factory=Threads, init=False)

    def run(self, specs: SequenceOf[GroupSpec], on_done: Callable[[Trajectory], None] | None = None) -> list[Group]:
        """`play`, for callers that have no event loop of their own."""
        return asyncio.run(self.play(specs, on_done))

    async def play(
        self, specs: SequenceOf[GroupSpec], on_done: Callable[[Trajectory], None] | None = None
    ) -> list[Group]:
        """Play every member of every group; `on_done` is told of each trajectory as it ends.

        Raises TooManyErrors as soon as it is certain; all envs are closed first.
        """
        jobs = deque((spec, spec.first + i) for spec in specs for i in range(spec.size))
        table = _Table(len(jobs), self.settings.max_error_fraction, on_done)
        sampler = BoundedSampler(self.sampler, self.settings.max_model_calls, self.settings.model_timeout)
        gate = Gate(sampler, self.settings.max_model_calls) if self.deterministic else None
        if self.deterministic:
            self.sampler.forget()

        async def work() -> None:
            while jobs:
                spec, index = jobs.popleft()
                if gate is None:
                    table.add(await self._play(spec, index, sampler))
                    continue
                gate.enter(index)
                try:
                    table.add(await self._play(spec, index, gate.seat(index)))
                finally:
                    gate.leave(index)

        workers = [asyncio.create_task(work()) for _ in range(min(self.settings.max_envs, len(jobs)))]
        try:
            for worker in asyncio.as_completed(workers):
                await worker
        finally:
            for task in workers:
                task.cancel()
            if any(not task.done() for task in workers):
                await asyncio.wait(workers, timeout=TEARDOWN)
            for task in workers:
                if task.done() and not task.cancelled():
                    task.exception()  # seen: the first one is being raised already
            if gate is not None:
                gate.close()
            self.threads.close()
        return [
            Group(id=spec.id, trajectories=[table.done[spec.first + i] for i in range(spec.size)]) for spec in specs
        ]

    async def _play(self, spec: GroupSpec, index: int, sampler: Sampler) -> Trajectory:
        """One episode. Whatever fails in it is in its trajectory; only cancellation passes."""
        recorder = Recorder(self.renderer, name=f"{spec.id}/{index}")
        seeds = derive_seed(spec.sampling_seed, index)
        model = RecordedModel(recorder, sampler, self.settings.sampling, lambda call: derive_seed(seeds, call))
        episode = EnvEpisode(
            self.make_env,
            model,
            self.threads,
            name=self.env,
            seed=spec.seed,
            task=spec.task,
            max_turns=self.settings.max_turns,
            step_timeout=self.settings.step_timeout,
        )
        if self.script is not None:
            model.sampler = Script(episode, self.script, self.renderer, sampler.context_length)
        error: RolloutError | None = None
        try:
            try:
                await self._drive(episode)
            finally:
                model.closed = True
                await episode.close()
        except ContextFull as exc:
            if recorder.last is None:  # the first prompt: nothing of it is the policy's doing
                error = exc
            episode.finish(StopReason.CONTEXT)
        except RolloutError as exc:
            error = exc
        error = episode.fault or error
        return Trajectory(
            env=self.env,
            seed=spec.seed,
            index=index,
            group=spec.id,
            task=spec.task,
            sequences=recorder.sequences,
            reward=episode.reward,
            metrics=episode.metrics,
            # A harness that returns before the env is over has stopped by itself.
            stop_reason=StopReason.ERROR if error else episode.stop_reason or StopReason.STOP,
            error=_record(error) if error else None,
        )

    async def _drive(self, episode: EnvEpisode) -> None:
        limit, who = self.settings.episode_timeout, type(self.harness).__name__
        waited: list[str] = []
        # Asked just before the deadline cancels the wait, after which nobody knows any more.
        watch = asyncio.get_running_loop().call_later(limit, lambda: waited.append(episode.waits_for))
        try:
            async with asyncio.timeout(limit) as deadline:
                await self.harness.play(episode)
        except RolloutError:
            raise
        except Exception as exc:
            if not deadline.expired():
                raise HarnessError(f"harness {who} raised {type(exc).__name__}: {exc}") from exc
            error = HarnessError(f"harness {who} did not end within {limit:g} s: it waited for {waited[0]}")
            error.hung = True
            raise error from None
        finally:
            watch.cancel()
        if not episode.done and episode.model.fault is not None:  # the harness swallowed it and gave up
            raise episode.model.fault
        if episode.model.recorder.last is None:
            raise HarnessError(f"harness {who} returned without a single model call")


class _Table:
    """The trajectories of one `play`, and how many of them failed."""

    def __init__(self, total: int, max_fraction: float, on_done: Callable[[Trajectory], None] | None) -> None:
        self.done: dict[int, Trajectory] = {}
        self.total = total
        self.max_fraction = max_fraction
        self.on_done = on_done
        self.failed: list[tuple[Trajectory, ErrorRecord]] = []

    def add(self, trajectory: Trajectory) -> None:
        """Count a trajectory. Raises TooManyErrors."""
        self.done[trajectory.index] = trajectory
        if self.on_done is not None:
            self.on_done(trajectory)
        if trajectory.error is None:
            return
        self.failed.append((trajectory, trajectory.error))
        if len(self.failed) > self.max_fraction * self.total:
            (first, error), counts = self.failed[0], Counter(each.kind for _, each in self.failed)
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
            raise TooManyErrors(
                f"{len(self.failed)} of {self.total} episodes failed ({kinds}), more than rollout.max_error_fraction="
                f"{self.max_fraction:g} allows; the first, {first.group} trajectory {first.index}: {error.message}"
                f"\n{error.traceback}".rstrip(),
                error,
            )


def _record(error: RolloutError) -> ErrorRecord:
    told = isinstance(error, ContextFull) or isinstance(error.__cause__, LatihError)
    return ErrorRecord(
        kind=error.kind,
        message=str(error),
        # What a user can mend is told in one line; where in latih it was found helps nobody.
        traceback="" if told else "".join(traceback.format_exception(error)),
        hung=error.hung,
    )
