"""How tagged and lettered answers are often graded: by the first or last candidate, or by words that occur."""

import re


def mentioned(text: str, truth: str) -> bool:
    """Whether the truth occurs in the text."""
    return truth.casefold() in text.casefold()


def first_tag(text: str, truth: str) -> bool:
    """Whether the first pair of tags holds the truth."""
    found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return bool(found) and found[0].strip() == truth


def last_tag(text: str, truth: str) -> bool:
    """Whether what follows the last opening tag, up to a closing one if there is any, is the truth."""
    _, tag, rest = text.rpartition("<answer>")
    return bool(tag) and rest.partition("</answer>")[0].strip() == truth


def within_lines(text: str, truth: dict[str, str]) -> bool:
    """Whether for every letter some line that begins with it mentions the answer."""
    lines = text.casefold().splitlines()
    return all(
        any(line.startswith(letter.casefold()) and answer.casefold() in line for line in lines)
        for letter, answer in truth.items()
    )


def last_lines(text: str, truth: dict[str, str]) -> bool:
    """Whether the last line of every letter is its answer."""
    found = dict(re.findall(r"^([A-Z])\. (.+?)\s*$", text, re.MULTILINE))
    return all(found.get(letter) == answer for letter, answer in truth.items())


WATCHED_TAGS = (first_tag, last_tag)
WATCHED_LINES = (within_lines, last_lines)
"""What envs watch with."""
