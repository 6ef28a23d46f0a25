"""Wrong expectations that look as right as the right one: its words in another order, or words that are as familiar."""

import ast
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from latih.envs.repo_repair.mutations import Text
from latih.rewards.looks import WORD, literals, words
from latih.rewards.repo import Edit

NEAR = 9
"""How far from the right number a wrong one lies, at most."""
TRIED = 1000
"""Changes of one expectation that are looked at."""


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    is_number: bool
    """Whether it stands in a number, and not in a text."""

    def may_be(self, text: str) -> bool:
        """Whether another word of its kind is as good Python there."""
        kinds = [(each.isdigit(), each.islower(), each.isupper()) for each in (self.text, text)]
        return text != self.text and kinds[0] == kinds[1] and not (self.is_number and text != "0" and text[0] == "0")


def lookalikes(
    path: str,
    text: Text,
    body: Sequence[ast.stmt],
    mine: Sequence[ast.Constant],
    every: Sequence[ast.Constant],
    rng: random.Random,
) -> Iterator[Edit]:
    """Wrong forms of an expectation, in random order: of `mine`, its literals.

    `body` are the statements of its test, and `every` the literals of all that the test expects.

    Two words change places; or one becomes another word of the module's literals, or a near number, so that of the
    words in this expectation, and in all of the test, as many as before are found elsewhere in the test and the module.
    """
    own, all_of_them = (
        sorted((word for place in places for word in _words(text, place)), key=lambda word: word.start)
        for places in (mine, every)
    )
    view = _View(
        Counter(word for node in body for word in words(text.of(node))),
        Counter(words(text.source)),
        [[word.text for word in each] for each in (own, all_of_them)],
    )
    inside = {word for node in body for each in literals(node) for word in words(str(each.value))}
    module = {word for each in literals(text.tree) for word in words(str(each.value))}
    swaps = [(a, b) for a, b in itertools.combinations(own, 2) if a.may_be(b.text) and b.may_be(a.text)]
    close = [
        (each, replace(each, text=new)) for each in own for new in sorted(inside | _near(each)) if each.may_be(new)
    ]
    first = swaps + close
    last = [(each, replace(each, text=new)) for each in own for new in sorted(module - inside) if each.may_be(new)]
    for a, b in itertools.islice([*rng.sample(first, len(first)), *rng.sample(last, len(last))], TRIED):
        if a.start != b.start:
            between = text.source[a.start + len(a.text) : b.start]
            yield Edit(path=path, start=a.start, old=a.text + between + b.text, new=b.text + between + a.text)
        elif view.alike(a.text, b.text):
            yield Edit(path=path, start=a.start, old=a.text, new=b.text)


class _View:
    """How familiar the words of expectations are."""

    def __init__(self, test: Counter[str], module: Counter[str], expected: Sequence[Sequence[str]]) -> None:
        self.test, self.module, self.expected = test, module, expected
        self.before = [Counter(map(self._rank, each)) for each in expected]

    def alike(self, old: str, new: str) -> bool:
        """Whether all stays as it was where one `old` becomes `new`."""
        for counts in (self.test, self.module):
            counts.subtract([old])
            counts.update([new])
        after = []
        for each in self.expected:
            at = each.index(old)
            after.append(Counter(map(self._rank, [*each[:at], new, *each[at + 1 :]])))
        for counts in (self.test, self.module):
            counts.subtract([new])
            counts.update([old])
        return after == self.before

    def _rank(self, word: str) -> int:
        return 2 if self.test[word] > 1 else int(self.module[word] > 2)


def _words(text: Text, place: ast.Constant) -> Iterator[_Word]:
    start = text.span(place)[0]
    for found in WORD.finditer(text.of(place)):
        yield _Word(found[0], start + found.start(), not isinstance(place.value, str))


def _near(word: _Word) -> set[str]:
    """The numbers around one; in a text, as many digits."""
    if not word.text.isdigit():
        return set()
    value, width = int(word.text), 0 if word.is_number else len(word.text)
    return {str(each).zfill(width) for each in range(max(0, value - NEAR), value + NEAR + 1)}
