"""The recorded model: messages in, an assistant message out, and the exact tokens kept."""

import asyncio
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from latih.core import (
    ContextFull,
    HarnessError,
    Message,
    RolloutError,
    Sample,
    Sampler,
    SamplerError,
    SamplingParams,
    StopReason,
    ToolSchema,
    Turn,
    boundary,
)
from latih.rollout.recorder import Recorder


class BoundedSampler:
    """A sampler with one bound on its live calls and a deadline on each; every fault of it is a SamplerError."""

    def __init__(self, sampler: Sampler, limit: int, timeout: float) -> None:
        """`timeout` in seconds, once a call has its place; the wait for a place is bounded by the others' deadlines."""
        self.sampler = sampler
        self.timeout = timeout
        self._places = asyncio.Semaphore(limit)

    def beside(self, sampler: Sampler) -> "BoundedSampler":
        """Another sampler under the same bound."""
        other = BoundedSampler(sampler, 1, self.timeout)
        other._places = self._places
        return other

    @property
    def policy_version(self) -> int:
        """The sampler's."""
        return self.sampler.policy_version

    @property
    def context_length(self) -> int:
        """The sampler's."""
        return self.sampler.context_length

    def forget(self) -> None:
        """The sampler's."""
        self.sampler.forget()

    async def sample(self, prompt_ids: SequenceOf[int], params: SamplingParams) -> Sample:
        """What the sampler says. Raises SamplerError."""
        async with self._places:
            try:
                async with asyncio.timeout(self.timeout) as deadline:
                    sample = await self.sampler.sample(prompt_ids, params)
            except SamplerError:
                raise
            except Exception as exc:
                if deadline.expired():
                    error = SamplerError(
                        f"the sampler did not answer a prompt of {len(prompt_ids)} tokens within {self.timeout:g} s"
                    )
                    error.hung = True
                    raise error from None
                raise SamplerError(f"the sampler failed: {type(exc).__name__}: {exc}") from exc
        if sample.stop_reason is StopReason.CANCELLED:
            raise SamplerError("the sampler cancelled the call")
        return sample


@dataclass(frozen=True)
class Completion:
    """An answered call: the message, and the turn that was recorded."""

    message: Message
    turn: Turn


class RecordedModel:
    """Renderer, sampler and recorder: the policy as a chat model, for one episode.

    `seed(call)` seeds the episode's `call`-th sampling where the parameters name no seed.
    """

    def __init__(
        self,
        recorder: Recorder,
        sampler: Sampler,
        params: SamplingParams | None = None,
        seed: Callable[[int], int] | None = None,
    ) -> None:
        self.recorder = recorder
        self.sampler = sampler
        self.params = params or SamplingParams()
        self.live = 0
        """Calls in flight."""
        self.calls = 0
        """Calls made."""
        self.fault: RolloutError | None = None
        """What the latest call raised, if no other has succeeded since."""
        self.closed = False
        """The episode is over: a call that is still in flight, or comes after, is refused and not recorded."""
        self._seed = seed

    async def chat(
        self,
        messages: SequenceOf[Message],
        *,
        tools: SequenceOf[ToolSchema] = (),
        params: SamplingParams | None = None,
    ) -> Message:
        """The policy's answer. Raises SamplerError, and ContextFull where the prompt leaves no room for one."""
        return (await self.complete(messages, tools=tools, params=params)).message

    @property
    def waits_for(self) -> str:
        """What the model waits for now, in words; empty where nobody waits for it."""
        return f"the sampler, model call {self.calls}" if self.live else ""

    async def complete(
        self,
        messages: SequenceOf[Message],
        *,
        tools: SequenceOf[ToolSchema] = (),
        params: SamplingParams | None = None,
    ) -> Completion:
        """As `chat`, with the recorded turn."""
        try:
            completion = await self._complete(messages, tools, params or self.params)
        except RolloutError as exc:
            self.fault = exc
            raise
        self.fault = None
        return completion

    async def _complete(
        self, messages: SequenceOf[Message], tools: SequenceOf[ToolSchema], params: SamplingParams
    ) -> Completion:
        self._open()
        with boundary(HarnessError, "the conversation cannot be rendered"):
            prompt = self.recorder.prompt(messages, tools)
        room = self.sampler.context_length - len(prompt.ids)
        if room <= 0:
            raise self._full(len(prompt.ids))
        call, self.calls = self.calls, self.calls + 1
        changes: dict[str, object] = {
            "max_tokens": min(params.max_tokens, room),
            "stop_ids": list({*params.stop_ids, *self.recorder.renderer.stop_ids}),
        }
        if params.seed is None and self._seed is not None:
            changes["seed"] = self._seed(call)
        self.live += 1
        try:
            sample = await self.sampler.sample(prompt.ids, params.model_copy(update=changes))
        finally:
            self.live -= 1
        self._open()
        if not sample.ids and sample.stop_reason is StopReason.CONTEXT:
            raise self._full(len(prompt.ids))
        if sample.stop_reason is StopReason.LENGTH and room < params.max_tokens:
            sample = sample.model_copy(update={"stop_reason": StopReason.CONTEXT})
        # Greedy logprobs are those of the full softmax at temperature 1: see `Sample`.
        return Completion(*self.recorder.record(prompt, sample, temperature=params.temperature or 1.0))

    def _open(self) -> None:
        if self.closed:
            raise HarnessError("a model call outlived its episode")

    def _full(self, tokens: int) -> ContextFull:
        return ContextFull(
            f"the prompt has {tokens} tokens and leaves no room in a context of {self.sampler.context_length}: "
            "raise inference.context_length, or make the env's messages shorter"
        )
