"""Puzzles: clues that leave exactly one answer, and the questions that they answer."""

import functools
import random
import threading
from dataclasses import dataclass
from typing import NamedTuple

from latih.envs.temporal_clue.clues import Cast, Clue, Witness, cast
from latih.envs.temporal_clue.solver import Solver
from latih.envs.temporal_clue.world import At, Atom, Is, Size, World, draw

RULES = (
    "Solve the murder. When it happened, the murderer, the victim and the murder weapon were in one room, and no other "
    "suspect there. Each suspect has a different motive."
)
MOVING = (
    " From one time to the next, people stay or go to the room just north, south, west or east; weapons stay or go "
    "along with a suspect; the body stays."
)
FORM = " Answer with a line for each question, its letter and a name: X. Name"
QUESTIONS = {
    "who": "Who was the murderer?",
    "weapon": "What was the murder weapon?",
    "room": "Where was the murder?",
    "time": "When was the murder?",
    "why": "What was the murderer's motive?",
}
LETTERS = "ABCDEFGHIJ"
ROUNDS = 6
"""Times that the witness goes on, as long as the clues so far leave several answers; most puzzles need one or two."""
CACHED = 1024
"""Puzzles kept: the members of a group share theirs, and the passes of an evaluation."""

_making = threading.Lock()


class Question(NamedTuple):
    """A question, the atom that answers it, the answer, and the names among which it is."""

    text: str
    atom: Atom
    answer: str
    options: list[str]


@dataclass(frozen=True)
class Puzzle:
    """A world, what is told of it, and what is asked."""

    cast: Cast
    world: World
    clues: list[Clue]
    questions: list[Question]

    @property
    def rules(self) -> str:
        """What all puzzles of the size have in common, and the form of an answer."""
        return RULES + (MOVING if self.cast.size.times > 1 else "") + FORM

    @property
    def prompt(self) -> str:
        """Names, clues and questions."""
        size, cast = self.cast.size, self.cast
        rows = [" | ".join(cast.rooms[start : start + size.columns]) for start in range(0, size.rooms, size.columns)]
        lists = [("Suspects", cast.suspects), ("Motives", cast.motives), ("Weapons", cast.weapons)]
        lists += [("Times", cast.times)] if size.times > 1 else []
        lines = [f"{title}: {', '.join(names)}" for title, names in lists]
        lines += ["Rooms, west to east" + (", north to south:" if len(rows) > 1 else ":"), *rows]
        lines += ["Clues:", *(f"- {clue.text}" for clue in self.clues), "Questions:"]
        return "\n".join((*lines, *(f"{x}. {each.text}" for x, each in zip(LETTERS, self.questions, strict=False))))

    @property
    def answers(self) -> dict[str, str]:
        """Each letter's."""
        return {letter: each.answer for letter, each in zip(LETTERS, self.questions, strict=False)}

    @property
    def options(self) -> dict[str, list[str]]:
        """The names that may answer each letter."""
        return {letter: each.options for letter, each in zip(LETTERS, self.questions, strict=False)}


def puzzle(size: Size, seed: int) -> Puzzle:
    """The puzzle of a size and a seed, made once while it is remembered.

    Raises ConfigError where OR-tools are not installed.
    """
    with _making:  # the members of a group ask for theirs at once
        return _make(size, seed)


@functools.lru_cache(maxsize=CACHED)
def _make(size: Size, seed: int) -> Puzzle:
    rng = random.Random(seed)
    while True:
        if (made := _tell(size, rng)) is not None:
            return made


def _tell(size: Size, rng: random.Random) -> Puzzle | None:
    """A puzzle about a new world. None where its witness does not come to the point, as in one world of a hundred."""
    world, names = draw(size, rng), cast(size, rng)
    questions = _questions(names, world, rng)
    stated = [Clue(names.state(each.atom), (((each.atom, True),),)) for each in questions]
    given = rng.sample(stated, min(size.direct, len(stated)))
    witness, clues = Witness(names, world, rng), dict.fromkeys(given)
    told = 6 * (size.suspects + size.weapons) + 2 * (size.suspects + size.weapons + 1) * size.times
    for _ in range(ROUNDS):
        for _ in range(told):
            clue = witness.say()
            if clue and clue not in stated:
                clues[clue] = None
        solver = Solver(size, list(clues), [each.atom for each in questions])
        if solver.unique(range(len(clues))):
            chosen = _needed(solver, len(given), len(clues))
            rng.shuffle(chosen)
            return Puzzle(names, world, [solver.clues[each] for each in chosen], questions)
    return None


def _needed(solver: Solver, given: int, count: int) -> list[int]:
    """Clues of which none can be left out: the first ones that leave one answer, less those without which they do."""
    low, high = -1, count  # the first `high` leave one answer, the first `low` more than one
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if solver.unique(range(middle)) else (middle, high)
    chosen, several = list(range(high)), max(1, high // 16)
    while True:
        # Several at once, then fewer: most can go. The given ones come last, and so they stay where they can.
        order = [each for each in chosen if each >= given] + [each for each in chosen if each < given]
        for start in range(0, len(order), several):
            out = order[start : start + several]
            fewer = [each for each in chosen if each not in out]
            if solver.unique(fewer):
                chosen = fewer
        if several == 1:
            return chosen
        several = max(1, several // 4)


def _questions(cast: Cast, world: World, rng: random.Random) -> list[Question]:
    """The main questions, then the bonus questions."""
    size, found = cast.size, {}
    for of, names in cast.facts():
        atom: Atom = Is(of, 0, world.fact(of))
        found[atom] = Question(QUESTIONS[of], atom, cast.value(atom), names)
    while len(found) < len(cast.facts()) + size.bonus:
        of = rng.choice(("suspect", "weapon", "motive", "motive of", "suspect of"))
        index = rng.randrange(size.weapons if of == "weapon" else size.suspects)
        if of in ("motive of", "suspect of"):
            atom = Is("motive", index, world.motives[index])
            motive, suspect = cast.motives[atom.value], cast.suspects[index]
            if of == "motive of":
                question = Question(f"What was the motive of {suspect}?", atom, motive, cast.motives)
            else:
                question = Question(f"Who had motive {motive}?", atom, suspect, cast.suspects)
        else:
            time = rng.randrange(size.times)
            atom = At(of, index, time, world.path(of, index)[time])
            text = f"Where was {cast.subject(of, index)}{cast.when(time)}?"
            question = Question(text, atom, cast.value(atom), cast.rooms)
        found.setdefault(atom, question)
    return list(found.values())
