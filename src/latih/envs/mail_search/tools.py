"""The tools of the mailbox: their schemas, and what they tell the policy."""

import re
from datetime import date
from typing import Any

from latih.envs.mail_search.questions import Mail
from latih.envs.mail_search.store import Hit, Store
from latih.envs.tools import tool_schema

MAX_BODY = 2000
"""Characters of a mail that are shown."""
MAX_LINE = 300
"""Characters of a header or of a hit."""
FILTERS = ("from", "to", "after", "before")

STRING = {"type": "string"}
SEARCH = tool_schema(
    "search_mail", "Dates: YYYY-MM-DD; before excludes its day.", dict.fromkeys(("keywords", *FILTERS), STRING)
)
SIMPLE_SEARCH = tool_schema("search_mail", keywords=STRING)
READ = tool_schema("read_mail", id={"type": "integer"})
ANSWER = tool_schema(
    "answer",
    "The value alone, or unknown.",
    text=STRING,
    source_ids={"type": "array", "items": {"type": "integer"}},
)


def search(store: Store, arguments: dict[str, Any], limit: int) -> list[Hit]:
    """Run `search_mail`. Raises ValueError, with one line for the policy, for a bad date or where nothing is given."""
    days = {}
    for name in ("after", "before"):
        days[name] = arguments.get(name, "").strip()
        if days[name] and not _is_day(days[name]):
            raise ValueError(f"{name}: a date is YYYY-MM-DD")
    if not any(str(each).strip() for each in arguments.values()):
        raise ValueError("give keywords")
    return store.search(
        arguments.get("keywords", ""),
        sender=arguments.get("from", ""),
        recipient=arguments.get("to", ""),
        limit=limit,
        **days,
    )


def show_hits(hits: list[Hit]) -> str:
    """One line for each hit.

    >>> show_hits([Hit(7, "2024-03-01", "Ann Lee", "Plan", "the plan\\nis")])
    '7 | 2024-03-01 | Ann Lee | Plan | the plan is'
    """
    return "\n".join(" ".join(" | ".join(map(str, hit)).split())[:MAX_LINE] for hit in hits) or "no mail"


def show_mail(mail: Mail) -> str:
    """A mail, its body cut at MAX_BODY."""
    pairs = (("id", mail.id), ("date", mail.date), ("from", mail.sender), ("to", mail.recipients), ("", mail.subject))
    head = "\n".join(f"{name} {' '.join(str(value).split())}".strip()[:MAX_LINE] for name, value in pairs)
    return f"{head}\n{mail.body[:MAX_BODY]}{'… (cut)' if len(mail.body) > MAX_BODY else ''}"


def _is_day(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
