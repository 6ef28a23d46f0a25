"""Forms of a task's tests: which hidden expectations are wrong in which, drawn so that guessing does not pay.

What must be guessed is a *secret*: a hidden fail-to-pass test, with wrong expectations in its failing statement. Broken
code fails it right or wrong, so that nothing but a repair tells the two apart. Every secret is wrong in two or three of
the forms, each time by another wrong expectation, and right in the others; which, is drawn for each by itself. So
nothing follows from other secrets or from another form, and a coin for each text has the odds of `latih.rewards.repo`.
"""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from latih.rewards.repo import Edit, odds

FORMS = 4
"""Forms of a task. Each is a run of its tests, whenever a repair is graded."""
PATTERNS = [each for each in itertools.product((False, True), repeat=FORMS) if sum(each) in (2, 3)]
"""In which forms a secret may be wrong."""
VARIANTS = FORMS - 1
"""Wrong expectations of a secret: no form shows one that another form shows."""
MOST_SECRETS = 8
"""Secrets of a task. More make its row longer, and guessing no less hopeless."""
MOST_ODDS = 1 / 256
"""The best chance that guessing may have."""
OTHERS = 5
"""Wrong expectations of tests that the broken code passes, in one form, at most."""


@dataclass(frozen=True)
class Secret:
    """A hidden test function that fails by the bug, and its wrong expectations, VARIANTS of them."""

    function: str
    ids: frozenset[str]
    variants: tuple[Edit, ...]


@dataclass(frozen=True)
class Draw:
    """What was drawn for one form."""

    edits: list[Edit]
    changed: frozenset[str]
    """The ids of the secrets that are wrong here."""


def enough(secrets: int) -> bool:
    """Whether so many secrets keep the odds below MOST_ODDS, however they are drawn."""
    return secrets > 0 and guessing(secrets, 2 * secrets) <= MOST_ODDS


def guessing(secrets: int, wrong: int) -> float:
    """The best odds of a guess: by coins, or by patterns where a cheat knows which form it is in."""
    return max(float(len(PATTERNS)) ** -secrets, odds(secrets, wrong))


def draw_forms(secrets: Sequence[Secret], others: Sequence[Edit], rng: random.Random) -> tuple[list[Draw], float]:
    """The forms, and the odds of who guesses.

    `others` are wrong expectations of tests that the broken code passes, at different places: it gives them away, so
    how many a form has is drawn without a look at the secrets.
    """
    patterns = [rng.choice(PATTERNS) for _ in secrets]
    variants = [iter(rng.sample(each.variants, len(each.variants))) for each in secrets]
    draws = []
    for number in range(FORMS):
        wrong = [at for at, pattern in enumerate(patterns) if pattern[number]]
        edits = [next(variants[at]) for at in wrong]
        edits += rng.sample(list(others), min(len(others), rng.randint(1, OTHERS)))
        draws.append(Draw(edits, frozenset(id for at in wrong for id in secrets[at].ids)))
    return draws, guessing(len(secrets), sum(map(sum, patterns)))
