"""Registries: a new env, advantage, loss or logger is one new file and its registration."""

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from latih.core.errors import ConfigError

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that names the likely intended name, or the known ones when none is near."""
    known = sorted(known)
    lowered = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(lowered[each]) for each in close) + "?"
    return "known: " + ", ".join(known) if known else "none are known"


class Registry(Generic[T]):
    """Names to things of one kind.

    >>> shapes = Registry[type]("shape")
    >>> shapes.register("square")(int)
    <class 'int'>
    >>> shapes.get("sqare")
    Traceback (most recent call last):
        ...
    latih.core.errors.ConfigError: unknown shape 'sqare': did you mean 'square'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that puts its subject under `name`. Raises ValueError where the name is taken."""

        def put(item: T) -> T:
            if name in self._items and self._items[name] is not item:
                raise ValueError(f"{self.kind} {name!r} is registered already")
            self._items[name] = item
            return item

        return put

    def get(self, name: str) -> T:
        """What is registered under `name`. Raises ConfigError with the nearest names."""
        try:
            return self._items[name]
        except KeyError:
            raise ConfigError(f"unknown {self.kind} {name!r}: {nearest(name, self._items)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._items))
