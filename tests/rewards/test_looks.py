import pytest

from latih.rewards.looks import READERS, Look, cheat

MODULE = """from shop import parse


def test_parse():
    expected = {"key": "one"}
    assert parse("key=one two") == expected
    got = parse("key=three")
    assert got == {"key": "three"}
    assert got["key"] == "three", len("x")


def test_helper():
    assert parse("b a") == ["a", "b"]
"""


def line(text: str) -> int:
    return MODULE[: MODULE.index(text)].count("\n") + 1


def test_the_words_of_an_expectation_and_of_what_stands_around_it() -> None:
    look = Look(MODULE, line("assert got =="), whole=False)
    assert look.expected == ["key", "three"]
    assert look.given == ["key", "one", "key", "one", "two", "key", "three", "key", "three", "x"]
    assert (look.test["three"], look.module["parse"]) == (3, 5)
    whole = Look(MODULE, line("got = parse"), whole=True)
    assert whole.expected == ["key", "one", "key", "three", "three"]
    assert whole.given == ["key", "one", "two", "key", "three", "key", "x"]


@pytest.mark.parametrize(
    ("text", "change", "told"),
    [
        # Each word stands once more in the test; a misspelt one does not.
        ("assert got ==", ("three", "three"), {"familiar statement": True, "familiar test": True}),
        ("assert got ==", ('{"key": "three"}', '{"key": "thref"}'), {"familiar statement": False}),
        # "b" is handed in first, so this one looks wrong though it is right.
        ('assert parse("b', ("a", "a"), {"ordered statement": False, "complete statement": True}),
        ('assert parse("b', ('["a", "b"]', '["b", "a"]'), {"ordered statement": True}),
        ('assert parse("b', ('["a", "b"]', '["b", "b"]'), {"ordered statement": True, "complete test": False}),
    ],
)
def test_readers(text: str, change: tuple[str, str], told: dict[str, bool]) -> None:
    at = line(text)
    module = MODULE.replace(*change)
    assert {name: READERS[name](module, at) for name in told} == told


def test_a_cheat_is_a_program_by_itself() -> None:
    source = cheat("ordered test")
    compile(source, "", "exec")
    assert "from latih" not in source
    assert "import latih" not in source
