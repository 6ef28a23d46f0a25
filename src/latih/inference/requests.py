"""One request to the engine, from its prompt to its sample."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from latih.core.sampling import Sample, SamplingParams, StopReason
from latih.inference.choice import Chosen

Decode = Callable[[list[int]], str]


@dataclass(eq=False)
class Request:
    """A prompt, what was sampled for it so far, and who waits for it."""

    prompt: list[int]
    params: SamplingParams
    limit: int
    """The context length: prompt and reply together stay within it."""
    future: asyncio.Future[Sample]
    decode: Decode
    ids: list[int] = field(default_factory=list)
    chosen: list[Chosen] = field(default_factory=list)
    policy_version: int | None = None

    def __post_init__(self) -> None:
        self.random = random.Random(self.params.seed)
        self.stop_ids = frozenset(self.params.stop_ids)
        self.stop_reach = max((len(each.encode()) for each in self.params.stop), default=0)

    @property
    def cancelled(self) -> bool:
        """Whether the caller went away."""
        return self.future.done()

    @property
    def tokens(self) -> list[int]:
        """Prompt and reply so far."""
        return self.prompt + self.ids

    def add(self, chosen: Chosen, version: int) -> StopReason | None:
        """Take the next token; why the reply ends with it, or None where it goes on."""
        self.ids.append(chosen.id)
        self.chosen.append(chosen)
        self.policy_version = version if self.policy_version is None else min(version, self.policy_version)
        if chosen.id in self.stop_ids:
            return StopReason.STOP
        # a token is a byte at least, so the tail that a stop string can end in has no more tokens than it has bytes
        if self.stop_reach:
            tail = self.decode(self.ids[-self.stop_reach - 1 :])
            if any(each in tail for each in self.params.stop):
                return StopReason.STOP
        if len(self.prompt) + len(self.ids) >= self.limit:
            return StopReason.CONTEXT
        return StopReason.LENGTH if len(self.ids) >= self.params.max_tokens else None

    def sample(self, reason: StopReason) -> Sample:
        """The answer, of one token at least."""
        assert self.policy_version is not None
        return Sample(
            ids=self.ids,
            logprobs=[each.logprob for each in self.chosen],
            full_logprobs=(
                [each.logprob if each.full_logprob is None else each.full_logprob for each in self.chosen]
                if self.params.truncated
                else None
            ),
            stop_reason=reason,
            policy_version=self.policy_version,
        )
