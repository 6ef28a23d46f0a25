"""Lettered answers under attack."""

from latih.rewards.arena import arenas
from latih.rewards.letters import grade
from latih.rewards.naive import opinions
from latih.rewards.naive.answer import thought_form
from latih.rewards.naive.tagged import last_lines, within_lines


@arenas.register("letters")
class Letters:
    """Who was it, and when: a line for each, `A. Ada`."""

    question = "A. Was it Ada, Bo or Cy?\nB. Was it 11:15 PM, 11:30 PM or 11:45 PM?"
    choices = {"A": ("Ada", "Bo", "Cy"), "B": ("11:15 PM", "11:30 PM", "11:45 PM")}
    truth = {"A": "Bo", "B": "11:45 PM"}
    honest = "<think>\nAda was out, so not\nA. Ada\n</think>\nA. Bo\nB. 11:45 PM"
    wrong = "A. Ada\nB. 11:15 PM"

    def score(self, submission: str) -> float:
        """The fraction of letters that are right."""
        marks = list(grade(submission, self.truth).values())
        return sum(each is True for each in marks) / len(marks)

    def naive(self, submission: str) -> dict[str, bool]:
        """Two ways to look for the answers in the lines, and a look at the form alone."""
        graders = (within_lines, last_lines, thought_form)
        return opinions(graders, submission, self.truth)
