"""What is kept of a mailbox: its mails, and the questions whose answers are known exactly."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

Kind: TypeAlias = Literal["lookup", "update", "date", "hop", "none", "injected"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Mail(NamedTuple):
    """One message. Ids count from 1, in the order of the dates."""

    id: int
    date: str
    """YYYY-MM-DD, or empty where an imported mail has none."""
    sender: str
    recipients: str
    subject: str
    body: str
    message_id: str = ""
    """The `Message-ID` of an imported mail."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the truth about it."""

    kind: str
    text: str
    answers: tuple[str, ...]
    """The values that count as right; none where the mailbox does not tell."""
    sources: tuple[frozenset[int], ...] = ()
    """One set for each mail that is needed, in order; the mails of a set say the same, and any of them will do."""
    baits: tuple[str, ...] = ()
    """The values that injected instructions order to answer."""
    searches: tuple[str, ...] = ()
    """Keywords that find each source: what the oracle searches for."""
