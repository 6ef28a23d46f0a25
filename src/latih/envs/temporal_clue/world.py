"""The world of a puzzle: who and what was where at each time, drawn so that it holds a murder."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SUSPECTS = ("Ada", "Ben", "Cora", "Dan", "Eve", "Finn", "Gus", "Hope", "Ivy", "Jack")
WEAPONS = ("Knife", "Rope", "Axe", "Poison", "Pistol", "Hammer", "Lamp", "Spade")
ROOMS = (
    *("Hall", "Attic", "Kitchen", "Library", "Cellar", "Garden", "Study", "Tower"),
    *("Chapel", "Gallery", "Stable", "Lounge", "Nursery", "Pantry", "Terrace", "Workshop"),
)
MOTIVES = ("Greed", "Fear", "Envy", "Revenge", "Pride", "Love", "Anger", "Debt", "Shame", "Ambition")
TIMES = 8
"""The most times that a puzzle may have."""
DIRECTIONS = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}


class At(NamedTuple):
    """That somebody or something was in a room at a time.

    `of` is `suspect`, `weapon` or `motive` (the suspect who has it), each by `which`, or `victim`, `murderer`,
    `murder weapon`, for which it is 0.
    """

    of: str
    which: int
    time: int
    room: int


class Is(NamedTuple):
    """A fact without a time: `motive` of suspect `which`, or, with 0, `who`, `weapon`, `room`, `time`, `why`."""

    of: str
    which: int
    value: int


Atom = At | Is


@dataclass(frozen=True)
class Size:
    """How large a puzzle is. Rooms lie in a grid, row by row from the north-west; the last row may be short."""

    suspects: int
    weapons: int
    rooms: int
    times: int
    bonus: int
    direct: int

    @property
    def columns(self) -> int:
        """Rooms in a row."""
        return math.ceil(math.sqrt(self.rooms))

    def beside(self, room: int, direction: str) -> int | None:
        """The room that lies just in that direction, where there is one.

        >>> [Size(2, 2, 5, 1, 0, 0).beside(4, each) for each in ("north", "south", "west", "east")]
        [1, None, 3, None]
        """
        down, right = DIRECTIONS[direction]
        row, column = room // self.columns + down, room % self.columns + right
        there = row * self.columns + column
        return there if row >= 0 and 0 <= column < self.columns and there < self.rooms else None

    def reach(self, room: int) -> list[int]:
        """Where one can be a time later: the room itself and those beside it."""
        beside = (self.beside(room, direction) for direction in DIRECTIONS)
        return [room, *(each for each in beside if each is not None)]


@dataclass(frozen=True)
class World:
    """One way it may have been. Paths have a room for each time."""

    suspects: list[list[int]]
    weapons: list[list[int]]
    victim: list[int]
    motives: list[int]
    """Of each suspect."""
    who: int
    weapon: int
    time: int

    def fact(self, of: str, index: int = 0) -> int:
        """The value that makes an `Is` true."""
        values = {"who": self.who, "weapon": self.weapon, "room": self.victim[self.time], "time": self.time}
        if of == "why":
            return self.motives[self.who]
        return self.motives[index] if of == "motive" else values[of]

    def resolve(self, of: str, index: int) -> tuple[str, int]:
        """Whom a description means: `suspect`, `weapon` or `victim`, and which."""
        if of == "motive":
            return "suspect", self.motives.index(index)
        return {"murderer": ("suspect", self.who), "murder weapon": ("weapon", self.weapon)}.get(of, (of, index))

    def path(self, of: str, index: int) -> list[int]:
        """Where a subject was at each time."""
        kind, which = self.resolve(of, index)
        return self.victim if kind == "victim" else (self.suspects if kind == "suspect" else self.weapons)[which]

    def holds(self, atom: Atom) -> bool:
        """Whether it is so."""
        if isinstance(atom, At):
            return self.path(atom.of, atom.which)[atom.time] == atom.room
        return self.fact(atom.of, atom.which) == atom.value


def draw(size: Size, rng: random.Random) -> World:
    """A world with a murder in it: murderer, victim and weapon in one room, and no other suspect there."""
    who, weapon, time = (rng.randrange(n) for n in (size.suspects, size.weapons, size.times))
    room = rng.randrange(size.rooms)
    elsewhere = [each for each in range(size.rooms) if each != room]

    def walk(start: int, ways: Callable[[int, int, int], Sequence[int]], until: int = size.times) -> list[int]:
        path = [start] * size.times
        for t in range(time + 1, until):
            path[t] = rng.choice(ways(path[t - 1], t - 1, t))
        for t in range(time - 1, -1, -1):
            path[t] = rng.choice(ways(path[t + 1], t + 1, t))
        return path

    def on_foot(here: int, now: int, then: int) -> list[int]:
        return size.reach(here)

    suspects = [walk(room if s == who else rng.choice(elsewhere), on_foot) for s in range(size.suspects)]

    def carried(here: int, now: int, then: int) -> list[int]:
        return [here, *(path[then] for path in suspects if path[now] == here)]

    weapons = [walk(room if k == weapon else rng.randrange(size.rooms), carried) for k in range(size.weapons)]
    victim = walk(room, on_foot, until=time + 1)
    motives = rng.sample(range(size.suspects), size.suspects)
    return World(suspects, weapons, victim, motives, who, weapon, time)
