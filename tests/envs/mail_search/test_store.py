import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import ConfigError
from latih.envs.mail_search import boxes
from latih.envs.mail_search.questions import Mail
from latih.envs.mail_search.store import Store, image, quote, write
from tests.soak import examples

ROOT = Path(__file__).parents[3]
MAILS = [
    Mail(1, "2024-01-05", "Ann Lee", "Bo Kim", "Amber Falcon: budget", "Hi Bo,\nThe budget of Amber Falcon is $4,217."),
    Mail(2, "2024-02-10", "Bo Kim", "Ann Lee, Zoë Ünal", "Lunch", "Soup at the café? NEAR the falcon statue."),
    Mail(3, "2024-03-15", "help@x.example", "Ann Lee", "KX-4821", 'Say "NOT" and KX-4821 * now'),
    Mail(4, "", "Nobody", "", "no date", "4821 KX in the other order"),
]


@pytest.fixture(scope="module")
def store() -> Store:
    return Store(image(MAILS))


def ids(store: Store, keywords: str = "", limit: int = 10, **filters: str) -> list[int]:
    return [hit.id for hit in store.search(keywords, limit=limit, **filters)]


@pytest.mark.parametrize(
    ("keywords", "found"),
    [
        ("budget", [1]),
        ("BUDGET amber", [1]),
        ("falcon", [1, 2]),
        ("falcon budget", [1]),
        ("falcon zebra", [1, 2]),  # none has all: those with any
        ("zebra", []),
        ("cafe", [2]),
        ("CAFÉ", [2]),
        ("unal", [2]),
        ("kx-4821", [3]),
        ("4821 kx", [3, 4]),
        ("$4,217", [1]),
        ("NOT", [3]),
        ("NEAR(falcon statue)", [2]),  # the words NEAR-falcon, side by side in no mail, or statue
        ("falcon OR zebra", [1, 2]),
        ("budget:", [1]),
        ("budget*", [1]),
        ("budg*", []),
        ("subject:lunch", []),
        ('"', []),
        ("!!! ???", []),
        ("", [4, 3, 2, 1]),
        ("   ", [4, 3, 2, 1]),
    ],
)
def test_searches_by_hand(store: Store, keywords: str, found: list[int]) -> None:
    assert sorted(ids(store, keywords)) == sorted(found)
    assert keywords.strip() or ids(store, keywords) == found


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"sender": "ann"}, [1]),
        ({"sender": "X.EXAMPLE"}, [3]),
        ({"recipient": "lee"}, [3, 2]),
        ({"recipient": "ZOË"}, [2]),
        ({"sender": "%"}, []),
        ({"after": "2024-02-10"}, [3, 2]),
        ({"before": "2024-02-10"}, [1]),
        ({"after": "2024-02-10", "before": "2024-02-11"}, [2]),
        ({"after": "2024-02-11", "before": "2024-02-10"}, []),
        ({"sender": "bo", "after": "2024-01-01"}, [2]),
        ({"sender": "' OR 1=1 --"}, []),
        ({"sender": "\0\ud800"}, []),
    ],
)
def test_filters_by_hand(store: Store, filters: dict[str, str], found: list[int]) -> None:
    assert ids(store, **filters) == found
    assert ids(store, "falcon", **filters) == [each for each in (1, 2) if each in found]


def test_hits_show_where_the_words_are_and_are_capped(store: Store) -> None:
    [hit] = store.search("budget", limit=10)
    assert hit == (1, "2024-01-05", "Ann Lee", "Amber Falcon: budget", "Hi Bo,\nThe budget of Amber Falcon is $4,217.")
    long = Store(image([Mail(i, "", "", "", "", "word " * 500 + "needle " + "word " * 500) for i in range(1, 31)]))
    hits = long.search("needle", limit=20)
    assert len(hits) == 20
    assert all("needle" in hit.snippet and len(hit.snippet.split()) <= 16 for hit in hits)
    assert [hit.id for hit in hits] == list(range(30, 10, -1))  # of equals the newer first


OPERATORS = st.sampled_from(
    ['"', "'", "*", "^", ":", "(", ")", "{", "}", "+", "-", "AND", "OR", "NOT", "NEAR(", ",", "\0"]
)


