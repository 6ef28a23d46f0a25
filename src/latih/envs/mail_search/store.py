"""The mailbox as a database: SQLite with a full-text index (FTS5), written once and only read afterwards."""

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from latih.core import ConfigError
from latih.core.files import whole_file
from latih.envs.mail_search.questions import Mail

MAX_WORDS = 16
"""Words of a search that count. With MAX_WORD it bounds the time of a query."""
MAX_WORD = 64
SNIPPET = 16
"""Tokens of a hit's text."""
SCHEMA = """
CREATE TABLE mail(
    id INTEGER PRIMARY KEY, date TEXT, sender TEXT, recipients TEXT, subject TEXT, body TEXT, message_id TEXT,
    sender_key TEXT, recipients_key TEXT
);
CREATE INDEX mail_message_id ON mail(message_id);
CREATE VIRTUAL TABLE words USING fts5(
    sender, recipients, subject, body, content='mail', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
);
"""


class Hit(NamedTuple):
    """One line of a search's result."""

    id: int
    date: str
    sender: str
    subject: str
    snippet: str
    """The part of the body where the words stand, or its beginning."""


def fill(connection: sqlite3.Connection, mails: Iterable[Mail]) -> None:
    """Make the tables and put the mails in. Raises ConfigError where this SQLite has no FTS5."""
    try:
        connection.executescript(SCHEMA)
    except sqlite3.OperationalError as exc:
        raise ConfigError(f"SQLite {sqlite3.sqlite_version} of this Python has no FTS5 ({exc}): use another") from exc
    rows = ((*each, each.sender.casefold(), each.recipients.casefold()) for each in mails)
    connection.executemany("INSERT INTO mail VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.execute("INSERT INTO words(words) VALUES ('rebuild')")
    connection.execute("INSERT INTO words(words) VALUES ('optimize')")
    connection.commit()


def image(mails: Iterable[Mail]) -> bytes:
    """The database of a small mailbox, as the bytes of its file."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, mails)
        return connection.serialize()


def write(path: Path, mails: Iterable[Mail]) -> None:
    """Write the database, whole or not at all; others may write the same one at the same time, the last stays.

    Raises ConfigError where the file system refuses.
    """
    try:
        with whole_file(path) as temporary, contextlib.closing(sqlite3.connect(temporary)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")  # a file that breaks is thrown away
            connection.execute("PRAGMA synchronous = OFF")
            fill(connection, mails)
    except (OSError, sqlite3.OperationalError) as exc:
        raise ConfigError(f"cannot write {path}: {exc}") from exc


class Store:
    """A mailbox to read. Nothing can be written through it, whatever it is asked for.

    Not for several threads at a time; any one may close it.
    """

    def __init__(self, source: Path | bytes) -> None:
        """Open a file, read-only, or an image. Raises ConfigError where there is no mailbox."""
        if isinstance(source, bytes):
            self._connection = sqlite3.connect(":memory:", check_same_thread=False)
            self._connection.deserialize(source)
        else:
            if not source.is_file():
                raise ConfigError(f"no such mailbox: {source}; `python -m latih.envs.mail_search.importer` makes one")
            # immutable: no lock files beside it; it is replaced as a whole and never changed
            uri = f"{source.resolve().as_uri()}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.execute("PRAGMA trusted_schema = OFF")
        try:
            self._connection.execute("SELECT id, message_id, sender_key FROM mail LIMIT 1").fetchone()
        except sqlite3.DatabaseError as exc:
            self.close()
            raise ConfigError(f"{source if isinstance(source, Path) else 'image'} is no mailbox: {exc}") from exc

    def search(
        self,
        keywords: str = "",
        *,
        sender: str = "",
        recipient: str = "",
        after: str = "",
        before: str = "",
        limit: int,
    ) -> list[Hit]:
        """Mails with all of the keywords; where there is none, mails with any of them. Best first, by BM25.

        Keywords are words, whatever they spell: no operators. Without any, the newest mails come first. `sender` and
        `recipient` are parts of a name or address in any case, `after` (that day or later) and `before` (an earlier
        day) are dates, YYYY-MM-DD.
        """
        words = [quote(each[:MAX_WORD]) for each in keywords.split() if any(map(str.isalnum, each))][:MAX_WORDS]
        where, values = "", list[str]()
        for clause, value in (
            ("instr(mail.sender_key, ?)", clean(sender.strip().casefold())),
            ("instr(mail.recipients_key, ?)", clean(recipient.strip().casefold())),
            ("mail.date >= ?", after),
            ("mail.date < ? AND mail.date != ''", before),
        ):
            if value:
                where, values = f"{where} AND {clause}", [*values, value]
        columns = "mail.id, mail.date, mail.sender, mail.subject"
        if not words:
            query = (
                f"SELECT {columns}, substr(mail.body, 1, 100) FROM mail WHERE 1{where} ORDER BY mail.id DESC LIMIT ?"
            )
            return (
                [Hit(*row) for row in self._connection.execute(query, (*values, limit))] if not keywords.strip() else []
            )
        query = (
            f"SELECT {columns}, snippet(words, 3, '', '', '…', {SNIPPET}) FROM words "
            f"JOIN mail ON mail.id = words.rowid WHERE words MATCH ?{where} ORDER BY bm25(words), mail.id DESC LIMIT ?"
        )
        for glue in (" AND ", " OR "):
            rows = self._connection.execute(query, (glue.join(words), *values, limit)).fetchall()
            if rows:
                return [Hit(*row) for row in rows]
        return []

    def read(self, number: int) -> Mail | None:
        """The mail with this id."""
        if not 0 < number < 1 << 63:  # what SQLite cannot hold it does not have
            return None
        query = "SELECT id, date, sender, recipients, subject, body, message_id FROM mail WHERE id = ?"
        row = self._connection.execute(query, (number,)).fetchone()
        return Mail(*row) if row else None

    def find(self, message_id: str) -> int | None:
        """The id of the mail with this `Message-ID`, with or without its angle brackets."""
        query = "SELECT min(id) FROM mail WHERE message_id = ? AND message_id != ''"
        number: int | None = self._connection.execute(query, (clean(message_id.strip().strip("<>")),)).fetchone()[0]
        return number

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def quote(word: str) -> str:
    """A word as an FTS5 string: nothing in it is an operator.

    >>> quote('a"b*')
    '"a""b*"'
    """
    return '"' + clean(word).replace('"', '""') + '"'


def clean(text: str) -> str:
    """Text that SQLite takes: a NUL would end it, and a lone surrogate has no UTF-8."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
