"""Several roles in one world: each is an episode of its own, played by a harness that knows nothing of the others.

The world is a PettingZoo AEC env, in which one agent acts at a time. An episode that acts, or has not begun, waits at
the table until the world selects its role again, or the game is over.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from latih.core import HarnessError, Message, Renderer, RolloutError, Sampler, StopReason, Task, ToolSchema
from latih.rollout.answers import Nonsense, Outcome, checked_step
from latih.rollout.episode import EnvEpisode
from latih.rollout.model import RecordedModel
from latih.rollout.world import World


class Table:
    """Where the roles of one game meet: whose turn it is, and what each has not heard yet."""

    def __init__(self, world: World, seed: int, task: Task | None = None) -> None:
        self.world = world
        self.turn: str | None = None
        """The role that the world waits for."""
        self._options = None if task is None else {"task": task}
        self._seed = seed
        self._news: dict[str, Outcome] = {}
        self._left: tuple[str, RolloutError | None] | None = None
        self._changed = asyncio.Condition()
        self._begun = False
        self._over: set[str] = set()
        """The roles for which the world is over."""

    async def first(self, role: str) -> Outcome:
        """What `role` hears at its first turn. The first role that comes starts the world. Raises RolloutError."""
        async with self._changed:
            if not self._begun and self._left is None:
                self._begun = True  # whatever comes of it: no other role makes a second world
                env = await self.world.make()
                self._deliver(await self.world.call("reset()", lambda: self._start(env)))
            return await self._next(role)

    async def act(self, role: str, said: str | Message) -> Outcome:
        """Act, and wait: what `role` hears at its next turn, or at the end. Raises RolloutError."""
        if role != self.turn and self._left is None:
            raise HarnessError(f"role {role} acted although it was the turn of {self.turn or 'nobody'}")
        env = self.world.env

        def step() -> list[tuple[str, Outcome]]:
            env.step(said)
            return self._heard(env)

        async with self._changed:
            if self._left is not None:  # the game is over, whosever turn it was; what is earned has been heard
                return self._cut(*self._left, 0.0)
            self._deliver(await self.world.call("step()", step))
            return await self._next(role)

    async def leave(self, role: str, error: RolloutError | None) -> None:
        """`role` plays no more although the world is not over for it: the game ends for all."""
        async with self._changed:
            self._left = self._left or (role, error)
            self.turn = None
            self._changed.notify_all()

    def tools(self, role: str) -> list[ToolSchema]:
        """What the world offers to `role`."""
        tools = getattr(getattr(self.world.env, "unwrapped", self.world.env), "tools", ()) or ()
        return list(tools.get(role, ()) if isinstance(tools, Mapping) else tools)

    def _start(self, env: Any) -> list[tuple[str, Outcome]]:
        env.reset(seed=self._seed, options=self._options)
        heard = self._heard(env)
        if not heard or not heard[-1][1].messages:
            raise Nonsense("left the first role without messages: there is nothing to show to the model")
        return heard

    def _heard(self, env: Any) -> list[tuple[str, Outcome]]:
        """What the roles hear now: all that the world is over for, and last the one whose turn it is.

        Raises Nonsense where a role would wait in vain: nobody would ever wake it.
        """
        heard = []
        while env.agents:
            role = env.agent_selection
            if role in self._over:
                raise Nonsense(f"selected {role!r} again, for which the game was over")
            outcome = checked_step(env.last())
            heard.append((role, outcome))
            if not outcome.terminated and not outcome.truncated:
                return heard
            self._over.add(role)
            env.step(None)  # as AEC asks of an agent that is done
        if untold := sorted({*env.possible_agents} - self._over):
            raise Nonsense(
                f"left no agent, and never said that the game is over for {', '.join(untold)}: keep a role in `agents` "
                "until it is stepped with None"
            )
        return heard

    def _deliver(self, heard: list[tuple[str, Outcome]]) -> None:
        self._news |= heard
        self.turn = next((role for role, outcome in heard if not outcome.terminated and not outcome.truncated), None)
        self._changed.notify_all()

    async def _next(self, role: str) -> Outcome:
        await self._changed.wait_for(lambda: role in self._news or self._left is not None)
        if role in self._news:
            return self._news.pop(role)
        assert self._left is not None
        # What its last action has earned since. AEC's `last` tells it of the selected role alone; for its name, every
        # AEC env keeps this, and PettingZoo's wrappers pass it on.
        cumulative = getattr(self.world.env, "_cumulative_rewards", {})
        return self._cut(*self._left, float(cumulative.get(role, 0.0)))

    def _cut(self, other: str, error: RolloutError | None, unheard: float) -> Outcome:
        if error is not None:
            raise HarnessError(f"the game ended by a fault of role {other}: {error}") from error
        return Outcome([], unheard, False, True, {})


@dataclass(frozen=True)
class Player:
    """Who plays a role."""

    learns: bool = True
    """Whether the role's trajectories are kept. The others' tokens are nobody's to train on."""
    sampler: Sampler | None = None
    """None: the one that is trained."""
    script: str | None = None
    """The name of a scripted policy of the env, which plays instead."""
    renderer: Renderer | None = None
    """None: that of the policy that is trained."""


class RoleEpisode(EnvEpisode):
    """One role's episode. Where another role leaves the game, it is cut: stop reason `truncated`, the reward so far."""

    def __init__(
        self,
        table: Table,
        role: str,
        model: RecordedModel,
        *,
        seed: int = 0,
        task: Task | None = None,
        max_turns: int = 16,
    ) -> None:
        super().__init__(table.world, model, seed=seed, task=task, max_turns=max_turns)
        self._table = table
        self._role = role
        self.whom = (role,)

    @property
    def waits_for(self) -> str:
        """Whom the episode waits for now, in words."""
        if self._table.turn not in (None, self._role) and not self.model.live:
            return f"role {self._table.turn}"
        return super().waits_for

    async def reset(self) -> list[Message]:
        """The first messages, at this role's first turn; none where the game ends before. Raises RolloutError."""
        outcome = await self._table.first(self._role)
        self.tools = self._table.tools(self._role)
        self._take(outcome)
        self.idle = self.done
        return outcome.messages

    async def _act(self, said: str | Message) -> Outcome:
        return await self._table.act(self._role, said)

    async def leave(self, error: RolloutError | None) -> None:
        """Tell the others, where the world is not over for this role."""
        if error is not None or self.stop_reason not in (StopReason.TERMINATED, StopReason.TRUNCATED):
            await self._table.leave(self._role, error)
