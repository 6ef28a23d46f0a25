"""The space of messages, and the plain forms (strings) that stand for them."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from gymnasium.spaces import Space

from latih.core import Message

Item: TypeAlias = str | Message | list[Message]


class MessageSpace(Space[Item]):
    """Every text, every message and every list of messages, of any length.

    >>> "hello" in MessageSpace(), [Message(role="user", content="hi")] in MessageSpace(), 5 in MessageSpace()
    (True, True, False)
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Texts have no fixed shape."""
        return False

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string, a message or a list of messages."""
        return isinstance(x, str | Message) or (isinstance(x, list) and all(isinstance(each, Message) for each in x))

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Printable ASCII of geometric length (mean 16), the same under the same seed. There is no mask to give."""
        length = int(self.np_random.geometric(1 / 16))
        return bytes(self.np_random.integers(32, 127, size=length, dtype="uint8")).decode("ascii")

    def to_jsonable(self, sample_n: Iterable[Item]) -> list[Any]:
        """Plain values that `from_jsonable` turns back."""
        return [
            item
            if isinstance(item, str)
            else item.model_dump(mode="json")
            if isinstance(item, Message)
            else [message.model_dump(mode="json") for message in item]
            for item in sample_n
        ]

    def from_jsonable(self, sample_n: Iterable[Any]) -> list[Item]:
        """The inverse of `to_jsonable`."""
        return [
            item
            if isinstance(item, str)
            else [Message.model_validate(each) for each in item]
            if isinstance(item, list)
            else Message.model_validate(item)
            for item in sample_n
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSpace)

    def __repr__(self) -> str:
        return "MessageSpace()"


def messages_of(observation: Any) -> list[Message]:
    """An observation as new messages; a string is one user message. Raises TypeError for anything else."""
    if isinstance(observation, str):
        return [Message(role="user", content=observation)]
    if isinstance(observation, Message):
        return [observation]
    if isinstance(observation, list | tuple) and all(isinstance(each, Message) for each in observation):
        return list(observation)
    raise TypeError(f"an observation is a str, a Message or a list of Messages, not {type(observation).__name__}")


def message_of(action: Any) -> Message:
    """An action as an assistant message. Raises TypeError for anything but a string or a Message."""
    if isinstance(action, str):
        return Message(role="assistant", content=action)
    if isinstance(action, Message):
        return action
    raise TypeError(f"an action is a str or a Message, not {type(action).__name__}")


def text_of(action: Any) -> str:
    """The text of an action."""
    return action if isinstance(action, str) else message_of(action).text
