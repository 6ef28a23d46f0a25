"""The scripted expert's edits: from broken sources to right ones, by the tools that the policy has."""

import difflib
from collections.abc import Mapping
from typing import Any

MOST = 3
"""Edits of one file. Where more would be needed, the file is written whole."""


def mend(broken: Mapping[str, bytes], right: Mapping[str, bytes]) -> list[tuple[str, dict[str, Any]]]:
    """Tool calls (name, arguments) that make each of the broken files equal to the right one.

    >>> mend({"a.py": b"x = 1\\ny = 1\\n"}, {"a.py": b"x = 1\\ny = 2\\n"})
    [('edit', {'path': 'a.py', 'old': 'y = 1\\n', 'new': 'y = 2\\n'})]
    """
    calls: list[tuple[str, dict[str, Any]]] = []
    for path, text in sorted(right.items()):
        if broken.get(path) == text:
            continue
        edits = _edits(broken.get(path, b"").decode(), text.decode())
        if edits is None:
            calls.append(("write", {"path": path, "text": text.decode()}))
        else:
            calls += [("edit", {"path": path, "old": old, "new": new}) for old, new in edits]
    return calls


def _edits(old: str, new: str) -> list[tuple[str, str]] | None:
    """Replacements from the last to the first, each of a text that is there once. None where there are too many."""
    a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    blocks = [each for each in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if each[0] != "equal"]
    if len(blocks) > MOST:
        return None
    edits = []
    for _, start, end, b_start, b_end in reversed(blocks):
        text = "".join(a)
        before, after = start, end
        while before == after or not _once("".join(a[before:after]), text):
            if before == 0 and after == len(a):
                return None
            before, after = max(0, before - 1), min(len(a), after + 1)
        edits.append(("".join(a[before:after]), "".join([*a[before:start], *b[b_start:b_end], *a[end:after]])))
        a[start:end] = b[b_start:b_end]
    return edits


def _once(part: str, text: str) -> bool:
    return text.find(part) == text.rfind(part)  # `count` would miss one that overlaps another
