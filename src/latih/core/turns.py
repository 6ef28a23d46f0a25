"""Waiting for one's turn, which is nobody's fault: who waits says so, and who has set a deadline leaves it out."""

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar


class Waits:
    """The seconds that one call has waited for its turn. One thread writes, any may read."""

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = (0.0, None)
        """Of the waits that are over, and when the present one began: replaced as a whole, so no reader sees half."""

    @property
    def seconds(self) -> float:
        """Up to now."""
        over, since = self._state
        return over if since is None else over + time.monotonic() - since

    @contextlib.contextmanager
    def during(self) -> Iterator[None]:
        """Count the block."""
        self._state = (self.seconds, time.monotonic())
        try:
            yield
        finally:
            self._state = (self.seconds, None)


_call: ContextVar[Waits | None] = ContextVar("waits", default=None)


def counted(waits: Waits | None) -> None:
    """From here on this thread does the call that `waits` belongs to; None: nobody asks."""
    _call.set(waits)


def waiting() -> contextlib.AbstractContextManager[None]:
    """The block waits for its turn, such as for a slot that others hold."""
    waits = _call.get()
    return waits.during() if waits else contextlib.nullcontext()
