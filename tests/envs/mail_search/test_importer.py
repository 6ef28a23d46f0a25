import mailbox
import sqlite3
from contextlib import closing
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latih.envs.mail_search.importer import import_mail, main
from latih.envs.mail_search.questions import Mail
from latih.envs.mail_search.store import Store
from tests.soak import examples


def plain() -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Cc"] = "Zoë Ünal <zoe@x.example>", "bo@x.example", "ann@x.example"
    message["Subject"], message["Date"] = "Grüße", "Fri, 05 Jan 2024 23:30:00 -0500"
    message["Message-ID"] = "<one@x.example>"
    message.set_content("The lease ends on 2027-03-31.\nFrom now on.\n")
    return bytes(message)


def mixed() -> bytes:
    message = EmailMessage()
    message["From"], message["Date"], message["Message-ID"] = "shop", "Wed, 03 Jan 2024 10:00:00 +0000", "<two@x>"
    message.set_content("<html><head><style>p {}</style></head><p>Boiler:&nbsp;&euro;3,400<br>soon</p></html>", "html")
    message.add_attachment(b"secret", maintype="application", subtype="pdf", filename="a.pdf")
    message.add_attachment("attached text", filename="b.txt")
    return bytes(message)


ODD = b"""From: =?no-such-charset?b?////?= <odd@x>
Date: some day
Subject: =?utf-8?q?broken=FF?=
Content-Type: text/plain; charset=no-such

caf\xc3\xa9 \x00 \xff
"""

WANTED = [
    Mail(1, "", "?", "", "?", "café \0 \ufffd".replace("\0", " ")),
    Mail(2, "2024-01-03", "shop", "", "", "Boiler: €3,400\nsoon", "two@x"),
    Mail(
        3,
        "2024-01-06",  # 23:30 in New York is the next day in UTC
        "Zoë Ünal <zoe@x.example>",
        "bo@x.example, ann@x.example",
        "Grüße",
        "The lease ends on 2027-03-31.\nFrom now on.",
        "one@x.example",
    ),
]


def maildir(folder: Path) -> Path:
    box = mailbox.Maildir(folder / "Maildir")
    for raw in (plain(), mixed(), ODD):
        box.add(raw)
    return folder / "Maildir"


def folders(folder: Path) -> Path:
    """A mail in the inbox, one in a folder of Maildir++, and one in a nested folder."""
    box = mailbox.Maildir(folder / "Maildir")
    box.add(plain())
    box.add_folder("Archive").add(mixed())
    mailbox.Maildir(folder / "Maildir" / "Lists").clear()
    mailbox.Maildir(folder / "Maildir" / "Lists" / "Odd").add(ODD)
    return folder / "Maildir"


def mbox(folder: Path) -> Path:
    box = mailbox.mbox(folder / "mbox")
    for raw in (plain(), mixed(), ODD):
        box.add(raw)
    box.close()
    return folder / "mbox"


@pytest.mark.parametrize("make", [maildir, folders, mbox])
def test_maildir_and_mbox_give_the_same_mailbox(make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    target = tmp_path / "mail.sqlite"
    assert main([str(make(tmp_path)), str(target)]) == 0
    assert capsys.readouterr().out == f"3 mails in {target}\n"
    with closing(Store(target)) as store:
        odd, *rest = [store.read(number) for number in (1, 2, 3)]
        assert odd is not None
        assert (odd.date, odd.recipients, odd.body) == ("", "", WANTED[0].body)
        assert "odd@x" in odd.sender
        if make is maildir:  # an mbox writes From at the start of a line as >From
            assert rest == WANTED[1:]
        assert [hit.id for hit in store.search("lease", limit=5)] == [3]
        assert [hit.id for hit in store.search("boiler 3,400", limit=5)] == [2]
        assert store.search("secret", limit=5) == store.search("attached", limit=5) == []
        assert [store.find(each) for each in ("<one@x.example>", " two@x", "three@x", "")] == [3, 2, None, None]
        assert [hit.id for hit in store.search(after="2024-01-04", limit=5)] == [3]
        assert [hit.id for hit in store.search(before="2024-01-04", limit=5)] == [2]


def test_what_holds_no_mail_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("no mail at all\n")
    for source, fault in ((tmp_path, "neither a maildir"), (tmp_path / "text", "no mail"), (tmp_path / "x", "neither")):
        assert main([str(source), str(tmp_path / "out.sqlite")]) == 2
        told = capsys.readouterr().err
        assert fault in told
        assert told.count("\n") == 1
    assert not (tmp_path / "out.sqlite").exists()


def test_importing_again_replaces_the_mailbox_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "mail.sqlite"
    box = mailbox.Maildir(tmp_path / "Maildir")
    box.add(plain())
    assert import_mail(tmp_path / "Maildir", target) == 1
    with closing(Store(target)) as old:
        box.add(mixed())
        assert import_mail(tmp_path / "Maildir", target) == 2
        assert old.read(2) is None
        with closing(Store(target)) as new:
            assert new.read(2) is not None
    assert sqlite3.connect(target).execute("PRAGMA integrity_check").fetchone() == ("ok",)


HEADERS = st.sampled_from([b"From", b"To", b"Cc", b"Date", b"Subject", b"Message-ID", b"Content-Type", b"X"])
VALUES = st.binary(max_size=30) | st.sampled_from(
    [
        b"=?utf-8?b?!!!?=",
        b"=?x?q?a?=",
        b"multipart/mixed; boundary=b",
        b"text/html; charset=\xff",
        b"Mon, 99 Foo 0000 99:99:99 +9999",
        b"Thu, 01 Jan 0001 00:00:00 +2359",
        b'"',
        b"a@b <c",
    ]
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(HEADERS, VALUES), max_size=8), st.binary(max_size=80))
def test_broken_mail_is_taken_as_it_is(tmp_path: Path, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    source = tmp_path / "broken"
    head = b"".join(name + b": " + value.replace(b"\n", b" ") + b"\n" for name, value in headers)
    source.write_bytes(b"From x\n" + head + b"\n" + body)
    assert import_mail(source, tmp_path / "broken.sqlite") >= 1
