"""Strict answers: exactly one line `Answer: N`, or exactly one pair of tags, and no other candidate."""

import re

ANSWER = re.compile(r"^Answer: (-?[0-9]{1,80})$", re.MULTILINE)


def without_thoughts(text: str) -> str:
    """What a reply says: all before the last `</think>` is no part of it, nor what follows a `<think>` left open.

    >>> without_thoughts("<think>4, or 5?</think>It is 5.")
    'It is 5.'
    >>> without_thoughts("<think>4, or 5? It may be 5, if")
    ''
    """
    return text.rpartition("</think>")[2].partition("<think>")[0]


def read_answer(text: str) -> int | None:
    """The number of the one line `Answer: N`. None where there is no such line, or more than one candidate.

    What stands before `</think>` is no candidate.
    """
    text = without_thoughts(text)
    found = ANSWER.findall(text.strip())
    return int(found[0]) if len(found) == 1 and len(re.findall("answer", text, re.IGNORECASE)) == 1 else None


def tagged_answer(text: str) -> str | None:
    """What stands between the only `<answer>` and the only `</answer>`, or None.

    What stands before `</think>` is no candidate.

    >>> tagged_answer("It is <answer> 4 </answer>."), tagged_answer("<answer>4</answer> or <answer>5</answer>")
    ('4', None)
    """
    text = without_thoughts(text)
    if not text.count("<answer>") == text.count("</answer>") == 1:
        return None
    return text.partition("<answer>")[2].partition("</answer>")[0].strip() or None
