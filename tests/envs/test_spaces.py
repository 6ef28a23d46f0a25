import pytest

from latih.core import Message
from latih.envs import MessageSpace, message_of, messages_of, text_of

HI = Message(role="user", content="hi")


def test_contains_text_messages_and_lists_of_any_length() -> None:
    space = MessageSpace()
    assert all(item in space for item in ("", "x" * 1_000_000, HI, [], [HI, HI]))
    assert not any(item in space for item in (None, 5, b"hi", ["hi"], (HI,), {"role": "user"}))


def test_samples_are_the_same_under_a_seed() -> None:
    space, other = MessageSpace(seed=3), MessageSpace()
    other.seed(3)
    samples = [space.sample() for _ in range(50)]
    assert samples == [other.sample() for _ in range(50)]
    assert len(set(samples)) == 50
    assert all(sample in space for sample in samples)
    assert space == other


def test_jsonable_round_trip() -> None:
    space = MessageSpace()
    items = ["a", HI, [HI, Message(role="assistant", content="yes")], []]
    assert space.from_jsonable(space.to_jsonable(items)) == items


def test_plain_forms() -> None:
    assert messages_of("hi") == messages_of(HI) == messages_of([HI]) == [HI]
    assert message_of("yes") == Message(role="assistant", content="yes")
    assert text_of("yes") == text_of(Message(role="assistant", content="yes")) == "yes"
    for bad in (None, 5, ["hi"], {"role": "user"}):
        with pytest.raises(TypeError, match="an observation is a str, a Message or a list of Messages"):
            messages_of(bad)
        with pytest.raises(TypeError, match="an action is a str or a Message"):
            message_of(bad)
