"""Guess a hidden number; each wrong guess is answered by higher or lower."""

import random
from typing import Annotated, Any, Literal

from pydantic import Field, validate_call

from latih.core import Message
from latih.envs.base import MessageEnv
from latih.envs.registry import register
from latih.envs.spaces import Item, text_of


@register("guess_number")
class GuessNumber(MessageEnv):
    """Find a hidden number from 1 to `top` within so many guesses.

    A guess is a number from 1 to `top` in plain digits; anything else is invalid and ends the game. Let M be
    `guesses` and g the number of the guess that hits. Each turn pays 0 but the last, so that the reward is

        R = [found]·(1 - hurry·(g - 1)/(M - 1)) + reward_invalid·[invalid]

    Metrics: `correct` (found) and `invalid` (0 or 1), `guesses`, the valid ones, and `wasted`, those of them that the
    answers so far had ruled out. See docs/envs/guess_number.md.
    """

    policies = ("random", "expert")

    @validate_call
    def __init__(
        self,
        top: Annotated[int, Field(ge=2, le=10**9)] = 100,
        guesses: Annotated[int, Field(ge=2, le=100)] = 7,
        show: Literal["interval", "answer"] = "interval",
        hurry: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.2,
        reward_invalid: Annotated[float, Field(le=0.0)] = -0.5,
        hidden: Literal["drawn", "worst"] = "drawn",
    ) -> None:
        """Set the dials.

        top: the largest number that may be hidden.
        guesses: how many there are; bisection always finds among 2^guesses - 1 numbers.
        show: `interval` tells which numbers are left, `answer` only `higher` or `lower`: the history has to be kept.
        hurry: what the last guess earns less than the first.
        reward_invalid: what an invalid guess is paid.
        hidden: `drawn` hides a number at the start, each equally likely. `worst` decides as late as it can: each answer
            leaves the larger part, so that a guess earns what it is worth, without luck.
        """
        self.top = top
        self.guesses = guesses
        self.show = show
        self.hurry = hurry
        self.reward_invalid = reward_invalid
        self.hidden = hidden

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Hide a number."""
        super().reset(seed=seed, options=options)
        self.number = int(self.np_random.integers(1, self.top + 1))
        self.low, self.high = 1, self.top
        self.made = self.wasted = 0
        system = f"Guess my number from 1 to {self.top} in {self.guesses} tries. Reply with a number."
        return [Message(role="system", content=system), Message(role="user", content=self._left())], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Take a guess. Raises RuntimeError after the end of the game."""
        self.check_playing()
        text = text_of(action).strip()
        # Ten digits at most, and none but these: `isdigit` and `int` know many more.
        if not (text and len(text) <= 10 and set(text) <= set("0123456789")) or not 1 <= int(text) <= self.top:
            return self._end("Invalid guess.", self.reward_invalid, invalid=1.0)
        guess = int(text)
        if self.hidden == "worst":
            ends = (self.low, self.high) if self.np_random.integers(2) else (self.high, self.low)
            self.number = max(ends, key=lambda end: abs(end - guess))  # of equal ends the first
        self.made += 1
        self.wasted += not self.low <= guess <= self.high
        if guess == self.number:
            return self._end("Found.", 1.0 - self.hurry * (self.made - 1) / (self.guesses - 1), correct=1.0)
        if self.made == self.guesses:
            return self._end(f"It was {self.number}.", 0.0)
        if guess < self.number:
            self.low = max(self.low, guess + 1)
        else:
            self.high = min(self.high, guess - 1)
        said = self._left() if self.show == "interval" else "higher" if guess < self.number else "lower"
        return said, 0.0, False, False, {}

    def truncate(self, reason: str) -> tuple[float, dict[str, Any]]:
        """A number that was not found pays nothing."""
        _, reward, _, _, info = self._end("", 0.0)
        return reward, info

    def scripted(self, name: str, rng: random.Random) -> str:
        """A number that is left: any (`random`), or the one in the middle (`expert`)."""
        if name not in self.policies:
            super().scripted(name, rng)
        return str((self.low + self.high) // 2 if name == "expert" else rng.randint(self.low, self.high))

    def _left(self) -> str:
        return f"{self.low}-{self.high}"

    def _end(
        self, text: str, reward: float, *, correct: float = 0.0, invalid: float = 0.0
    ) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        self.over = True
        metrics = {"correct": correct, "invalid": invalid, "guesses": float(self.made), "wasted": float(self.wasted)}
        return text, reward, True, False, {"metrics": metrics}
