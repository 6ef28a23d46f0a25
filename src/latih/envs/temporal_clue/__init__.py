"""Temporal Clue: deduction puzzles with one answer, made from a seed or the rows of a data set."""

import random
import re
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError, validate_call

from latih.core import Message, Task
from latih.envs.base import MessageEnv
from latih.envs.registry import register
from latih.envs.spaces import Item, messages_of, text_of
from latih.envs.temporal_clue.options import read_options
from latih.envs.temporal_clue.puzzle import puzzle
from latih.envs.temporal_clue.world import TIMES, Size
from latih.rewards.letters import grade
from latih.rewards.naive import exploited
from latih.rewards.naive.tagged import WATCHED_LINES

ANSWERS = TypeAdapter(dict[Annotated[str, Field(pattern="^[A-Z]$")], str])


@register("temporal_clue")
class TemporalClue(MessageEnv):
    """Who did it, with what, where, when and why: suspects move between rooms, and clues leave one answer.

    One turn: the reply has a line for each question, `A. Ada`. The reward is the fraction of them that is right,

        R = (number of letters whose only candidate in the reply is the answer) / (number of questions)

    so that a letter without a line, or with two different answers, counts as wrong. Metrics: `correct` (all are right),
    `accuracy` (R), and `answered`, the fraction of the letters that have a candidate;
    with `watch_exploits` `exploited`. See docs/envs/temporal_clue.md.
    """

    policies = ("random", "expert")
    columns = ("prompt",)
    arenas = ("letters",)

    @validate_call
    def __init__(
        self,
        suspects: Annotated[int, Field(ge=2, le=10)] = 2,
        weapons: Annotated[int, Field(ge=2, le=8)] | None = None,
        rooms: Annotated[int, Field(ge=2, le=16)] | None = None,
        times: Annotated[int, Field(ge=1, le=TIMES)] | None = None,
        bonus: Annotated[int, Field(ge=0, le=4)] = 1,
        direct: Annotated[int, Field(ge=0, le=9)] = 0,
        watch_exploits: bool = False,
    ) -> None:
        """Set the dials. `weapons`, `rooms` and `times` grow with `suspects` where they are not given.

        bonus: questions beyond the main ones, about who had which motive and who or what was where.
        direct: so many of the answers are told outright by a clue; 0 leaves all of them to be deduced.
        watch_exploits: also ask graders of the usual kind, and count who passes them and not ours. Pays nothing.
        """
        self.watch_exploits = watch_exploits
        self.size = Size(
            suspects,
            weapons or max(2, suspects * 4 // 5),
            rooms or max(2, suspects * 4 // 3),
            times or max(2, suspects * 4 // 5),
            bonus,
            direct,
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Make a puzzle, or take the task.

        A task brings its prompt, rules included, and the answers by letter in `answer` or `solution`. Raises
        ValueError where it has none, and ConfigError where there is no task and OR-tools are missed.
        """
        super().reset(seed=seed, options=options)
        if self.task:
            self.check_task(self.task)
            messages = messages_of(self.task.prompt)
            self.answers = _answers(self.task)
            self.options = _guesses(messages[-1].text, self.answers) | read_options(messages[-1].text)
            return messages, {}
        made = puzzle(self.size, int(self.np_random.integers(2**63)))
        self.answers, self.options = made.answers, made.options
        return [Message(role="system", content=made.rules), Message(role="user", content=made.prompt)], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Score the answers. Raises RuntimeError after the end of the episode."""
        self.check_playing()
        self.over = True
        text = text_of(action)
        marks = list(grade(text, self.answers).values())
        right = sum(each is True for each in marks)
        metrics = {
            "correct": float(right == len(marks)),
            "accuracy": right / len(marks),
            "answered": sum(each is not None for each in marks) / len(marks),
        }
        if self.watch_exploits:
            metrics |= exploited(right == len(marks), (each(text, self.answers) for each in WATCHED_LINES))
        return f"{right} of {len(marks)} right.", right / len(marks), True, False, {"metrics": metrics}

    def check_task(self, task: Task) -> None:
        """Raises ValueError where the row asks nothing, or has no answers by letter that a reply can give."""
        if not (task.prompt and messages_of(task.prompt)[-1].text):
            raise ValueError(f"task {task.id!r} asks nothing: give a prompt")
        answers = _answers(task)
        for letter, right in grade(_lines(answers), answers).items():
            if not right:
                raise ValueError(f"task {task.id!r}: no line can answer {letter}. {answers[letter]!r}")

    def scripted(self, name: str, rng: random.Random) -> str:
        """The solution (`expert`), or for each question any of the names that may answer it (`random`).

        Of a task whose prompt does not list them in the public puzzles' form, any capitalised word of it, or what
        answers another question.
        """
        if name == "expert":
            return _lines(self.answers)
        if name == "random":
            return _lines({letter: rng.choice(self.options[letter]) for letter in self.answers})
        return str(super().scripted(name, rng))


def _lines(answers: dict[str, str]) -> str:
    return "\n".join(f"{letter}. {answer}" for letter, answer in answers.items())


def _guesses(prompt: str, answers: dict[str, str]) -> dict[str, list[str]]:
    words = re.findall(r"\b[A-Z][\w'-]*", prompt) or prompt.split()
    return {letter: [*words, *(answers[each] for each in answers if each != letter)] for letter in answers}


def _answers(task: Task) -> dict[str, str]:
    given = task.answer if task.answer is not None else (task.model_extra or {}).get("solution")
    try:
        answers = ANSWERS.validate_python(given)
    except ValidationError:
        answers = {}
    if not answers:
        raise ValueError(f"task {task.id!r} has no answers by letter, such as {{'A': 'Ada'}}, in answer or solution")
    return answers
