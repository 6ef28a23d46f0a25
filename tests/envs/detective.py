"""Solves small puzzles of `temporal_clue` from their text alone: every world there can be, without a solver."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

STEPS = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}


@dataclass
class Story:
    """A world in names: where each was at each time, who had which motive, and the murder."""

    where: dict[str, list[str]]
    motive: dict[str, str]
    murderer: str
    weapon: str
    time: int

    def path(self, words: str) -> list[str]:
        """Where what the words mean was at each time."""
        if match := re.fullmatch(r"[Tt]he suspect with motive (\w+)", words):
            return self.where[next(each for each, motive in self.motive.items() if motive == match[1])]
        roles = {"the murderer": self.murderer, "the murder weapon": self.weapon, "the victim": "victim"}
        plain = words[0].lower() + words[1:] if words.startswith("The ") else words
        return self.where[roles.get(plain, plain.removeprefix("the "))]


class Detective:
    """A prompt, read: its names, clues and questions."""

    def __init__(self, prompt: str) -> None:
        head, rest = prompt.split("\nClues:\n")
        clues, questions = rest.split("\nQuestions:\n")
        lists, rooms = re.split(r"\nRooms, west to east(?:, north to south)?:\n", head)
        named = dict(line.split(": ", 1) for line in lists.splitlines())
        self.suspects, self.motives, self.weapons = (
            named[each].split(", ") for each in ("Suspects", "Motives", "Weapons")
        )
        self.times = named["Times"].split(", ") if "Times" in named else [""]
        self.grid = {
            name: (row, column)
            for row, line in enumerate(rooms.splitlines())
            for column, name in enumerate(line.split(" | "))
        }
        self.clues = [line.removeprefix("- ").removesuffix(".") for line in clues.splitlines()]
        self.questions = dict(line.split(". ", 1) for line in questions.splitlines())

    def story(self, world: object) -> Story:
        """The maker's world, in names. It is what the puzzle hides."""
        rooms = list(self.grid)
        where = {
            name: [rooms[each] for each in path]
            for names, paths in ((self.suspects, world.suspects), (self.weapons, world.weapons))  # type: ignore[attr-defined]
            for name, path in zip(names, paths, strict=True)
        }
        where["victim"] = [rooms[each] for each in world.victim]  # type: ignore[attr-defined]
        motive = {s: self.motives[m] for s, m in zip(self.suspects, world.motives, strict=True)}  # type: ignore[attr-defined]
        return Story(where, motive, self.suspects[world.who], self.weapons[world.weapon], world.time)  # type: ignore[attr-defined]

    def near(self, one: str, other: str) -> bool:
        (a, b), (c, d) = self.grid[one], self.grid[other]
        return abs(a - c) + abs(b - d) <= 1

    def lawful(self, story: Story) -> bool:
        """Whether the rules allow the story."""
        steps = range(1, len(self.times))
        for name, path in story.where.items():
            for t in steps:
                if path[t] != path[t - 1]:
                    if not self.near(path[t - 1], path[t]):
                        return False
                    if name in self.weapons and not any(
                        story.where[s][t - 1 : t + 1] == path[t - 1 : t + 1] for s in self.suspects
                    ):
                        return False
        scene = story.where["victim"][story.time]
        present = [s for s in self.suspects if story.where[s][story.time] == scene]
        stays = set(story.where["victim"][story.time :]) == {scene}
        return present == [story.murderer] and story.where[story.weapon][story.time] == scene and stays

    def stories(self) -> Iterator[Story]:
        """Every lawful story."""
        names, steps = [*self.suspects, "victim", *self.weapons], len(self.times)
        paths = [
            list(path)
            for path in itertools.product(self.grid, repeat=steps)
            if all(self.near(a, b) for a, b in itertools.pairwise(path))
        ]
        for chosen in itertools.product(paths, repeat=len(names)):
            where = dict(zip(names, chosen, strict=True))
            for who, weapon, time in itertools.product(self.suspects, self.weapons, range(steps)):
                if self.lawful(Story(where, {}, who, weapon, time)):
                    for order in itertools.permutations(self.motives):
                        yield Story(where, dict(zip(self.suspects, order, strict=True)), who, weapon, time)

    def solve(self) -> set[tuple[str, ...]]:
        """Every answer that the clues leave."""
        return {self.answer(story) for story in self.stories() if all(self.holds(c, story) for c in self.clues)}

    def answer(self, story: Story) -> tuple[str, ...]:
        return tuple(self._answer(question, story) for question in self.questions.values())

    def _answer(self, question: str, story: Story) -> str:
        if match := re.fullmatch(r"What was the motive of (\w+)\?", question):
            return story.motive[match[1]]
        if match := re.fullmatch(r"Who had motive (\w+)\?", question):
            return next(each for each, motive in story.motive.items() if motive == match[1])
        main = {
            "Who was the murderer?": story.murderer,
            "What was the murder weapon?": story.weapon,
            "Where was the murder?": story.where["victim"][story.time],
            "When was the murder?": self.times[story.time],
            "What was the murderer's motive?": story.motive[story.murderer],
        }
        if question in main:
            return main[question]
        subject, time = self._timed(question.removeprefix("Where was ").removesuffix("?"))
        return story.path(subject)[time]

    def _timed(self, words: str) -> tuple[str, int]:
        """The words before ` at <time>`, and the time's number."""
        if len(self.times) == 1:
            return words, 0
        before, _, time = words.rpartition(" at ")
        return before, self.times.index(time)

    def holds(self, clue: str, story: Story) -> bool:
        """Whether a sentence is true of a story. Raises ValueError where it cannot be read."""
        if " if and only if " in clue:
            one, other = clue.split(" if and only if ")
            return self.holds(one, story) == self.holds(other, story)
        if " or " in clue:
            return any(self.holds(each, story) for each in clue.split(" or "))
        if match := re.fullmatch(r"(.+) was never in the same room as (.+)", clue):
            return all(a != b for a, b in zip(story.path(match[1]), story.path(match[2]), strict=True))
        for pattern, said in (
            (r"The murderer was (not )?(\w+)", story.murderer),
            (r"The murder weapon was (not )?the (\w+)", story.weapon),
            (r"The murder was (not )?in the (\w+)", story.where["victim"][story.time]),
            (r"The murder was (not )?at (.+)", self.times[story.time]),
        ):
            if match := re.fullmatch(pattern, clue):
                return (match[2] == said) is not bool(match[1])
        if match := re.fullmatch(r"The motive of (.+) was (not )?(\w+)", clue):
            suspect = story.murderer if match[1] == "the murderer" else match[1]
            return (story.motive[suspect] == match[3]) is not bool(match[2])
        if match := re.fullmatch(r"(.+?) (?:went|took (.+?)) from the (\w+) at (.+) to the (\w+) at (.+)", clue):
            start, end = self.times.index(match[4]), self.times.index(match[6])
            return all(
                (story.path(each)[start], story.path(each)[end]) == (match[3], match[5])
                for each in (match[1], match[2])
                if each
            )
        return self._placed(clue, story)

    def _placed(self, clue: str, story: Story) -> bool:
        words, time = self._timed(clue)
        if match := re.fullmatch(r"(.+) was in the same room as (.+)", words):
            return story.path(match[1])[time] == story.path(match[2])[time]
        if match := re.fullmatch(r"(.+) was in the room just (\w+) of (.+)", words):
            (a, b), (c, d) = (self.grid[story.path(match[each])[time]] for each in (1, 3))
            return (a - c, b - d) == STEPS[match[2]]
        if match := re.fullmatch(r"(.+?) was (not )?in the (\w+)", words):
            return (story.path(match[1])[time] == match[3]) is not bool(match[2])
        raise ValueError(clue)
