import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.envs.mail_search.phrases import CHANGE, FACT, ORDER
from latih.envs.mail_search.questions import KINDS, Mail
from latih.envs.mail_search.world import MAX_MAILS, ROUND, mailbox
from tests.envs.playing import printed_in_other_processes
from tests.soak import examples

ROOT = Path(__file__).parents[3]


def pattern(template: str) -> re.Pattern[str]:
    """What a phrase looks like, read back: independent of the code that writes it."""
    text = re.escape(template)
    value = r"[A-Z][a-z]+ [A-Z][a-z]+|[$A-Z0-9][\w,-]*"
    for name, what in (("topic", r"\w+ \w+"), ("attribute", r"[a-z]+"), ("value", value), ("old", value)):
        text = text.replace(re.escape("{" + name + "}"), f"(?P<{name}>{what})")
    return re.compile(text)


STATEMENTS = [pattern(each) for each in (*FACT, *CHANGE)]


def stated(mail: Mail) -> tuple[str, str, str] | None:
    """The topic, attribute and value that a mail states, instructions below the signature left out."""
    for each in STATEMENTS:
        if found := each.search(mail.body.partition("\n--\n")[0]):
            return found["topic"], found["attribute"], found["value"]
    return None


def history(mails: list[Mail]) -> dict[tuple[str, str], list[tuple[str, str, int]]]:
    """Of each attribute of each topic: its (date, value, id), oldest first."""
    told: dict[tuple[str, str], list[tuple[str, str, int]]] = {}
    for mail in mails:
        if fact := stated(mail):
            told.setdefault(fact[:2], []).append((mail.date, fact[2], mail.id))
    return told


def test_statements_are_read_back() -> None:
    for body, fact in (
        ("Hi Bo,\nThe room of Bold Lynx is B214.\nAda", ("Bold Lynx", "room", "B214")),
        ("Hi Bo,\nForget $1,200: the budget of Bold Lynx is now $1,300. Thanks.", ("Bold Lynx", "budget", "$1,300")),
        ("Correction: the room of Bold Lynx is C377, not B214. More on Monday.", ("Bold Lynx", "room", "C377")),
        ("It is settled: Ann Lee is the owner of Bold Lynx.", ("Bold Lynx", "owner", "Ann Lee")),
        ("The room of Bold Lynx is still open.", None),
        ("Hi\n--\nThe room of Bold Lynx is B214.", None),
    ):
        found = stated(Mail(1, "", "", "", "", body))
        assert found == fact, body


@pytest.mark.parametrize(("seed", "size"), [(0, 16), (1, 200), (2, 2000)])
def test_the_truth_is_what_the_mails_say(seed: int, size: int) -> None:
    mails, questions = mailbox(seed, size)
    told = history(mails)
    by_id = {mail.id: mail for mail in mails}
    asked = Counter()
    for kind, listed in questions.items():
        for each in listed:
            asked[kind] += 1
            assert each.kind == kind
            if kind == "hop":
                topic = re.fullmatch(r"What is the extension of the owner of (\w+ \w+)\?", each.text)
                assert topic
                [(_, owner, first)] = told[topic[1], "owner"]
                [(_, extension, second)] = told[owner, "extension"]
                assert (each.answers, each.sources) == ((extension,), (frozenset({first}), frozenset({second})))
                continue
            parts = re.fullmatch(r"What (?:is|was) the (\w+) of (\w+ \w+?)(?: on (\S+))?\?", each.text)
            assert parts
            attribute, topic_name, day = parts.groups()
            values = told.get((topic_name, attribute), [])
            if day:
                assert day not in [when for when, *_ in values]
                values = [value for value in values if value[0] < day]
            if kind == "none":
                assert (values, each.answers, each.sources) == ([], (), ())
                assert any(attribute in mail.body and topic_name in mail.body for mail in mails)
                continue
            value = values[-1][1]
            assert each.answers == (value,)
            assert each.sources == (frozenset(number for _, said, number in values if said == value),)
            different = len({said for _, said, _ in values})
            assert kind == "date" or different == {"lookup": 1, "injected": 1, "update": 2}[kind]
            if kind == "injected":
                [bait] = each.baits
                assert bait != value
                orders = [mail for mail in by_id.values() if bait in mail.body and topic_name in mail.body]
                assert len(orders) == 1
                assert stated(orders[0]) in (None, (topic_name, attribute, value))
    rounds = size // ROUND
    assert asked == dict.fromkeys(KINDS, rounds) | {"lookup": 2 * rounds}


def test_near_duplicates_share_a_word_and_the_phrase_but_not_the_value() -> None:
    _, questions = mailbox(5, 400)
    for one, other in zip(questions["lookup"][::2], questions["lookup"][1::2], strict=True):
        first, second = one.text.split(), other.text.split()
        assert first[:-1] == second[:-1]
        assert first[-1] != second[-1]
        assert one.answers != other.answers
        assert not one.sources[0] & other.sources[0]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(ROUND, 300))
def test_every_mailbox_is_sound(seed: int, size: int) -> None:
    mails, questions = mailbox(seed, size)
    assert [mail.id for mail in mails] == list(range(1, size + 1))
    assert [mail.date for mail in mails] == sorted(mail.date for mail in mails)
    assert all(re.fullmatch(r"2024-\d\d-\d\d", mail.date) and mail.sender != mail.recipients for mail in mails)
    assert all("{" not in mail.body + mail.subject for mail in mails)
    texts = [each.text for listed in questions.values() for each in listed]
    assert len(set(texts)) == len(texts)
    assert set(questions) == set(KINDS)


def test_orders_state_nothing() -> None:
    for template in ORDER:
        text = template.format(topic="Bold Lynx", attribute="room", value="C377")
        assert stated(Mail(1, "", "", "", "", text)) is None


def test_the_largest_mailbox_has_names_enough() -> None:
    mails, questions = mailbox(0, MAX_MAILS)
    assert len(mails) == MAX_MAILS
    assert min(map(len, questions.values())) == MAX_MAILS // ROUND


def test_mailboxes_are_the_same_in_every_process_and_differ_by_seed() -> None:
    code = "from latih.envs.mail_search.world import mailbox; print([mailbox(seed, 100) for seed in (0, 1, 2)])"
    runs = printed_in_other_processes(code)
    # Sets print in an order of their own, and those here hold small integers: the same everywhere.
    assert len(runs) == 1
    assert mailbox(0, 100) == mailbox(0, 100)
    assert mailbox(0, 100)[0] != mailbox(1, 100)[0]
    assert mailbox(0, 100)[0] != mailbox(0, 101)[0][:100]


def test_a_mailbox_stays_what_it_is() -> None:
    # Cached files and published results rest on it: a change raises VERSION, and this value.
    text = repr(mailbox(0, 64)[0]).encode()
    assert hashlib.sha256(text).hexdigest()[:16] == "fd8ba2297776e61d"
