"""Clues: true statements about a world, each as a sentence and as the clauses that it means."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from latih.envs.temporal_clue.world import DIRECTIONS, MOTIVES, ROOMS, SUSPECTS, WEAPONS, At, Atom, Is, Size, World

Literal = tuple[Atom, bool]
"""An atom, and whether it is said to be so."""
Subject = tuple[str, int]
"""The `of` and `which` of an `At`."""
STEPS = (15, 30, 60)
"""Minutes between the times of a puzzle."""


class Clue(NamedTuple):
    """A sentence, and what it means: each clause holds where one of its literals does."""

    text: str
    clauses: tuple[tuple[Literal, ...], ...]

    def holds(self, world: World) -> bool:
        """Whether the clue is true of a world."""
        return all(any(world.holds(atom) == so for atom, so in clause) for clause in self.clauses)


@dataclass(frozen=True)
class Cast:
    """The names in a puzzle, and the sentences that they make."""

    size: Size
    suspects: list[str]
    weapons: list[str]
    rooms: list[str]
    times: list[str]
    motives: list[str]

    def subject(self, of: str, index: int) -> str:
        """How a sentence calls it."""
        names = {"victim": "the victim", "murderer": "the murderer", "murder weapon": "the murder weapon"}
        if of == "suspect":
            return self.suspects[index]
        if of == "weapon":
            return f"the {self.weapons[index]}"
        return f"the suspect with motive {self.motives[index]}" if of == "motive" else names[of]

    def when(self, time: int) -> str:
        """The end of a sentence about a time; nothing where there is only one."""
        return f" at {self.times[time]}" if self.size.times > 1 else ""

    def at(self, atom: At, verb: str = "was") -> str:
        """`Ada was in the Hall at 9:00 PM`, without a full stop."""
        return f"{self.subject(atom.of, atom.which)} {verb} in the {self.rooms[atom.room]}{self.when(atom.time)}"

    def state(self, atom: Atom, so: bool = True) -> str:
        """A sentence that says that the atom is so, or that it is not."""
        was = "was" if so else "was not"
        if isinstance(atom, At):
            return sentence(self.at(atom, was))
        name = self.value(atom)
        return {
            "motive": f"The motive of {self.suspects[atom.which]} {was} {name}.",
            "who": f"The murderer {was} {name}.",
            "weapon": f"The murder weapon {was} the {name}.",
            "room": f"The murder {was} in the {name}.",
            "time": f"The murder {was} at {name}.",
            "why": f"The motive of the murderer {was} {name}.",
        }[atom.of]

    def facts(self) -> list[tuple[str, list[str]]]:
        """The main questions, and the names that may answer them."""
        facts = [("who", self.suspects), ("weapon", self.weapons), ("room", self.rooms)]
        return [*facts, *([("time", self.times)] if self.size.times > 1 else []), ("why", self.motives)]

    def value(self, atom: Atom) -> str:
        """The name of what the atom says: of its room, or of its value."""
        if isinstance(atom, At):
            return self.rooms[atom.room]
        return dict(self.facts()).get(atom.of, self.motives)[atom.value]


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def cast(size: Size, rng: random.Random) -> Cast:
    """Draw the names, and times of one night."""
    step = rng.choice(STEPS)
    first = 18 * 60 + step * rng.randrange(6 * 60 // step)
    return Cast(
        size,
        rng.sample(SUSPECTS, size.suspects),
        rng.sample(WEAPONS, size.weapons),
        rng.sample(ROOMS, size.rooms),
        [clock(first + step * t) for t in range(size.times)],
        rng.sample(MOTIVES, size.suspects),
    )


def clock(minutes: int) -> str:
    """The time of day, so many minutes after midnight, on a clock of twelve hours.

    >>> clock(23 * 60 + 45), clock(24 * 60 + 5), clock(12 * 60)
    ('11:45 PM', '12:05 AM', '12:00 PM')
    """
    hour, minute = divmod(minutes % (24 * 60), 60)
    return f"{(hour + 11) % 12 + 1}:{minute:02d} {'AM' if hour < 12 else 'PM'}"


class Witness:
    """Somebody who knows the world, and says one true thing after another.

    A statement is true under every usual reading: "or" is said where exactly one half is so, and two different
    descriptions in one sentence mean two different things.
    """

    def __init__(self, cast: Cast, world: World, rng: random.Random) -> None:
        self.cast = cast
        self.size = cast.size
        self.world = world
        self.rng = rng

    def say(self) -> Clue | None:
        """A true statement of a random kind, or None where that kind found nothing to say."""
        return self.rng.choice(KINDS)(self)

    def subject(self, kinds: str = "suspect suspect suspect weapon weapon motive motive victim role") -> Subject:
        """Somebody or something, by its name or a description."""
        of = self.rng.choice(kinds.split())
        if of == "role":
            return self.rng.choice(("murderer", "murder weapon")), 0
        if of == "victim":
            return of, 0
        return of, self.rng.randrange(self.size.weapons if of == "weapon" else self.size.suspects)

    def pair(self) -> tuple[Subject, Subject] | None:
        one, other = self.subject(), self.subject()
        return (one, other) if self.world.resolve(*one) != self.world.resolve(*other) else None

    def atom(self, so: bool = True) -> At:
        """A place that is so, or one that is not."""
        subject, time = self.subject(), self.rng.randrange(self.size.times)
        room = self.world.path(*subject)[time]
        if not so:
            room = self.rng.choice([each for each in range(self.size.rooms) if each != room])
        return At(*subject, time, room)

    def place(self) -> Clue:
        atom = self.atom()
        return Clue(self.cast.state(atom), (((atom, True),),))

    def absence(self) -> Clue:
        atom = self.atom(so=False)
        return Clue(self.cast.state(atom, so=False), (((atom, False),),))

    def motive(self) -> Clue:
        suspect = self.rng.randrange(self.size.suspects)
        atom = Is("motive", suspect, self.world.motives[suspect])
        return Clue(self.cast.state(atom), (((atom, True),),))

    def exclusion(self) -> Clue | None:
        """What the answer to a main question is not."""
        of, names = self.rng.choice(self.cast.facts())
        others = [value for value in range(len(names)) if value != self.world.fact(of)]
        if not others:
            return None
        atom = Is(of, 0, self.rng.choice(others))
        return Clue(self.cast.state(atom, so=False), (((atom, False),),))

    def company(self) -> Clue | None:
        """Two in the same room at a time, or one just beside the other."""
        if not (pair := self.pair()):
            return None
        time = self.rng.randrange(self.size.times)
        here, there = (self.world.path(*each)[time] for each in pair)
        one, other = (self.cast.subject(*each) for each in pair)

        def pairs(room: int, to: int | None) -> list[tuple[Literal, ...]]:
            where = (At(*pair[1], time, room), False)
            return [(where, (At(*pair[0], time, to), True)) if to is not None else (where,)]

        if here == there:
            text = f"{one} was in the same room as {other}{self.cast.when(time)}"
            return Clue(sentence(text), tuple(c for room in range(self.size.rooms) for c in pairs(room, room)))
        for way in DIRECTIONS:
            if self.size.beside(there, way) == here:
                text = f"{one} was in the room just {way} of {other}{self.cast.when(time)}"
                rooms = range(self.size.rooms)
                return Clue(
                    sentence(text), tuple(c for room in rooms for c in pairs(room, self.size.beside(room, way)))
                )
        return None

    def strangers(self) -> Clue | None:
        """Two that were never in one room."""
        pair = self.pair()
        if not pair or any(a == b for a, b in zip(*(self.world.path(*each) for each in pair), strict=True)):
            return None
        one, other = (self.cast.subject(*each) for each in pair)
        clauses = tuple(
            ((At(*pair[0], time, room), False), (At(*pair[1], time, room), False))
            for time in range(self.size.times)
            for room in range(self.size.rooms)
        )
        return Clue(sentence(f"{one} was never in the same room as {other}"), clauses)

    def move(self) -> Clue | None:
        """Somebody went from a room to another, with a weapon or without."""
        if self.size.times == 1:
            return None
        subject = self.subject("suspect suspect motive victim role")
        if subject[0] == "murder weapon":
            return None
        time = self.rng.randrange(1, self.size.times)
        path = self.world.path(*subject)
        start, end = path[time - 1], path[time]
        if start == end:
            return None
        weapons = [("weapon", index) for index in range(self.size.weapons)] + [("murder weapon", 0)]
        along = [each for each in weapons if self.world.path(*each)[time - 1 : time + 1] == [start, end]]
        taken = self.rng.choice([None, *along])
        text = self.cast.subject(*subject) + (f" took {self.cast.subject(*taken)}" if taken else " went")
        for word, at, room in ((" from", time - 1, start), (" to", time, end)):
            text += f"{word} the {self.cast.rooms[room]}{self.cast.when(at)}"
        atoms = [
            At(*each, at, room) for each in (subject, taken) if each for at, room in ((time - 1, start), (time, end))
        ]
        return Clue(sentence(text), tuple(((atom, True),) for atom in atoms))

    def either(self) -> Clue:
        """One or the other."""
        atoms = self.rng.sample([self.atom(), self.atom(so=False)], 2)
        text = " or ".join(self.cast.at(each) for each in atoms)
        return Clue(sentence(text), (tuple((each, True) for each in atoms),))

    def equivalence(self) -> Clue | None:
        """One if and only if the other."""
        so = self.rng.random() < 0.5
        one, other = self.atom(so), self.atom(so)
        if one == other:
            return None
        text = f"{self.cast.at(one)} if and only if {self.cast.at(other)}"
        return Clue(sentence(text), (((one, True), (other, False)), ((one, False), (other, True))))


KINDS: tuple[Callable[[Witness], Clue | None], ...] = (
    *(Witness.place, Witness.place, Witness.place, Witness.absence, Witness.motive, Witness.exclusion),
    *(Witness.company, Witness.company, Witness.company, Witness.move, Witness.move, Witness.strangers),
    *(Witness.either, Witness.equivalence),
)
"""What is said, each as likely as any other entry."""
