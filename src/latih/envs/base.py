"""The base class of environments: a `gymnasium.Env` whose observations and actions are messages."""

import functools
import random
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
from gymnasium.envs.registration import EnvSpec

from latih.core import AGENT, ConfigError, Message, Task, ToolSchema, nearest
from latih.envs.spaces import Item, MessageSpace


def spec_of(cls: Any, id: str | None = None, args: dict[str, Any] | None = None) -> EnvSpec:
    """What Gymnasium needs in order to make the env again."""
    return EnvSpec(id or f"latih/{cls.__name__}-v0", entry_point=cls, kwargs=args or {})


class MessageEnv(gymnasium.Env[Item, Item]):
    """A world over messages. Subclass it and write `reset` and `step`, as for any `gymnasium.Env`.

    - An observation is the NEW messages only; a string is one user message. An action is an assistant message,
      or its text (`text_of` takes either).
    - Rewards come by the turn; the reward of the episode is their sum.
    - `terminated`: the task is over. `truncated`: it was cut short, by a bound of the env's own. `truncate` is called
      where another's bound cut it.
    - `info["metrics"]` of the last step is a `dict[str, float]`: numbers about the whole episode, such as `win`.
    - All randomness comes from `self.np_random`, which `super().reset(seed=seed, options=options)` seeds.
    - The constructor's parameters are the env's dials: the config's `env.args` are passed to it by name.

    >>> class Echo(MessageEnv):
    ...     '''Say the word.'''
    ...     def reset(self, *, seed=None, options=None):
    ...         super().reset(seed=seed, options=options)
    ...         self.word = "yes" if self.np_random.random() < 0.5 else "no"
    ...         return f"Say {self.word}", {}
    ...     def step(self, action):
    ...         correct = float(action == self.word)
    ...         return "", correct, True, False, {"metrics": {"correct": correct}}
    >>> Echo().reset(seed=0)[0]
    'Say no'
    """

    metadata = {"render_modes": []}
    tools: Sequence[ToolSchema] = ()
    """The tools that the policy may call."""
    roles: ClassVar[tuple[str, ...]] = (AGENT,)
    policies: ClassVar[tuple[str, ...]] = ()
    """The names that `scripted` knows."""
    columns: ClassVar[tuple[str, ...]] = ()
    """The columns that a task must have. Empty: the env makes up its own tasks, and a data set is refused."""
    arenas: ClassVar[tuple[str, ...]] = ()
    """The arenas that put under attack what the env pays by: those that `latih exploits ENV` runs."""
    task: Task | None = None
    """The task of this episode, where `reset` was given one."""
    over = True
    """Whether no episode is under way. `reset` begins one; a subclass sets it where the episode ends."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Gymnasium's checker rebuilds an env from its spec. This is the spec of an env made without dials; `make`
        # gives each instance its own.
        super().__init_subclass__(**kwargs)
        cls.spec = spec_of(cls)

    @functools.cached_property
    def observation_space(self) -> MessageSpace:  # type: ignore[override]
        """All messages. Made when first asked for, so that a subclass need not call `super().__init__()`."""
        return MessageSpace()

    @functools.cached_property
    def action_space(self) -> MessageSpace:  # type: ignore[override]
        """All messages."""
        return MessageSpace()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Seed `self.np_random`, keep `options["task"]` in `self.task`, begin an episode. Subclasses call it first."""
        super().reset(seed=seed)
        task = (options or {}).get("task")
        self.task = None if task is None else Task.model_validate(task)
        self.over = False
        return [], {}

    def check_playing(self) -> None:
        """For the first line of a `step`. Raises RuntimeError before the first episode, and after the end of one."""
        if self.over:
            raise RuntimeError("no episode is under way: call reset first")

    def truncate(self, reason: str) -> tuple[float, dict[str, Any]]:
        """Score an episode that a bound on turns or context ended after the last step; `reason` is which.

        Returns (reward, info): what is paid beside the rewards so far, by default nothing, and the metrics of an
        episode that no step ended. `close` follows; there is no other step.
        """
        return 0.0, {}

    def check_task(self, task: Task) -> None:
        """Refuse a row of a data set that has all the columns, and still cannot be played. Raises ValueError."""

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """What the scripted policy `name` does now: a baseline, and a source of demonstrations.

        Raises ConfigError where the env has no such policy.
        """
        raise ConfigError(f"{type(self).__name__} has no scripted policy {name!r}: {nearest(name, self.policies)}")
