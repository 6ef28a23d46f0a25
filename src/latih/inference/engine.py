"""The embedded engine: continuous batching on the learner's own weights.

Requests join and leave at any step. A step computes one token for every row that has its prompt in the cache, and
the prompts of those that have not, in one pass.

The engine has no thread of its own: it steps inside the event loop of its callers, and lets them run between steps.
Sampler and learner so share one pool of OpenMP threads; with two pools on the same cores each parallel region waits
for a thread to be woken, and decoding takes half as long again. Left out on purpose: speculative decoding,
quantization, paging.
"""

import asyncio
import os
import time
import traceback
from collections.abc import Sequence

import torch

from latih.core.errors import SamplerError
from latih.core.sampling import Sample, SamplingParams, StopReason
from latih.inference.cache import CachedAttention, KVCache
from latih.inference.choice import choose
from latih.inference.requests import Decode, Request
from latih.inference.scheduler import Row, Scheduler
from latih.inference.settings import EngineSettings
from latih.models.policy import Policy

_SETTLE = 0.002
"""Seconds that the engine waits for more requests when some have just come, or are likely to: they come in waves."""


class Engine:
    """A `latih.core.Sampler` over a `Policy`. It serves one event loop at a time."""

    def __init__(self, policy: Policy, decode: Decode, settings: EngineSettings | None = None) -> None:
        """`decode` turns token ids into text, for stop strings. Raises ConfigError where the memory is too small."""
        self.settings = settings or EngineSettings()
        self.policy, self._decode = policy, decode
        cache = KVCache(policy.config, self.settings, policy.dtype, policy.device)
        self._context_length = cache.context_length
        self._scheduler = Scheduler(cache)
        self._version = policy.version
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: asyncio.Task[None] | None = None
        self._counts = {"sampled_tokens": 0, "prompt_tokens": 0, "steps": 0, "busy_seconds": 0.0}

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def policy_version(self) -> int:
        """The version that the next token would be sampled from."""
        return self.policy.version

    @property
    def context_length(self) -> int:
        """The most tokens of a prompt and its reply together."""
        return self._context_length

    def stats(self) -> dict[str, float]:
        """Totals since the start: tokens sampled, prompt tokens computed and reused, steps, busy seconds."""
        return self._counts | {"reused_tokens": self._scheduler.reused_tokens}

    def forget(self) -> None:
        """Drop what is cached, so that what comes next does not depend on what came before."""
        self._scheduler.forget()

    def close(self) -> None:
        """Answer no more; whoever still waits gets a SamplerError."""
        self._closed = True
        self._refuse("the engine is closed")

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams) -> Sample:
        """Sample a reply. Calls made in one go enter together, in their order; each waits for room in the cache.

        A prompt that fills the context gives no tokens and stop reason `context`. Raises SamplerError where the engine
        failed or is closed, or the prompt is empty or has unknown ids. Cancelling the call frees its row.
        """
        prompt = list(prompt_ids)
        if len(prompt) >= self._context_length:
            return Sample(ids=[], logprobs=[], stop_reason=StopReason.CONTEXT, policy_version=self.policy.version)
        if not prompt or min(prompt) < 0 or max(prompt) >= self.policy.config.vocab_size:
            raise SamplerError("the prompt is empty or has token ids that the model does not know")
        if params.seed is None:
            params = params.model_copy(update={"seed": int.from_bytes(os.urandom(8), "big")})
        loop = asyncio.get_running_loop()
        if self._closed:
            raise SamplerError("the engine is closed")
        idle = self._runner is None or self._runner.done()
        if loop is not self._loop and not idle:
            raise SamplerError("the engine serves another event loop: call it from that one")
        request = Request(prompt, params, self._context_length, loop.create_future(), self._decode)
        self._scheduler.waiting.append(request)
        if idle:
            self._loop, self._runner = loop, loop.create_task(self._run())
        return await request.future

    async def _run(self) -> None:
        """Step until nobody waits."""
        scheduler = self._scheduler
        count = 0
        while count != len(scheduler.waiting):
            count = len(scheduler.waiting)
            await asyncio.sleep(_SETTLE)
        while scheduler.waiting or scheduler.active:
            started, before = time.perf_counter(), len(scheduler.active)
            try:
                with torch.inference_mode():
                    self._step()
            except Exception:
                self._refuse(f"the engine failed:\n{traceback.format_exc()}")
            self._counts["busy_seconds"] += time.perf_counter() - started
            # who has just got an answer is likely to come back with the next turn
            await asyncio.sleep(_SETTLE if len(scheduler.active) < before else 0)

    def _step(self) -> None:
        scheduler, version = self._scheduler, self.policy.version
        if version != self._version:
            self.forget()
            self._version = version
        scheduler.admit()
        scheduler.make_room()
        batch = self._batch()
        if not batch:
            return
        singles = [(row, 1) for row, n in batch if n == 1]
        runs = [(row, n) for row, n in batch if n > 1]
        attention = CachedAttention(
            scheduler.cache,
            [(row.slot, row.computed) for row, _ in singles],
            [(row.slot, row.computed, n) for row, n in runs],
        )
        ids, last = [], []
        for row, n in singles + runs:
            ids += row.tokens[row.computed : row.computed + n]
            last.append(len(ids) - 1)
            row.computed += n
        ids_N = torch.tensor(ids, device=self.policy.device)
        hidden_ND = self.policy.forward(ids_N, attention.positions, attention)
        ends = [(row, at) for (row, _), at in zip(singles + runs, last, strict=True) if row.computed == len(row.tokens)]
        self._counts["steps"] += 1
        self._counts["prompt_tokens"] += len(ids) - len(ends)
        if ends:
            self._sample_next([row for row, _ in ends], hidden_ND[[at for _, at in ends]], version)

    def _batch(self) -> list[tuple[Row, int]]:
        """What to compute now: (row, tokens); the prompts share `prefill_tokens`, the shortest remainders first."""
        room = self.settings.prefill_tokens
        batch = []
        for row in sorted(self._scheduler.active, key=lambda row: len(row.tokens) - row.computed):
            left = len(row.tokens) - row.computed
            n = left if left == 1 else min(left, room)
            room -= n if left > 1 else 0
            if n:
                batch.append((row, n))
        return sorted(batch, key=lambda item: item[0].slot)

    def _sample_next(self, rows: list[Row], hidden_RD: torch.Tensor, version: int) -> None:
        requests = [row.request for row in rows if row.request is not None]
        uniforms = [request.random.random() for request in requests]
        logits_RV = self.policy.decoder.logits(hidden_RD)
        for row, request, chosen in zip(
            rows, requests, choose(logits_RV, [request.params for request in requests], uniforms), strict=True
        ):
            reason = request.add(chosen, version)
            row.tokens.append(chosen.id)
            self._counts["sampled_tokens"] += 1
            if reason is not None:
                row.request = None
                row.used = self._scheduler.clock
                request.future.set_result(request.sample(reason))

    def _refuse(self, message: str) -> None:
        """Give everyone inside an error, and start afresh."""
        for request in self._scheduler.clear():
            if not request.future.done():
                request.future.set_exception(SamplerError(message))
