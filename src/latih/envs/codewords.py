"""Codewords: one role hints at words that the other has to find."""

import random
from typing import Annotated, Any

from pydantic import Field, validate_call

from latih.core import Message
from latih.envs.registry import register
from latih.envs.roles import RolesEnv
from latih.envs.spaces import Item, text_of

TOPICS = {
    "animal": "dog cat horse cow pig sheep goat lion",
    "fruit": "apple pear plum grape lemon peach cherry banana",
    "color": "red blue green yellow pink brown black white",
    "body": "arm leg hand foot nose ear neck knee",
    "clothes": "hat coat shirt shoe sock dress glove scarf",
    "vehicle": "car bus train truck boat plane bike ship",
    "furniture": "chair table bed desk sofa shelf lamp stool",
    "family": "mother father sister brother uncle aunt son daughter",
    "weather": "rain snow wind storm cloud fog frost hail",
    "music": "piano drum guitar violin flute song singer harp",
    "kitchen": "pot pan spoon fork knife plate cup bowl",
    "number": "one two three four five six seven eight",
}
"""Common words by the word that stands for them: what the scripted roles know."""
TOPIC_OF = {word: topic for topic, words in TOPICS.items() for word in words.split()}


def read_clue(text: str) -> str | None:
    """The clue of a reply: one of the topics. A free text could spell the places or the first letters of the targets.

    >>> read_clue("Animal."), read_clue("an animal"), read_clue("beast")
    ('animal', None, None)
    """
    clue = text.strip().rstrip(".").lower()
    return clue if clue in TOPICS else None


def read_guess(text: str, board: list[str], count: int) -> list[str] | None:
    """The words of a reply: exactly `count` different ones of the board, and nothing else.

    >>> read_guess("dog, cat", ["dog", "cat", "red"], 2), read_guess("dog cat red", ["dog", "cat", "red"], 2)
    (['dog', 'cat'], None)
    """
    words = text.strip().rstrip(".").lower().replace(",", " ").split()
    valid = len(words) == len(set(words)) == count and set(words) <= set(board)
    return words if valid else None


@register("codewords")
class Codewords(RolesEnv):
    """A giver sees which words are targets and says one clue; a guesser sees the words and the clue, and picks.

    The board has `topics` topics of `count` words each, shuffled for each of the two by itself; the targets are those
    of one topic. They play together: both earn

        R = right / count

    for a guess of `count` words of which `right` are targets, and -0.5 where a clue or a guess is out of form, which
    ends the game. Metrics of each role: `accuracy` (right / count), `correct` (all are right) and
    `invalid` (its own). See docs/envs/codewords.md.
    """

    roles = ("giver", "guesser")
    policies = ("random", "expert")

    @validate_call
    def __init__(
        self, topics: Annotated[int, Field(ge=2, le=12)] = 3, count: Annotated[int, Field(ge=1, le=4)] = 2
    ) -> None:
        """Set the dials: so many topics on the board, so many words of each."""
        self.topics = topics
        self.count = count

    def start(self) -> None:
        """Lay the board; the giver begins."""
        chosen = [list(TOPICS)[i] for i in self.np_random.permutation(len(TOPICS))[: self.topics]]
        words = [[*TOPICS[topic].split()] for topic in chosen]
        laid = [[each[i] for i in self.np_random.permutation(len(each))[: self.count]] for each in words]
        board = [word for each in laid for word in each]
        self.board = [board[i] for i in self.np_random.permutation(len(board))]
        self.targets = laid[0]
        self.clue = ""
        rules = f"Say the one word of these that stands for the targets: {', '.join(TOPICS)}."
        self.tell("giver", Message(role="system", content=rules))
        self.tell("giver", f"Board: {' '.join(self.board)}\nTargets: {' '.join(self.targets)}")
        self.turn("giver")

    def act(self, role: str, action: Item | None) -> None:
        """Take the clue, then the guess."""
        text = text_of(action)
        if role == "giver":
            clue = read_clue(text)
            if clue is None:
                return self._end(invalid="giver")
            self.clue = clue
            rules = f"Reply with the {self.count} words of the board that the clue stands for."
            self.tell("guesser", Message(role="system", content=rules))
            # In another order, so that a clue cannot stand for places.
            shuffled = [self.board[i] for i in self.np_random.permutation(len(self.board))]
            self.tell("guesser", f"Board: {' '.join(shuffled)}\nClue: {clue}")
            return self.turn("guesser")
        guess = read_guess(text, self.board, self.count)
        if guess is None:
            return self._end(invalid="guesser")
        return self._end(right=len(set(guess) & set(self.targets)) / self.count)

    def truncate(self, role: str, reason: str) -> tuple[float, dict[str, Any]]:
        """A game that was cut short has found no target, and pays nothing."""
        return 0.0, {"metrics": self._metrics(role)}

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """A topic and words of the board: any (`random`), or those that belong together (`expert`)."""
        if name not in self.policies:
            return super().scripted(name, rng)
        if self.agent_selection == "giver":
            return TOPIC_OF[self.targets[0]] if name == "expert" else rng.choice(list(TOPICS))
        words = rng.sample(self.board, self.count)
        if name == "expert":
            words = [word for word in self.board if TOPIC_OF[word] == self.clue][: self.count] or words
        return " ".join(words)

    def _end(self, right: float = 0.0, invalid: str = "") -> None:
        for role in self.roles:
            self.pay(role, -0.5 if invalid else right)
            self.tell(role, f"The targets were: {' '.join(self.targets)}")
        self.end({role: self._metrics(role, right, invalid) for role in self.roles})

    def _metrics(self, role: str, right: float = 0.0, invalid: str = "") -> dict[str, float]:
        return {"accuracy": right, "correct": float(right == 1.0), "invalid": float(role == invalid)}
