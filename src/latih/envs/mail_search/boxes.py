"""Made-up mailboxes ready to open: small ones in memory, large ones in the user's cache, each made once."""

import functools
import threading
from dataclasses import dataclass
from pathlib import Path

from latih.core.cache import cache_folder
from latih.envs.mail_search.questions import Kind, Question
from latih.envs.mail_search.store import image, write
from latih.envs.mail_search.world import VERSION, mailbox

SMALL = 2000
"""Mailboxes of up to so many mails are kept in memory (1 MB) and made again in every process (0.1 s)."""

_making = threading.Lock()


@dataclass(frozen=True)
class Box:
    """A mailbox and what is asked about it. The truth is not in the database."""

    source: Path | bytes
    questions: dict[Kind, list[Question]]


def box(seed: int, mails: int) -> Box:
    """The mailbox of a seed. Raises ConfigError where it cannot be written."""
    with _making:  # the members of a group ask for the same one at the same time
        return _box(seed, mails)


@functools.lru_cache(maxsize=32)
def _box(seed: int, mails: int) -> Box:
    drawn, questions = mailbox(seed, mails)
    if mails <= SMALL:
        return Box(image(drawn), questions)
    path = cache_folder() / "mail_search" / f"{VERSION}-{seed}-{mails}.sqlite"
    if not path.is_file():
        write(path, drawn)
    return Box(path, questions)
