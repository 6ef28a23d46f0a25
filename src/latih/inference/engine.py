"""The embedded engine: continuous batching on the learner's own weights, in a thread of its own.

Requests join and leave at any step. A step computes one token for every row that has its prompt in the cache, and
the prompts of those that have not, in one pass. Left out on purpose: speculative decoding, quantization, paging.
"""

import asyncio
import os
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Sequence
from functools import partial

import torch

from latih.core.errors import ConfigError, SamplerError
from latih.core.sampling import Sample, SamplingParams, StopReason
from latih.inference.cache import CachedAttention, KVCache
from latih.inference.choice import choose
from latih.inference.requests import Decode, Request
from latih.inference.scheduler import Row, Scheduler
from latih.inference.settings import EngineSettings
from latih.models.policy import Policy

_SETTLE = 0.002
"""Seconds that an idle engine waits for more requests after each arrival: they mostly come in waves."""


class Engine:
    """A `latih.core.Sampler` over a `Policy`. Close it, or use it as a context manager."""

    def __init__(self, policy: Policy, decode: Decode, settings: EngineSettings | None = None) -> None:
        """`decode` turns token ids into text, for stop strings. Raises ConfigError where the memory is too small."""
        self.settings = settings or EngineSettings()
        self.policy, self._decode = policy, decode
        longest = policy.config.context_length
        self._context_length = self.settings.context_length or longest
        if self._context_length > longest:
            raise ConfigError(f"inference.context_length={self._context_length} is past the model's own {longest}")
        budget = int(self.settings.kv_cache_gb * 2**30)
        cache = KVCache(policy.config, self._context_length, budget, policy.dtype, policy.device)
        self._scheduler = Scheduler(cache)
        self._version = policy.version
        self._arrivals: list[Request] = []
        self._wake = threading.Condition()
        self._closed = False
        self._doors: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._doors = weakref.WeakKeyDictionary()
        self._ticks: dict[asyncio.AbstractEventLoop, list[Request]] = {}
        self._counts = {"sampled_tokens": 0, "prompt_tokens": 0, "steps": 0, "busy_seconds": 0.0}
        self._thread = threading.Thread(target=self._run, name="latih-engine", daemon=True)
        self._thread.start()

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

    def close(self) -> None:
        """Stop the thread; whoever still waits gets a SamplerError."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams) -> Sample:
        """Sample a reply. Calls made within one tick of an event loop enter together, in their order.

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
        door = self._doors.setdefault(loop, asyncio.Semaphore(self.settings.max_waiting))
        async with door:
            request = Request(prompt, params, self._context_length, loop.create_future(), self._decode)
            if loop not in self._ticks:
                self._ticks[loop] = []
                loop.call_soon(self._enter, loop)
            self._ticks[loop].append(request)
            try:
                return await request.future
            except asyncio.CancelledError:
                request.cancelled = True
                raise

    def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand the requests of one tick to the thread at once."""
        requests = self._ticks.pop(loop)
        with self._wake:
            if self._closed:
                for request in requests:
                    _settle(request, partial(SamplerError, "the engine is closed"))
            else:
                self._arrivals += requests
                self._wake.notify()

    # the rest runs in the engine's thread

    def _run(self) -> None:
        while self._take_arrivals():
            started = time.perf_counter()
            try:
                with torch.inference_mode(), self.policy.lock:
                    self._step()
            except Exception:
                self._fail(f"the engine failed:\n{traceback.format_exc()}")
            self._counts["busy_seconds"] += time.perf_counter() - started
        self._fail("the engine is closed")

    def _take_arrivals(self) -> bool:
        """Move arrivals to the queue, waiting for some where there is nothing to do; False once closed."""
        scheduler = self._scheduler
        with self._wake:
            if not scheduler.waiting and not scheduler.active:
                self._wake.wait_for(lambda: self._arrivals or self._closed)
                count = 0
                while count != len(self._arrivals) and not self._closed:
                    count = len(self._arrivals)
                    self._wake.wait(_SETTLE)
            scheduler.waiting.extend(self._arrivals)
            self._arrivals = []
            return not self._closed

    def _step(self) -> None:
        scheduler, version = self._scheduler, self.policy.version
        if version != self._version:
            scheduler.forget()
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
                _settle(request, partial(request.sample, reason, version))

    def _fail(self, message: str) -> None:
        """Refuse everyone inside, and start afresh."""
        scheduler = self._scheduler
        with self._wake:
            requests = [row.request for row in scheduler.active if row.request is not None]
            requests += [*scheduler.waiting, *self._arrivals]
            self._arrivals = []
        scheduler.rows.clear()
        scheduler.waiting.clear()
        for request in requests:
            _settle(request, partial(SamplerError, message))


def _settle(request: Request, answer: Callable[[], Sample | Exception]) -> None:
    """Give the caller its answer, in the caller's own loop; it may have gone away."""

    def settle() -> None:
        if not request.future.done():
            value = answer()
            if isinstance(value, Exception):
                request.future.set_exception(value)
            else:
                request.future.set_result(value)

    loop = request.future.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)
