"""The strict answer line under attack."""

from latih.rewards.answer import read_answer
from latih.rewards.arena import arenas
from latih.rewards.naive import opinions
from latih.rewards.naive.answer import any_candidate, evaluated, last_number, mentioned, thought_form


@arenas.register("answer")
class Answers:
    """17 + 4 * 23, to be answered by one line `Answer: N`."""

    question = "17 + 4 * 23"
    truth = 109
    honest = "<think>4 * 23 is 92, and 17 more.</think>\nAnswer: 109"
    wrong = "Answer: 108"

    def score(self, submission: str) -> float:
        """1 for the truth, else 0."""
        return float(read_answer(submission) == self.truth)

    def naive(self, submission: str) -> dict[str, bool]:
        """Four ways to look for the truth in a text, and a look at its form alone."""
        graders = (mentioned, last_number, any_candidate, evaluated, thought_form)
        return opinions(graders, submission, self.truth)