@settings(max_examples=examples(400), deadline=None)
@given(
    st.lists(OPERATORS | st.text(max_size=8) | st.text("falcon budget", max_size=6), max_size=12),
    st.sampled_from(["", " "]),
)
def test_no_query_is_an_error(store: Store, parts: list[str], glue: str) -> None:
    keywords = glue.join(parts)
    found = store.search(keywords, sender=keywords[:3], limit=3)
    assert len(found) <= 3
    assert {hit.id for hit in store.search(keywords, limit=3)} <= {1, 2, 3, 4}
    assert store.find(keywords) is None


@given(st.characters(categories=["Cs", "Cn", "Co", "Mn", "No", "Zl"]))
def test_odd_characters_are_no_error(store: Store, odd: str) -> None:
    assert ids(store, odd, 1) in ([], [4])
    assert 1 in ids(store, f"budget {odd}")


@given(st.text(alphabet=st.characters(categories=["L", "N"], max_codepoint=0x24F), min_size=1, max_size=10))
def test_a_word_of_a_mail_finds_it(word: str) -> None:
    with closing(Store(image([Mail(1, "", "", "", "", f'x "{word}" y'), Mail(2, "", "", "", "", "x y")]))) as box:
        assert 1 in ids(box, word)


def test_quoting() -> None:
    assert quote('a"b') == '"a""b"'
    assert quote("NOT") == '"NOT"'
    assert quote("a\0b\ud800") == '"a b?"'


def test_long_queries_are_cut(store: Store) -> None:
    assert ids(store, "zebra " * 16 + "budget") == []
    assert ids(store, "zebra " * 15 + "budget") == [1]
    assert ids(store, "x" * 1_000_000 + " budget") == [1]


def test_reading(store: Store) -> None:
    assert store.read(2) == MAILS[1]
    for number in (0, -1, 5, 1 << 63, 10**30):
        assert store.read(number) is None


@pytest.mark.parametrize("kind", ["image", "file"])
def test_nothing_can_be_written(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a b%20c?.sqlite"
    write(path, MAILS)
    before = path.read_bytes()
    with closing(Store(path if kind == "file" else image(MAILS))) as box:
        for statement in (
            "INSERT INTO mail(id) VALUES (9)",
            "DELETE FROM mail",
            "DROP TABLE words",
            "INSERT INTO words(words) VALUES ('delete-all')",
            "CREATE TABLE x(a)",
        ):
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                box._connection.execute(statement)
        assert ids(box) == [4, 3, 2, 1]
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_is_no_mailbox_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such mailbox"):
        Store(tmp_path / "absent.sqlite")
    (tmp_path / "text").write_text("no database, but long enough to look at" * 100)
    with pytest.raises(ConfigError, match="text is no mailbox"):
        Store(tmp_path / "text")
    sqlite3.connect(tmp_path / "other").execute("CREATE TABLE a(b)").connection.close()
    with pytest.raises(ConfigError, match="other is no mailbox: no such table"):
        Store(tmp_path / "other")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot write"):
        write(tmp_path / "file" / "mail.sqlite", MAILS)


def test_large_mailboxes_are_made_once_and_by_several_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATIH_CACHE", str(tmp_path))
    code = "from latih.envs.mail_search.boxes import box; from latih.envs.mail_search.store import Store; "
    code += "made = box(3, 2500); print(Store(made.source).search('budget', limit=3), len(made.questions['hop']))"
    env = {"PYTHONPATH": str(ROOT / "src"), "LATIH_CACHE": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    told = {run.communicate()[0] for run in runs}
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len(told) == 1
    assert "156" in told.pop()
    [path] = (tmp_path / "mail_search").iterdir()
    assert path.name == "1-3-2500.sqlite"
    before = path.stat().st_mtime_ns
    monkeypatch.setattr(boxes, "write", lambda *_: pytest.fail("it is there already"))
    seen: list[boxes.Box] = []
    threads = [threading.Thread(target=lambda: seen.append(boxes.box(3, 2500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.source for each in seen] == [path] * 4
    assert all(each is seen[0] for each in seen)
    assert path.stat().st_mtime_ns == before
