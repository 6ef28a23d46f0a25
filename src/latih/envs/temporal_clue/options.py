"""The names that a public puzzle lists, read from its text."""

import re

from latih.rewards.letters import TIME

KINDS = ("SUSPECT", "WEAPON", "ROOM", "TIME", "MOTIVE")
"""What the format lines of a public puzzle ask for."""


def read_options(prompt: str) -> dict[str, list[str]]:
    """The names that may answer each letter of a public puzzle, from its lists. Empty where it has no such form."""
    lists: dict[str, list[str]] = {"ROOM": re.findall(r"^[0-9]+\. (.+)$", prompt, re.MULTILINE)}
    kinds = iter(("SUSPECT", "WEAPON", "MOTIVE"))
    for block in re.findall(r"(?:^• .+\n)+", prompt, re.MULTILINE):
        # A motive that several have says so behind: `Greed (2 suspects)`.
        names = re.findall(r"^• (.+?)(?: \(.*\))?$", block, re.MULTILINE)
        kind = "TIME" if all(TIME.fullmatch(each.casefold()) for each in names) else next(kinds, "")
        lists[kind] = names
    letters = re.findall(rf"^([A-Z])\. ({'|'.join(KINDS)})$", prompt, re.MULTILINE)
    return {letter: lists[kind] for letter, kind in letters if lists.get(kind)}
