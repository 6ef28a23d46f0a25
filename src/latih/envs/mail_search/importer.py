"""Real mail into a mailbox: `python -m latih.envs.mail_search.importer MAIL OUT.sqlite`, of a maildir or an mbox.

Plain text is kept, or else HTML without its tags; attachments are not. Ids count from 1 in the order of the dates.
"""

import argparse
import email
import html
import mailbox
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path

from latih.core import LatihError
from latih.envs.mail_search.questions import Mail
from latih.envs.mail_search.store import clean, write

MAX_BODY = 200_000
"""Characters of a body that are kept."""


def import_mail(source: Path, target: Path) -> int:
    """Read a maildir (a folder with `cur` and `new`) or an mbox (a file) into a database; how many mails it has.

    A maildir's folders are read as well, those of Maildir++ (`.Archive`) and nested ones (`Archive`).

    Raises LatihError where the source is neither, or holds no mail.
    """
    mails = sorted(_messages(source), key=lambda each: each[0])
    if not mails:
        raise LatihError(f"{source} holds no mail: give a maildir (a folder with cur and new) or an mbox")
    write(target, (mail._replace(id=number) for number, (_, mail) in enumerate(mails, start=1)))
    return len(mails)


def _messages(source: Path) -> Iterator[tuple[tuple[float, str], Mail]]:
    """Each mail with what it is sorted by: its time, then its Message-ID."""
    if (source / "cur").is_dir() and (source / "new").is_dir():
        for current in sorted(source.rglob("cur")):
            if (current.parent / "new").is_dir():
                yield from _of(mailbox.Maildir(current.parent, create=False))
    elif source.is_file():
        yield from _of(mailbox.mbox(source, create=False))
    else:
        raise LatihError(f"{source} is neither a maildir (a folder with cur and new) nor an mbox (a file)")


def _of(box: mailbox.Maildir | mailbox.mbox) -> Iterator[tuple[tuple[float, str], Mail]]:
    try:
        for key in sorted(box.keys(), key=str):
            # the parser of old: the new one raises at malformed headers, in ways that differ by version
            message = email.message_from_bytes(box.get_bytes(key))
            moment = _moment(message)
            mail = Mail(
                id=0,
                date=moment.date().isoformat() if moment else "",
                sender=_header(message, "From"),
                recipients=", ".join(each for each in (_header(message, "To"), _header(message, "Cc")) if each),
                subject=_header(message, "Subject"),
                body=_body(message)[:MAX_BODY],
                message_id=_header(message, "Message-ID").strip("<>"),
            )
            yield (moment.timestamp() if moment else 0.0, mail.message_id), mail
    finally:
        box.close()


def _header(message: Message, name: str) -> str:
    raw = message.get(name, "")
    try:
        value = str(make_header(decode_header(raw)))
    except (LookupError, ValueError, MessageError):  # an encoding that is unknown or broken
        value = str(raw)
    return clean(" ".join(value.split()))


def _moment(message: Message) -> datetime | None:
    """The time of the mail, in UTC."""
    try:
        moment = parsedate_to_datetime(_header(message, "Date"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _body(message: Message) -> str:
    texts: dict[str, list[str]] = {"text/plain": [], "text/html": []}
    for part in message.walk():
        kind = part.get_content_type()
        if kind in texts and part.get_content_disposition() != "attachment":
            texts[kind].append(_text(part))
    if any(each.strip() for each in texts["text/plain"]):
        return "\n".join(texts["text/plain"]).strip()
    return "\n".join(_plain(each) for each in texts["text/html"]).strip()


def _text(part: Message) -> str:
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes):
        return ""
    try:
        text = raw.decode(part.get_content_charset() or "utf-8", "replace")
    except (LookupError, ValueError):  # a charset that does not exist
        text = raw.decode("utf-8", "replace")
    return clean(text.replace("\r\n", "\n"))


def _plain(text: str) -> str:
    text = re.sub(r"(?is)<(script|style|head)\b.*?</\1\s*>|<!--.*?-->", " ", text)
    text = re.sub(r"(?i)<(br|/p|/div|/tr|/li|/h[1-6])\b[^>]*>", "\n", text)
    lines = html.unescape(re.sub(r"<[^>]*>", " ", text)).split("\n")
    return "\n".join(line for each in lines if (line := " ".join(each.split())))


def main(argv: Sequence[str] | None = None) -> int:
    """The command: 0, or 2 where something is to be mended."""
    parser = argparse.ArgumentParser(prog="python -m latih.envs.mail_search.importer", description=__doc__)
    parser.add_argument("source", type=Path, help="a maildir or an mbox")
    parser.add_argument("target", type=Path, help="the database to write")
    args = parser.parse_args(argv)
    try:
        count = import_mail(args.source, args.target)
    except LatihError as exc:
        print(f"importer: {exc}", file=sys.stderr)
        return exc.exit_code
    print(f"{count} mails in {args.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
