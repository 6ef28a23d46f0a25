"""A world behind a thread and a deadline: what an env does wrong stays here, with its name on it."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from latih.core import EnvError, RolloutError
from latih.rollout.answers import Nonsense
from latih.rollout.threads import Hung, Threads

T = TypeVar("T")

CLOSE_TIMEOUT = 10.0
"""Seconds that the close of an env may take at most, so that teardown is bounded."""
GRACE = 1.0
"""Seconds that a step which a cancellation left running has to end, before the env is closed all the same."""


class World:
    """One env, made and played once. Every call of it runs in one thread, with a deadline in seconds.

    What the env does wrong is an EnvError, or whatever RolloutError it raises itself. The first one stays as `fault`.
    """

    def __init__(self, make_env: Callable[[], Any], threads: Threads, *, name: str, timeout: float) -> None:
        self.env: Any = None
        """None before `make` and after `close`."""
        self.fault: RolloutError | None = None
        self.calling = ""
        """The call of the env that is under way, in words."""
        self._make = make_env
        self._name = name
        self._timeout = timeout
        self._threads = threads
        self._thread = threads.take()
        self._closed = False

    async def make(self) -> Any:
        """Make the env. Raises EnvError."""
        return await self.call("the constructor", self._made)

    async def call(self, what: str, function: Callable[[], T], timeout: float | None = None) -> T:
        """The result of `function()` in the env's thread; `what` is its name in errors. Raises RolloutError."""
        timeout = timeout or self._timeout
        self.calling = f"{what} of {self._name}"
        try:
            return await self._thread.call(function, timeout)
        except Hung as exc:
            error = self._blame(EnvError(f"{what} of {self._name} did not return within {timeout:g} s"), hung=True)
            error.add_note(f"The env's thread was here:\n{exc.stack}")
            raise error from None
        except Nonsense as exc:
            raise self._blame(EnvError(f"{what} of {self._name} {exc}")) from None
        except RolloutError as exc:  # the env itself attributes it, to a tool or a grader for instance
            self._blame(exc)
            raise
        except Exception as exc:
            raise self._blame(EnvError(f"{what} of {self._name} raised {type(exc).__name__}: {exc}")) from exc
        finally:
            self.calling = ""

    async def close(self) -> None:
        """Close the env, whatever happened. Raises EnvError where that fails.

        Where a step hangs, another thread closes the env: a resource freed under a step's feet is better than one
        that is never freed. Cancellations meanwhile, however many, are obeyed once the env is closed.
        """
        closing = asyncio.ensure_future(self._close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            while not closing.done():  # it is bounded by its own deadlines
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([closing])
            if not closing.cancelled():
                closing.exception()  # seen: the fault stays the world's
            raise

    async def _close(self) -> None:
        self._closed = True
        if self._thread.busy and not (self.fault and self.fault.hung):
            with contextlib.suppress(Hung):
                await self._thread.call(lambda: None, GRACE)
        if self._thread.busy:
            self._threads.give(self._thread)
            self._thread = self._threads.take()
        env, self.env = self.env, None
        try:
            if env is not None:
                await self.call("close()", env.close, min(self._timeout, CLOSE_TIMEOUT))
        finally:
            self._threads.give(self._thread)

    def _made(self) -> Any:
        env = self._make()
        if self._closed:  # the constructor came back too late: nobody else knows this env
            env.close()
        else:  # kept here and not by `make`, which a cancellation may end before it hears of the env
            self.env = env
        return env

    def _blame(self, error: RolloutError, *, hung: bool = False) -> RolloutError:
        error.hung = hung
        self.fault = self.fault or error
        return error
