"""Threads for blocking calls that can be abandoned: nobody waits for one that hangs, not even the exit."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from latih.core.turns import Waits, counted

T = TypeVar("T")
Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any], Waits]

SHORTEST = 0.02
"""Seconds between two looks at a call that waits for its turn when its deadline is near."""


class Hung(Exception):
    """A call missed its deadline and was abandoned. `stack` is where its thread was then."""

    def __init__(self, stack: str) -> None:
        super().__init__("the call missed its deadline")
        self.stack = stack


class Thread:
    """One daemon thread that runs one call at a time, so whoever holds it is always called from the same thread."""

    def __init__(self, pool: "Threads") -> None:
        self.pool = pool
        self.busy = False
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name="latih-env", daemon=True)
        self.thread.start()

    async def call(self, function: Callable[[], T], timeout: float) -> T:
        """The result of `function()`, or what it raises. Raises Hung after `timeout` seconds.

        Time in which the call waits for its turn (`core.turns`) does not count.
        A thread whose call hung, or whose caller was cancelled meanwhile, stays `busy` until that call ends.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.busy = True
        waits = Waits()
        begun = loop.time()
        self.jobs.put((loop, future, function, waits))
        try:
            while not future.done() and (left := begun + timeout + waits.seconds - loop.time()) > 0:
                await asyncio.wait([future], timeout=max(left, SHORTEST))
            if future.done():  # or it ended while the loop was busy with something else past the deadline
                return future.result()
        finally:
            future.cancel()  # where nobody waits any more: what comes is late
        self.pool.abandoned += 1
        frame = sys._current_frames().get(self.thread.ident or 0)
        raise Hung("".join(traceback.format_stack(frame)) if frame else "")

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            loop, future, function, waits = job
            result, error = None, None
            counted(waits)
            try:
                result = function()
            except BaseException as exc:
                error = _carried(exc)
            self.busy = False
            try:
                loop.call_soon_threadsafe(self._deliver, future, result, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                self.pool.late += 1
            counted(None)
            del job, loop, future, function, waits, result, error  # keep nothing alive while waiting

    def _deliver(self, future: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
        if future.done():
            self.pool.late += 1
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


def _carried(exc: BaseException) -> Exception:
    """What a future can carry: SystemExit of an env must not end the run, and a future refuses StopIteration."""
    if isinstance(exc, Exception) and not isinstance(exc, StopIteration):
        return exc
    error = RuntimeError(f"{type(exc).__name__}: {exc}")
    error.__cause__ = exc
    return error


class Threads:
    """A pool of threads. It has as many as were held at once; one that hangs is left behind and never comes back."""

    def __init__(self) -> None:
        self.abandoned = 0
        """Calls that missed their deadline."""
        self.late = 0
        """Results that came after their caller had given up: ignored."""
        self._idle: list[Thread] = []

    def take(self) -> Thread:
        """A thread that is free."""
        return self._idle.pop() if self._idle else Thread(self)

    def give(self, thread: Thread) -> None:
        """Give a thread back. One that is still busy ends after its call."""
        if thread.busy:
            thread.jobs.put(None)
        else:
            self._idle.append(thread)

    def close(self) -> None:
        """Let every idle thread end. Waits for none."""
        while self._idle:
            self._idle.pop().jobs.put(None)
