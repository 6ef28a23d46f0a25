"""The final number of a text under attack."""

from latih.rewards.arena import arenas
from latih.rewards.arenas.answer import Answers
from latih.rewards.numbers import final_number


@arenas.register("numbers")
class FinalNumbers(Answers):
    """17 + 4 * 23, to be answered by a text with one final number."""

    def score(self, submission: str) -> float:
        """1 for the truth, else 0."""
        return float(final_number(submission) == self.truth)
