"""Protocols: the seams between the rooms."""

from collections.abc import Sequence as SequenceOf
from typing import Any, Protocol, runtime_checkable

from latih.core.messages import Message, ToolSchema
from latih.core.sampling import Sample, SamplingParams, StopReason
from latih.core.schema import Record
from latih.core.trajectories import Group, Task


@runtime_checkable
class Env(Protocol):
    """A world: a `gymnasium.Env` over messages. `latih.envs.MessageEnv` is the base class to subclass.

    An observation is the NEW messages only, a plain string being one user message; an action is an assistant message,
    or its text.
    """

    tools: SequenceOf[ToolSchema]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]: ...

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]: ...

    def close(self) -> None: ...


class ChatModel(Protocol):
    """Messages and tools in, an assistant message out."""

    async def chat(
        self,
        messages: SequenceOf[Message],
        *,
        tools: SequenceOf[ToolSchema] = (),
        params: SamplingParams | None = None,
    ) -> Message:
        """Raises SamplerError where the model cannot answer, ContextFull where the prompt leaves no room to answer."""
        ...


class Episode(Protocol):
    """What a harness is given to play: a world, a model, and the bounds of the episode."""

    @property
    def seed(self) -> int: ...

    @property
    def task(self) -> Task | None: ...

    @property
    def model(self) -> ChatModel: ...

    @property
    def tools(self) -> SequenceOf[ToolSchema]:
        """What the env offers. Known after `reset`."""
        ...

    @property
    def max_turns(self) -> int: ...

    async def reset(self) -> list[Message]:
        """Start the world; the first messages."""
        ...

    async def step(self, action: Message) -> list[Message]:
        """Act; the new messages. `done` tells whether the episode is over, by its bound on turns too."""
        ...

    @property
    def done(self) -> bool: ...

    def finish(self, reason: StopReason) -> None:
        """End the episode from the harness's side. It may as well just return, or let ContextFull pass."""
        ...


class Harness(Protocol):
    """Plays a whole episode. It owns history and windowing."""

    async def play(self, episode: Episode) -> None: ...


class Renderer(Protocol):
    """Messages to tokens and back. `latih.models.chat.Renderer` is that of a language model."""

    @property
    def stop_ids(self) -> SequenceOf[int]:
        """The ids that end a reply."""
        ...

    def render(
        self, messages: SequenceOf[Message], tools: SequenceOf[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        """The tokens of a whole conversation; with `generate`, up to where the next reply begins."""
        ...

    def extend(
        self,
        ids: SequenceOf[int],
        messages: SequenceOf[Message],
        new: SequenceOf[Message],
        tools: SequenceOf[ToolSchema] = (),
    ) -> list[int]:
        """The tokens that follow `ids`, which render `messages`, so that `new` is read and the next reply can begin."""
        ...

    def parse(self, ids: SequenceOf[int]) -> Message:
        """The message that sampled `ids` mean."""
        ...

    def reply(self, message: Message) -> list[int]:
        """The tokens of a reply as a policy would sample them."""
        ...


class Sampler(Protocol):
    """Token prompt in, sampled tokens with their logprobs out."""

    @property
    def policy_version(self) -> int: ...

    @property
    def context_length(self) -> int:
        """The most tokens that a prompt and its reply may have together."""
        ...

    async def sample(self, prompt_ids: SequenceOf[int], params: SamplingParams) -> Sample:
        """Raises SamplerError. A prompt that fills the context gives no tokens and stop reason `context`."""
        ...

    def forget(self) -> None:
        """Drop what is kept of earlier prompts, so that the answers to later ones do not depend on them."""
        ...


class StepResult(Record):
    """What one training step did."""

    step: int
    """The optimizer step just made: the new policy version."""
    metrics: dict[str, float]


class Trainer(Protocol):
    """Turns groups of trajectories into a better policy. Knows no env."""

    def step(self, groups: SequenceOf[Group]) -> StepResult: ...
