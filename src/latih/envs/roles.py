"""The base class of environments with several roles: a PettingZoo AEC env whose observations are messages."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from gymnasium.utils.seeding import np_random
from pettingzoo import AECEnv

from latih.core import ConfigError, Message, Task, ToolSchema, nearest
from latih.envs.spaces import Item, MessageSpace, messages_of


class RolesEnv(AECEnv[str, Item, Item]):  # type: ignore[misc]
    """A world in which one role acts at a time. Subclass it and write `start` and `act`; the rest of AEC is here.

    - `tell(role, ...)`: what a role observes at its next turn. An observation is the messages that are new since the
      role's last action; a string is one user message.
    - `pay(role, reward)`: rewards; those of a role's whole game are summed.
    - `turn(role)`: who acts next. `end(metrics)`: the game is over for all, with numbers about it for each role.
    - All randomness comes from `self.np_random`, seeded before `start`.

    >>> class Greet(RolesEnv):
    ...     '''One says a word, the other repeats it.'''
    ...     roles = ("first", "second")
    ...     def start(self):
    ...         self.tell("first", "Say a word.")
    ...         self.turn("first")
    ...     def act(self, role, action):
    ...         if role == "first":
    ...             self.word = action
    ...             self.tell("second", f"Repeat: {action}")
    ...             return self.turn("second")
    ...         correct = float(action == self.word)
    ...         for each in self.roles:
    ...             self.pay(each, correct)
    ...         self.end({each: {"correct": correct} for each in self.roles})
    >>> env = Greet()
    >>> env.reset(seed=0)
    >>> env.step("hello")
    >>> env.agent_selection, env.observe("second")[0].text
    ('second', 'Repeat: hello')
    """

    metadata: dict[str, Any] = {"render_modes": [], "is_parallelizable": False}
    roles: ClassVar[tuple[str, ...]] = ()
    tools: Mapping[str, Sequence[ToolSchema]] = {}
    """The tools that each role may call."""
    policies: ClassVar[tuple[str, ...]] = ()
    """The names that `scripted` knows."""
    columns: ClassVar[tuple[str, ...]] = ()
    """The columns that a task must have. Empty: the env makes up its own tasks, and a data set is refused."""
    render_mode = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.metadata = cls.metadata | {"name": cls.__name__}

    @property
    def possible_agents(self) -> list[str]:
        """The roles."""
        return list(self.roles)

    def observation_space(self, agent: str) -> MessageSpace:
        """All messages."""
        return _SPACE

    def action_space(self, agent: str) -> MessageSpace:
        """All messages."""
        return _SPACE

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game. `options["task"]` is kept in `self.task`."""
        if seed is not None or not hasattr(self, "np_random"):
            self.np_random, _ = np_random(seed)
        task = (options or {}).get("task")
        self.task = None if task is None else Task.model_validate(task)
        self.agents = list(self.roles)
        self.rewards = dict.fromkeys(self.roles, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.roles, 0.0)
        self.terminations = dict.fromkeys(self.roles, False)
        self.truncations = dict.fromkeys(self.roles, False)
        self.infos: dict[str, dict[str, Any]] = {role: {} for role in self.roles}
        self._skip_agent_selection = None
        self._news: dict[str, list[Message]] = {role: [] for role in self.roles}
        self._decide(self.start)

    def observe(self, agent: str) -> list[Message]:
        """The messages that are new to the role since its last action; the same again until it acts."""
        return list(self._news[agent])

    def step(self, action: Item | None) -> None:
        """Let the selected role act; None where the game is over for it. Raises RuntimeError after the end."""
        if not self.agents:
            raise RuntimeError("the game is over: call reset first")
        role = self.agent_selection
        if self.terminations[role] or self.truncations[role]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[role] = 0.0
        self._clear_rewards()
        self._news[role] = []
        self._decide(lambda: self.act(role, action))
        self._accumulate_rewards()
        if any(self.terminations.values()):
            self._deads_step_first()

    def start(self) -> None:
        """Set the world up, tell the first role what it observes, and say whose turn it is."""
        raise NotImplementedError

    def act(self, role: str, action: Item | None) -> None:
        """Do what `role` says (a string or a message); then `turn` or `end`."""
        raise NotImplementedError

    def tell(self, role: str, *observations: Item) -> None:
        """Add to what `role` observes at its next turn."""
        self._news[role] += [message for each in observations for message in messages_of(each)]

    def pay(self, role: str, reward: float) -> None:
        """Reward `role`."""
        self.rewards[role] += reward

    def turn(self, role: str) -> None:
        """`role` acts next."""
        self.agent_selection, self._decided = role, True

    def end(self, metrics: Mapping[str, Mapping[str, float]]) -> None:
        """The game is over for all. `metrics`: numbers about it for each role, such as `win`."""
        self.terminations = dict.fromkeys(self.roles, True)
        self.infos = {role: {"metrics": dict(metrics.get(role, {}))} for role in self.roles}
        self._decided = True

    def truncate(self, role: str, reason: str) -> tuple[float, dict[str, Any]]:
        """Score a role that a bound on its turns or context ended, as `MessageEnv.truncate` does an episode."""
        return 0.0, {}

    def check_task(self, task: Task) -> None:
        """Refuse a row of a data set that has all the columns, and still cannot be played. Raises ValueError."""

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """What the scripted policy `name` does now in the place of the role whose turn it is.

        Raises ConfigError where the env has no such policy.
        """
        raise ConfigError(f"{type(self).__name__} has no scripted policy {name!r}: {nearest(name, self.policies)}")

    def _decide(self, move: Callable[[], None]) -> None:
        self._decided = False
        move()
        if not self._decided:
            raise RuntimeError(f"{type(self).__name__} neither said whose turn() it is nor called end()")


_SPACE = MessageSpace()
