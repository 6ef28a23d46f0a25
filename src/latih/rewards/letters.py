"""Grading lettered answers, `A. Colonel Mustard`, one on a line."""

import re
from collections.abc import Mapping

from latih.rewards.answer import without_thoughts

ANSWER = re.compile(r"\(?([A-Z])\s*[.):]\s*(\S.*)")
MARKS = re.compile(r"([^\W_]?)[*_`]+(?=([^\W_]?))")
"""Marks of emphasis, with the letter or digit before and behind them."""
TIME = re.compile(r"([0-9]{1,2})(?::([0-5][0-9]))? ?([ap]) ?m")
ASKS = re.compile(
    r"\b(who|whom|whose|what|which|when|where|why|how|am|is|are|was|were|do|does|did|has|had|have|can|could)\b",
    re.IGNORECASE,
)
AROUND = " ,;:!\"'\u201c\u201d\u2018\u2019"


def read_answers(text: str) -> dict[str, set[str]]:
    """The candidates for each letter, in normal form.

    A line `A. value` names one, as do `A) value`, `(A) value` and `A: value`; marks of emphasis, quotes and lists
    around it are ignored. A line that ends in a question mark restates the question where it asks (`Who was it?`); else
    it is a candidate as it stands, and `Bo?` is not `Bo`. What stands before `</think>` is no answer.

    >>> read_answers("**A.** Colonel Mustard\\nB. 11:45 p.m.\\nC. Hall\\nC. Attic")["B"]
    {'23:45'}
    """
    found: dict[str, set[str]] = {}
    for line in without_thoughts(text).splitlines():
        match = ANSWER.fullmatch(_plain(line).strip().lstrip("-+>#• \t"))
        if match and not (match[2].endswith("?") and ASKS.search(match[2])):
            found.setdefault(match[1], set()).add(normal(match[2]))
    return found


def normal(value: str) -> str:
    """A name or a time in the form that is compared.

    Case, white space, full stops (but decimal points), quotes, marks of emphasis and punctuation around it, and a
    leading "the" make no difference; a time is brought to 24 hours.

    >>> normal('The "Drawing  room".'), normal("Mrs Peacock") == normal("Mrs. Peacock"), normal("08:00 PM")
    ('drawing room', True, '20:00')
    """
    plain = re.sub(r"\.(?![0-9])", "", _plain(value).casefold())
    plain = " ".join(plain.split()).strip(AROUND).removeprefix("the ").strip(AROUND)
    time = TIME.fullmatch(plain)
    if time and 1 <= int(time[1]) <= 12:
        return f"{int(time[1]) % 12 + 12 * (time[3] == 'p'):02d}:{time[2] or '00'}"
    return plain


def _plain(text: str) -> str:
    """Without marks of emphasis. Within a word, as in `2*3` and `snake_case`, they are none."""
    return MARKS.sub(lambda found: found[0] if found[1] and found[2] else found[1], text)


def grade(text: str, answers: Mapping[str, str]) -> dict[str, bool | None]:
    """Whether each letter's answer is right; None where the text names no candidate.

    More than one candidate for a letter is wrong, whichever they are.

    >>> grade("A. Ada\\nB. Rope\\nB. Knife", {"A": "Ada", "B": "Rope", "C": "Hall"})
    {'A': True, 'B': False, 'C': None}
    """
    found = read_answers(text)
    return {
        letter: found[letter] == {normal(answer)} if letter in found else None for letter, answer in answers.items()
    }
