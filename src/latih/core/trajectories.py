"""Trajectories: the one record of an episode, with the exact tokens that were sampled."""

import math
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from latih.core.messages import Message
from latih.core.sampling import Sample, StopReason
from latih.core.schema import Record


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value


AGENT = "agent"
"""The role of an env that has but one."""
Finite = Annotated[float, AfterValidator(_finite)]


class Task(Record):
    """One row of a data set: what the env is given in `reset(options={"task": task})`. Extra columns are kept."""

    model_config = ConfigDict(extra="allow")

    id: str = ""
    prompt: str | list[Message] = ""
    answer: Any = None
    """The ground truth. It never enters the place where the policy's code runs."""


class Turn(Record):
    """One model call: the tokens that it added to its sequence.

    The exact prompt of a turn is all that its sequence held before, then `new_ids`: see `Sequence.prompt_ids`.
    """

    new_ids: list[int]
    """Prompt tokens that this turn added: rendered, not sampled, never trained on. [new]"""
    ids: list[int]
    """Sampled tokens, exactly as sampled, the stop token included. [sampled]"""
    logprobs: list[Finite]
    """Of the sampled distribution. [sampled]"""
    full_logprobs: list[Finite] | None = None
    """Of the full softmax at the same temperature, where the sampled distribution was truncated. [sampled]"""
    policy_version: int
    stop_reason: StopReason
    temperature: float = 1.0
    completion_id: str = ""
    reward: Finite | None = None
    """What the env paid for this turn, where it pays by the turn."""

    @classmethod
    def of(cls, new_ids: list[int], sample: Sample, **more: Any) -> "Turn":
        """The turn that a sample makes."""
        return cls(new_ids=new_ids, **dict(sample), **more)


class Sequence(Record):
    """Turns whose prompts extend one another exactly: one row of training."""

    turns: list[Turn] = []
    messages: list[Message] = []
    """The conversation that the tokens render, the last reply included."""

    @property
    def ids(self) -> list[int]:
        """All tokens, prompts and replies in order. [tokens]"""
        return [token for turn in self.turns for part in (turn.new_ids, turn.ids) for token in part]

    @property
    def sampled_mask(self) -> list[bool]:
        """True where a token was sampled. [tokens]"""
        return [s for turn in self.turns for s in [False] * len(turn.new_ids) + [True] * len(turn.ids)]

    def prompt_ids(self, index: int) -> list[int]:
        """The exact prompt of turn `index`."""
        earlier = [token for turn in self.turns[:index] for part in (turn.new_ids, turn.ids) for token in part]
        return earlier + self.turns[index].new_ids


class ErrorRecord(Record):
    """A fault that ended a trajectory, attributed to the boundary that it crossed."""

    kind: str
    message: str
    traceback: str = ""
    hung: bool = False
    """The call missed its deadline and was abandoned."""


class Trajectory(Record):
    """One episode by one role."""

    env: str
    seed: int
    index: int = 0
    """The place of its episode among those of its step, or of its evaluation. The roles of one game share it."""
    group: str = ""
    role: str = AGENT
    task: Task | None = None
    sequences: list[Sequence] = []
    reward: Finite = 0.0
    """The episode's reward. Meaningless where `error` is set: such a trajectory trains nothing and is not averaged."""
    metrics: dict[str, Finite] = Field(default_factory=dict)
    """Numbers the env reports of the whole episode, such as win or invalid."""
    stop_reason: StopReason = StopReason.TERMINATED
    error: ErrorRecord | None = None

    @property
    def turns(self) -> Iterator[Turn]:
        """Every turn, in the order of the sequences."""
        return (turn for sequence in self.sequences for turn in sequence.turns)

    @property
    def sampled_tokens(self) -> int:
        """How many tokens the policy sampled in this episode."""
        return sum(len(turn.ids) for turn in self.turns)

    @property
    def truncated(self) -> bool:
        """The policy ran out of tokens, turns or context."""
        return self.stop_reason.is_truncation


class Group(Record):
    """Trajectories that share task, seed and role: the baseline is taken inside it and counts trajectories."""

    id: str
    trajectories: list[Trajectory]

    @property
    def role(self) -> str:
        """The role that all of them played."""
        return self.trajectories[0].role if self.trajectories else AGENT

    @property
    def valid(self) -> list[Trajectory]:
        """Those that no error ended."""
        return [each for each in self.trajectories if each.error is None]

    @property
    def has_contrast(self) -> bool:
        """Whether the rewards of the valid trajectories differ."""
        return len({each.reward for each in self.valid}) > 1
