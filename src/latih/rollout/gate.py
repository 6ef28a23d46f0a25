"""The gate of deterministic mode: model calls pass it together, in an order that no clock decides."""

import asyncio
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from latih.core import Sample, Sampler, SamplingParams


@dataclass
class _Call:
    index: int
    sampler: Sampler
    prompt_ids: SequenceOf[int]
    params: SamplingParams
    answer: "asyncio.Future[Sample]"


class Gate:
    """Collects model calls until every live episode waits here, then releases them as one batch.

    A batch is sorted by trajectory index and given to the samplers in one tick of the event loop, at most `width` calls
    at a time; the answers go back together when all are there, and only then may the next batch go. Calls that one
    episode makes at once (`asyncio.gather`) are kept in the order in which they were made.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._live: set[int] = set()
        self._calls: list[_Call] = []
        self._batch: asyncio.Task[None] | None = None

    def enter(self, index: int) -> None:
        """An episode begins: no batch goes without it."""
        self._live.add(index)

    def leave(self, index: int) -> None:
        """An episode is over: nobody waits for it any more."""
        self._live.discard(index)
        self._check()

    def gated(self, index: int, sampler: Sampler) -> "GatedSampler":
        """What the episode `index` uses in the place of `sampler`."""
        return GatedSampler(self, index, sampler)

    async def sample(self, index: int, sampler: Sampler, prompt_ids: SequenceOf[int], params: SamplingParams) -> Sample:
        """The sampler's answer, or what it raises."""
        call = _Call(index, sampler, prompt_ids, params, asyncio.get_running_loop().create_future())
        self._calls.append(call)
        self._check()
        try:
            return await call.answer
        finally:
            if call in self._calls:  # cancelled while it waited
                self._calls.remove(call)

    def close(self) -> None:
        """Cancel the batch in flight."""
        if self._batch is not None:
            self._batch.cancel()

    def _check(self) -> None:
        # One tick later: an episode that leaves may be followed by another, and calls made at once must all be here.
        asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        if self._batch is None and self._calls and self._live <= {call.index for call in self._calls}:
            batch = sorted(self._calls, key=lambda call: call.index)
            self._calls.clear()
            self._batch = asyncio.create_task(self._run(batch))

    async def _run(self, batch: list[_Call]) -> None:
        answers: list[Sample | BaseException] = []
        try:
            for i in range(0, len(batch), self.width):
                calls = [call.sampler.sample(call.prompt_ids, call.params) for call in batch[i : i + self.width]]
                answers += await asyncio.gather(*calls, return_exceptions=True)
        finally:
            self._batch = None
            for call, answer in zip(batch, answers, strict=False):
                if call.answer.done():
                    continue
                if isinstance(answer, BaseException):
                    call.answer.set_exception(answer)
                else:
                    call.answer.set_result(answer)
            for call in batch[len(answers) :]:
                call.answer.cancel()
            self._check()


class GatedSampler:
    """One episode's way through the gate."""

    def __init__(self, gate: Gate, index: int, sampler: Sampler) -> None:
        self.gate = gate
        self.index = index
        self.sampler = sampler

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
        """The sampler's answer, when the whole batch has one."""
        return await self.gate.sample(self.index, self.sampler, prompt_ids, params)
