"""The strict answer line: exactly one `Answer: N`, a whole number, and no other candidate."""

import re

ANSWER = re.compile(r"^Answer: (-?[0-9]{1,80})$", re.MULTILINE)


def read_answer(text: str) -> int | None:
    """The number of the one line `Answer: N`. None where there is no such line, or more than one candidate."""
    found = ANSWER.findall(text.strip())
    return int(found[0]) if len(found) == 1 and len(re.findall("answer", text, re.IGNORECASE)) == 1 else None
