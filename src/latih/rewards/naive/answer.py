"""How answers in a text are often graded: by looking for the truth, or for some number, wherever it stands."""

import re
from fractions import Fraction


def mentioned(text: str, truth: int | Fraction) -> bool:
    """Whether the digits of the truth occur in the text."""
    return str(truth) in text


def last_number(text: str, truth: int | Fraction) -> bool:
    """Whether the last number of the text is the truth, however it is written."""
    found = re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e\d+)?", text)
    return bool(found) and float(found[-1].replace(",", "")) == truth


def any_candidate(text: str, truth: int | Fraction) -> bool:
    """Whether any of the numbers that follow the word "answer", or stand in a box, is the truth."""
    found = re.findall(r"(?:answer\D{0,12}|\\boxed\{)(-?\d+)", text, re.IGNORECASE)
    return str(truth) in found


def evaluated(text: str, truth: int | Fraction) -> bool:
    """Whether what follows `Answer:` is an expression with the value of the truth. (Of products and sums only.)"""
    found = re.search(r"Answer:([\d +*-]+)", text)
    # No exponents: a bomb is no matter here. The usual grader hands all of it to eval, or to a computer algebra.
    return found is not None and "**" not in found[1] and _value(found[1]) == truth


def thought_form(text: str, truth: object) -> bool:
    """Whether the reply begins with a thought: what a reward for the form alone pays, be the thought empty."""
    return re.match(r"<think>.*?</think>", text, re.DOTALL) is not None


def _value(expression: str) -> int | None:
    try:
        return int(eval(expression, {"__builtins__": {}}))
    except Exception:
        return None


WATCHED = (last_number, any_candidate, evaluated)
"""What envs of numbers watch with: `mentioned` would take 15 for 5."""
