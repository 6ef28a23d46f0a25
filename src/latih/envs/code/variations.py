"""Inputs like a row's own: what holds for all of those at a place holds for the drawn ones as well.

A place is an argument and a depth in it: `([[1, 5], [2, 3]],)` has one for the list, one for the lists in it and one
for the ints. Kept are the shape of one of the row's inputs, types, the range of numbers, the characters of texts, and,
where all lists at the place are so, that they rise or hold nothing twice. Where values at a place repeat, they are
taken for a closed set, as flags and names are. In half of the inputs what was equal stays equal: the value that a list
holds or not, the letters of a palindrome. Drawn freely, both are rare, and a function that always says no would pass.
"""

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

Args = tuple[Any, ...]
Place = tuple[int, int, type]
"""Number of the argument, depth, and type of the value."""
Same = dict[tuple[type, Any], Any] | None
"""What became of values, and of letters of texts, where equal ones stay equal."""

SPARE = 50
"""Draws beyond those wanted."""
REDRAWS = 50
"""Draws for an element that a list shall not have already."""
WIDTH = 8
"""An int that is an argument by itself comes from a range of so many at least: the row may show one or two of them."""


def variations(inputs: Sequence[Args], count: int, rng: random.Random) -> list[Args]:
    """Up to `count` inputs that the row has not, the smallest first."""
    places = _Places(inputs)
    drawn: list[Args] = []
    order = rng.sample(inputs, len(inputs))
    for turn in range(count + SPARE):
        if len(drawn) == count:
            break
        # Each in its turn, with and without: a question may have its rare answer for one of them.
        lap, place = divmod(turn, len(order))
        same: Same = {} if (lap + place) % 2 else None
        args = tuple(places.vary(value, number, 0, rng, same) for number, value in enumerate(order[place]))
        if args not in drawn and args not in inputs:
            drawn.append(args)
    return sorted(drawn, key=_size)


class _Leaves:
    """The values of a place that hold no others."""

    def __init__(self, seen: Sequence[Any], alone: bool) -> None:
        self.kind = type(seen[0])
        self.known: list[Any] = [None] if self.kind is type(None) else sorted(set(seen))
        self.members = frozenset(seen)
        wild = self.kind is float and not all(map(math.isfinite, seen))
        self.closed = self.kind not in (int, float, str) or wild or len(self.known) < len(seen)
        self.letters: defaultdict[tuple[bool, ...], list[str]] = defaultdict(list)
        if self.closed:
            return
        if self.kind is str:
            for letter in sorted(set().union(*self.known)):
                self.letters[_class(letter)].append(letter)
            return
        self.low, self.high = self.known[0], self.known[-1]
        if alone and (self.low == self.high or (self.kind is int and self.high - self.low < WIDTH)):
            # Away from zero: what is never negative stays so.
            self.low, self.high = self.low - WIDTH * (self.low < 0), self.high + WIDTH * (self.high >= 0)

    def draw(self, like: Any, rng: random.Random, same: Same) -> Any:
        """Another value like this one; it may be the same one."""
        if self.kind is str and not self.closed:
            return "".join(self._again(each, rng, same) for each in like)
        return self._again(like, rng, same)

    def _again(self, like: Any, rng: random.Random, same: Same) -> Any:
        """What became of an equal value before, if it may stand here; else a new one."""
        if same is None:
            return self._new(like, rng)
        key = type(like), like
        if key not in same or not self._fits(same[key], like):
            same[key] = self._new(like, rng)
        return same[key]

    def _fits(self, value: Any, like: Any) -> bool:
        if self.closed:
            return value in self.members
        return value in self.letters[_class(like)] if self.kind is str else bool(self.low <= value <= self.high)

    def _new(self, like: Any, rng: random.Random) -> Any:
        if self.closed:
            return rng.choice(self.known)
        if self.kind is str:
            return rng.choice(self.letters[_class(like)])
        if self.kind is int:
            return rng.randint(self.low, self.high)
        written = [repr(each) for each in self.known]
        value = rng.uniform(self.low, self.high)
        if any("e" in each for each in written):
            return value
        return round(value, max(len(each.partition(".")[2]) for each in written))


class _Places:
    """What is known of each place."""

    def __init__(self, inputs: Iterable[Args]) -> None:
        leaves: defaultdict[Place, list[Any]] = defaultdict(list)
        lists: defaultdict[Place, list[list[Any]]] = defaultdict(list)

        def learn(value: Any, number: int, depth: int) -> None:
            place, items = (number, depth, type(value)), _items(value)
            if items is None:
                leaves[place].append(value)
                return
            lists[place].append(items)
            for each in items:
                learn(each, number, depth + 1)

        for args in inputs:
            for number, value in enumerate(args):
                learn(value, number, 0)
        self.leaves = {place: _Leaves(seen, alone=place[1] == 0) for place, seen in leaves.items()}
        self.distinct = {place for place, seen in lists.items() if all(map(_distinct, seen))}
        self.rising = {place for place, seen in lists.items() if all(_sorted(each) == each for each in seen)}

    def vary(self, value: Any, number: int, depth: int, rng: random.Random, same: Same) -> Any:
        """Another value of the same shape; it may be the same one."""
        place, items = (number, depth, type(value)), _items(value)
        if items is None:
            return self.leaves[place].draw(value, rng, same)
        if isinstance(value, dict):  # its keys may be names of fields
            return {key: self.vary(each, number, depth + 1, rng, same) for key, each in value.items()}
        varied, had = list[Any](), set[str]()
        for item in items:
            for _ in range(REDRAWS if place in self.distinct else 1):
                new = self.vary(item, number, depth + 1, rng, same)
                if repr(new) not in had:
                    break
                if same is not None and _items(item) is None:
                    same.pop((type(item), item), None)
            varied.append(new)
            had.add(repr(new))
        if place in self.distinct and len(had) < len(items):
            varied = rng.sample(items, len(items))
        ordered = _sorted(varied) if place in self.rising else None
        return type(value)(ordered or varied)


def _items(value: Any) -> list[Any] | None:
    """What a container holds, of a dict its values; None for what is no container."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, set):
        return sorted(value, key=repr)  # the same order in every process
    return list(value) if isinstance(value, list | tuple) else None


def _class(letter: str) -> tuple[bool, ...]:
    return letter.isupper(), letter.islower(), letter.isdigit(), letter.isspace()


def _distinct(items: list[Any]) -> bool:
    return len(set(map(repr, items))) == len(items)


def _sorted(items: list[Any]) -> list[Any] | None:
    try:
        return sorted(items)
    except TypeError:
        return None


def _size(value: Any) -> float:
    items = _items(value)
    if items is not None:
        return len(items) + sum(map(_size, items))
    if isinstance(value, str):
        return len(value)
    return min(abs(value), 1e300) if isinstance(value, int | float) else 0
