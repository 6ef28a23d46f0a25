"""Rollouts: many episodes at once, within bounds, each failure contained in its own trajectory."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

from latih.core import (
    AGENT,
    Env,
    ErrorRecord,
    Group,
    Harness,
    LatihError,
    Renderer,
    RolloutError,
    Sampler,
    Trajectory,
    derive_seed,
)
from latih.rollout.containment import contained, outcome
from latih.rollout.episode import EnvEpisode
from latih.rollout.gate import Gate
from latih.rollout.model import BoundedSampler, RecordedModel
from latih.rollout.plan import GroupSpec
from latih.rollout.recorder import Recorder
from latih.rollout.script import Script
from latih.rollout.seats import Player, RoleEpisode, Table
from latih.rollout.settings import RolloutSettings
from latih.rollout.threads import Threads
from latih.rollout.world import CLOSE_TIMEOUT, World

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
    players: Mapping[str, Player] = field(default_factory=dict)
    """Who plays each role of an env that has several; empty for one that has not."""
    threads: Threads = field(default_factory=Threads, init=False)

    def run(
        self, specs: SequenceOf[GroupSpec], on_done: Callable[[list[Trajectory]], None] | None = None
    ) -> list[Group]:
        """`play`, for callers that have no event loop of their own."""
        return asyncio.run(self.play(specs, on_done))

    async def play(
        self, specs: SequenceOf[GroupSpec], on_done: Callable[[list[Trajectory]], None] | None = None
    ) -> list[Group]:
        """Play every member of every group; `on_done` is told of each episode's trajectories as it ends.

        Where there are roles, those of one role make a group: the roles of a GroupSpec follow each other.
        Raises TooManyErrors as soon as it is certain; all envs are closed first.
        """
        jobs = deque((spec, spec.first + i) for spec in specs for i in range(spec.size))
        count = _Count(len(jobs), self.settings.max_error_fraction, on_done)
        sampler = BoundedSampler(self.sampler, self.settings.max_model_calls, self.settings.model_timeout)
        samplers: dict[str, Sampler] = {
            role: sampler.beside(player.sampler) if player.sampler else sampler for role, player in self._players()
        }
        gate = Gate(self.settings.max_model_calls) if self.deterministic else None
        if gate is not None:
            for each in samplers.values():
                each.forget()

        async def work() -> None:
            while jobs:
                spec, index = jobs.popleft()
                if gate is None:
                    count.add(index, await self._play(spec, index, samplers))
                    continue
                gate.enter(index)
                try:
                    gated = {role: gate.gated(index, each) for role, each in samplers.items()}
                    count.add(index, await self._play(spec, index, gated))
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
        groups: dict[str, list[Trajectory]] = {}
        for spec in specs:
            for played in (played for i in range(spec.size) for played in count.done[spec.first + i]):
                groups.setdefault(played.group, []).append(played)
        return [Group(id=id, trajectories=trajectories) for id, trajectories in groups.items()]

    def _players(self) -> Iterable[tuple[str, Player]]:
        return self.players.items() or [(AGENT, Player())]

    async def _play(self, spec: GroupSpec, index: int, samplers: Mapping[str, Sampler]) -> list[Trajectory]:
        """One episode of every role. Whatever fails in it is in its trajectories; only cancellation passes."""
        world = World(self.make_env, self.threads, name=self.env, timeout=self.settings.step_timeout)
        episodes = self._seat(world, spec, index, samplers)
        limit = self.settings.episode_timeout
        try:
            errors = await asyncio.gather(*(contained(self.harness, each, limit) for each in episodes.values()))
        finally:
            with contextlib.suppress(RolloutError):  # it stays the world's fault
                await world.close()
        return [
            Trajectory(
                env=self.env,
                seed=spec.seed,
                index=index,
                group=spec.id if role == AGENT else f"{spec.id}/{role}",
                role=role,
                task=spec.task,
                **outcome(episode, error),
            )
            for (role, episode), error in zip(episodes.items(), errors, strict=True)
            if role not in self.players or self.players[role].learns
        ]

    def _seat(
        self, world: World, spec: GroupSpec, index: int, samplers: Mapping[str, Sampler]
    ) -> dict[str, EnvEpisode]:
        """The episodes of one game, by role, each with a model of its own."""
        seeds = derive_seed(spec.sampling_seed, index)
        table = Table(world, spec.seed, spec.task)
        episodes: dict[str, EnvEpisode] = {}
        for role, player in self._players():
            own = seeds if role == AGENT else derive_seed(seeds, role)
            renderer = player.renderer or self.renderer
            model = RecordedModel(
                Recorder(
                    renderer,
                    name=f"{spec.id}/{index}" if role == AGENT else f"{spec.id}/{index}/{role}",
                ),
                samplers[role],
                self.settings.sampling,
                partial(derive_seed, own),
            )
            bounds: dict[str, Any] = {"seed": spec.seed, "task": spec.task, "max_turns": self.settings.max_turns}
            episode = RoleEpisode(table, role, model, **bounds) if self.players else EnvEpisode(world, model, **bounds)
            if script := self.script or player.script:
                model.sampler = Script(episode, script, renderer, model.sampler.context_length)
            episodes[role] = episode
        return episodes


class _Count:
    """The trajectories of one `play` by their episode's index, and how many of them failed."""

    def __init__(self, total: int, max_fraction: float, on_done: Callable[[list[Trajectory]], None] | None) -> None:
        self.done: dict[int, list[Trajectory]] = {}
        self.total = total
        self.max_fraction = max_fraction
        self.on_done = on_done
        self.failed: list[tuple[Trajectory, ErrorRecord]] = []

    def add(self, index: int, trajectories: list[Trajectory]) -> None:
        """Count the trajectories of an episode, one for each role that learns. Raises TooManyErrors."""
        self.done[index] = trajectories
        if self.on_done is not None:
            self.on_done(trajectories)
        self.failed += [(each, each.error) for each in trajectories if each.error is not None]
        total = self.total * len(trajectories)
        if len(self.failed) > self.max_fraction * total:
            (first, error), counts = self.failed[0], Counter(each.kind for _, each in self.failed)
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
            raise TooManyErrors(
                f"{len(self.failed)} of {total} episodes failed ({kinds}), more than rollout.max_error_fraction="
                f"{self.max_fraction:g} allows; the first, {first.group} trajectory {first.index}: {error.message}"
                f"\n{error.traceback}".rstrip(),
                error,
            )
