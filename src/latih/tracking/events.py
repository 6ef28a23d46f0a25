"""Events: what a run in progress tells whoever watches. The screen of the command line is one watcher."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol


class Events(Protocol):
    """A watcher. Every long part reports its progress, so that the time left can be shown."""

    def note(self, text: str) -> None:
        """Say something that is not a fault."""
        ...

    def warn(self, text: str) -> None:
        """Say something that the user should look into."""
        ...

    def progress(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """A long part of `total` pieces; 0 where nobody knows how many.

        The block is given a function that takes how many more are done:
        `with events.progress("warm start", 25) as advance: … advance(1)`. Parts may lie inside one another.
        """
        ...

    def step(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        """A training step is over: its number of `steps`, and what was logged of it."""
        ...


class Silent:
    """A watcher that says nothing."""

    def note(self, text: str) -> None:
        """Ignored."""

    def warn(self, text: str) -> None:
        """Ignored."""

    @contextlib.contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Ignored."""
        yield lambda _: None

    def step(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        """Ignored."""


def _nobody(_: int) -> None:
    pass


Told = Callable[[str, int, int], None]
"""What is being done, how many pieces of it are done, and of how many (0 where that is not known)."""


@contextlib.contextmanager
def named_progress(events: Events) -> Iterator[Told]:
    """A watcher for code that reports `told(what, done, total)`: each new `what` begins a part of its own."""
    with contextlib.ExitStack() as part:
        name: str | None = None
        reached = 0

        advance: Callable[[int], None] = _nobody

        def told(what: str, done: int, total: int) -> None:
            nonlocal name, reached, advance
            if what != name:
                part.close()
                name, reached = what, 0
                advance = part.enter_context(events.progress(what, total))
            advance(done - reached)
            reached = done

        yield told
