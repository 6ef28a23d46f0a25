"""The episode that a harness is given: an env behind a thread and a deadline, and a recorded model."""

import random
from collections.abc import Callable
from typing import Any

from latih.core import HarnessError, Message, RolloutError, StopReason, Task, ToolSchema
from latih.envs import message_of
from latih.rollout.answers import Outcome, checked_reset, checked_step, checked_truncate
from latih.rollout.model import RecordedModel
from latih.rollout.world import World


class EnvEpisode:
    """One env, played once. What the env does wrong stays the episode's `fault`, even where the harness swallows it.

    An action reaches an env that offers tools as a Message, and any other as text.
    """

    def __init__(
        self,
        world: World,
        model: RecordedModel,
        *,
        seed: int = 0,
        task: Task | None = None,
        max_turns: int = 16,
    ) -> None:
        self.world = world
        self.model = model
        self.seed = seed
        self.task = task
        self.max_turns = max_turns
        self.tools: list[ToolSchema] = []
        self.reward = 0.0
        self.metrics: dict[str, float] = {}
        self.steps = 0
        self.whom: tuple[str, ...] = ()
        """The role, for an env that has several."""
        self.idle = False
        """Whether the world was over before this episode's first turn."""
        self.stop_reason: StopReason | None = None

    @property
    def done(self) -> bool:
        """Whether the episode is over, for whatever reason."""
        return self.stop_reason is not None

    @property
    def fault(self) -> RolloutError | None:
        """The first thing that the env did wrong."""
        return self.world.fault

    @property
    def waits_for(self) -> str:
        """Whom the episode waits for now, in words."""
        return self.world.calling or self.model.waits_for or "the harness itself"

    async def reset(self) -> list[Message]:
        """Make the env and start it; the first messages. Raises EnvError."""
        env = await self.world.make()
        self.tools = list(getattr(getattr(env, "unwrapped", env), "tools", ()) or ())
        options = None if self.task is None else {"task": self.task}
        messages, self.metrics = await self.world.call(
            "reset()", lambda: checked_reset(env.reset(seed=self.seed, options=options))
        )
        return messages

    async def step(self, action: Message) -> list[Message]:
        """Act; the new messages. Raises EnvError, and HarnessError where there is nothing to act on."""
        if self.fault is not None:
            raise self.fault
        if self.world.env is None or self.done:
            raise HarnessError(f"step() was called {'after the episode was over' if self.done else 'before reset()'}")
        said = action if self.tools else action.text
        outcome = await self._act(said)
        self.steps += 1
        self.model.recorder.reward(action, outcome.reward)
        self._take(outcome)
        if self.steps >= self.max_turns:
            self.finish(StopReason.TURNS)
        return outcome.messages

    async def _act(self, said: str | Message) -> Outcome:
        env = self.world.env
        return await self.world.call("step()", lambda: checked_step(env.step(said)))

    def _take(self, outcome: Outcome) -> None:
        self.reward += outcome.reward
        self.metrics |= outcome.metrics
        if outcome.terminated:
            self.finish(StopReason.TERMINATED)
        elif outcome.truncated:
            self.finish(StopReason.TRUNCATED)

    async def scripted(self, policy: str, rng: random.Random) -> Message:
        """What the env's scripted policy would do now. Raises EnvError."""
        env = self.world.env
        if env is None:
            raise HarnessError("the model was called before reset(): the env has nothing to say yet")
        bare: Any = getattr(env, "unwrapped", env)
        return await self.world.call("scripted()", lambda: message_of(bare.scripted(policy, rng)))

    async def leave(self, error: RolloutError | None) -> None:
        """The harness plays no more; `error` ended its play. Whoever shares the world hears of it."""

    def finish(self, reason: StopReason) -> None:
        """End the episode; the first reason stays."""
        self.stop_reason = self.stop_reason or reason

    async def truncate(self) -> None:
        """Where a bound that is not the env's own ended the episode, let the env score it. Raises EnvError.

        An env need not have the method (see `MessageEnv.truncate`): its reward is then what it has paid so far.
        """
        env, reason = self.world.env, self.stop_reason
        if env is None or self.fault or reason is None or reason is StopReason.TRUNCATED or not reason.is_truncation:
            return
        score = _method(env, "truncate")
        if score is not None:
            reward, metrics = await self.world.call(
                "truncate()", lambda: checked_truncate(score(*self.whom, reason.value))
            )
            self.reward += reward
            self.metrics |= metrics


def _method(env: Any, name: str) -> Callable[..., Any] | None:
    """An optional method of an env: the outermost wrapper's that has it, or the env's own; None where none has."""
    if hasattr(env, "get_wrapper_attr"):  # Gymnasium's wrappers pass nothing on by themselves
        return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None
    return getattr(env, name, None)
