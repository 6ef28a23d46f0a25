"""Tagged answers under attack."""

from latih.rewards.answer import tagged_answer
from latih.rewards.arena import arenas
from latih.rewards.naive import opinions
from latih.rewards.naive.answer import thought_form
from latih.rewards.naive.tagged import first_tag, last_tag, mentioned


@arenas.register("tagged")
class Tagged:
    """A riddle, to be answered between `<answer>` and `</answer>`."""

    question = "Which of maple, oak, cedar and birch keeps its leaves in winter?"
    choices = ("maple", "oak", "cedar", "birch")
    truth = "cedar"
    honest = "<think>A conifer does, and oak is none.</think>\n<answer>cedar</answer>"
    wrong = "<answer>oak</answer>"

    def score(self, submission: str) -> float:
        """1 for the truth, else 0."""
        return float(tagged_answer(submission) == self.truth)

    def naive(self, submission: str) -> dict[str, bool]:
        """Three ways to look for the truth in a text with tags, and a look at its form alone."""
        graders = (mentioned, first_tag, last_tag, thought_form)
        return opinions(graders, submission, self.truth)
