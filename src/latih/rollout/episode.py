"""The episode that a harness is given: an env behind a thread and a deadline, and a recorded model."""

import contextlib
import random
from collections.abc import Callable
from typing import Any, TypeVar

from latih.core import Env, EnvError, HarnessError, Message, RolloutError, StopReason, Task, ToolSchema
from latih.envs import message_of
from latih.rollout.answers import Nonsense, checked_reset, checked_step, checked_truncate
from latih.rollout.model import RecordedModel
from latih.rollout.threads import Hung, Threads

T = TypeVar("T")

CLOSE_TIMEOUT = 10.0
"""Seconds that the close of an env may take at most, so that teardown is bounded."""
GRACE = 1.0
"""Seconds that a step which a cancellation left running has to end, before the env is closed all the same."""


class EnvEpisode:
    """One env, played once. Every call of the env runs in one thread, with a deadline.

    What the env does wrong is an EnvError, or whatever RolloutError it raises itself. It stays the episode's `fault`,
    even where the harness swallows it. An action reaches an env that offers tools as a Message, and any other as text.
    """

    def __init__(
        self,
        make_env: Callable[[], Env],
        model: RecordedModel,
        threads: Threads,
        *,
        name: str = "env",
        seed: int = 0,
        task: Task | None = None,
        max_turns: int = 16,
        step_timeout: float = 60.0,
    ) -> None:
        self.model = model
        self.seed = seed
        self.task = task
        self.max_turns = max_turns
        self.tools: list[ToolSchema] = []
        self.reward = 0.0
        self.metrics: dict[str, float] = {}
        self.steps = 0
        self.stop_reason: StopReason | None = None
        self.fault: RolloutError | None = None
        self._make = make_env
        self._name = name
        self._timeout = step_timeout
        self._threads = threads
        self._thread = threads.take()
        self._env: Env | None = None
        self._closed = False
        self._calling = ""

    @property
    def done(self) -> bool:
        """Whether the episode is over, for whatever reason."""
        return self.stop_reason is not None

    @property
    def waits_for(self) -> str:
        """Whom the episode waits for now, in words."""
        if self._calling:
            return f"{self._calling} of {self._name}"
        return f"the sampler, model call {self.model.calls}" if self.model.live else "the harness itself"

    async def reset(self) -> list[Message]:
        """Make the env and start it; the first messages. Raises EnvError."""
        env = await self._call("the constructor", self._made)
        self.tools = list(getattr(getattr(env, "unwrapped", env), "tools", ()) or ())
        options = None if self.task is None else {"task": self.task}
        messages, self.metrics = await self._call(
            "reset()", lambda: checked_reset(env.reset(seed=self.seed, options=options))
        )
        return messages

    async def step(self, action: Message) -> list[Message]:
        """Act; the new messages. Raises EnvError, and HarnessError where there is nothing to act on."""
        env = self._env
        if self.fault is not None:
            raise self.fault
        if env is None or self.done:
            raise HarnessError(f"step() was called {'after the episode was over' if self.done else 'before reset()'}")
        said = action if self.tools else action.text
        outcome = await self._call("step()", lambda: checked_step(env.step(said)))
        self.steps += 1
        self.reward += outcome.reward
        self.metrics |= outcome.metrics
        self.model.recorder.reward(action, outcome.reward)
        if outcome.terminated:
            self.finish(StopReason.TERMINATED)
        elif outcome.truncated:
            self.finish(StopReason.TRUNCATED)
        elif self.steps >= self.max_turns:
            self.finish(StopReason.TURNS)
        return outcome.messages

    async def scripted(self, policy: str, rng: random.Random) -> Message:
        """What the env's scripted policy would do now. Raises EnvError."""
        env = self._env
        if env is None:
            raise HarnessError("the model was called before reset(): the env has nothing to say yet")
        bare: Any = getattr(env, "unwrapped", env)
        return await self._call("scripted()", lambda: message_of(bare.scripted(policy, rng)))

    def finish(self, reason: StopReason) -> None:
        """End the episode; the first reason stays."""
        self.stop_reason = self.stop_reason or reason

    async def truncate(self) -> None:
        """Where a bound that is not the env's own ended the episode, let the env score it. Raises EnvError.

        An env need not have the method (see `MessageEnv.truncate`): its reward is then what it has paid so far.
        """
        env, reason = self._env, self.stop_reason
        if env is None or self.fault or reason is None or reason is StopReason.TRUNCATED or not reason.is_truncation:
            return
        score = _method(env, "truncate")
        if score is not None:
            reward, metrics = await self._call("truncate()", lambda: checked_truncate(score(reason.value)))
            self.reward += reward
            self.metrics |= metrics

    async def close(self) -> None:
        """Close the env, whatever happened. Raises EnvError where that fails.

        Where a step hangs, another thread closes the env: a resource freed under a step's feet is better than one
        that is never freed.
        """
        self._closed = True
        if self._thread.busy and not (self.fault and self.fault.hung):
            with contextlib.suppress(Hung):
                await self._thread.call(lambda: None, GRACE)
        if self._thread.busy:
            self._threads.give(self._thread)
            self._thread = self._threads.take()
        env, self._env = self._env, None
        try:
            if env is not None:
                await self._call("close()", env.close, min(self._timeout, CLOSE_TIMEOUT))
        finally:
            self._threads.give(self._thread)

    def _made(self) -> Env:
        env = self._make()
        if self._closed:  # the constructor came back too late: nobody else knows this env
            env.close()
        else:  # kept here and not by `reset`, which a cancellation may end before it hears of the env
            self._env = env
        return env

    async def _call(self, what: str, function: Callable[[], T], timeout: float | None = None) -> T:
        timeout = timeout or self._timeout
        self._calling = what
        try:
            return await self._thread.call(function, timeout)
        except Hung as exc:
            error = self._blame(EnvError(f"{what} of {self._name} did not return within {timeout:g} s"), hung=True)
            error.add_note(f"The env's thread was here:\n{exc.stack}")
            raise error from None
        except Nonsense as exc:
            raise self._blame(EnvError(f"{what} of {self._name} {exc}")) from None
        except RolloutError as exc:  # the env itself attributes it, to a tool or a grader for instance
            self._blame(exc)
            raise
        except Exception as exc:
            raise self._blame(EnvError(f"{what} of {self._name} raised {type(exc).__name__}: {exc}")) from exc
        finally:
            self._calling = ""

    def _blame(self, error: RolloutError, *, hung: bool = False) -> RolloutError:
        error.hung = hung
        self.fault = self.fault or error
        return error


def _method(env: Any, name: str) -> Callable[..., Any] | None:
    """An optional method of an env: the outermost wrapper's that has it, or the env's own; None where none has."""
    if hasattr(env, "get_wrapper_attr"):  # Gymnasium's wrappers pass nothing on by themselves
        return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None
    return getattr(env, name, None)
