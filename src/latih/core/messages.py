"""Messages: what an environment shows and what a policy answers, in the shape of the OpenAI chat API."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from latih.core.schema import Record

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class TextPart(Record):
    """A piece of text."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(Record):
    """An image. A text-only model refuses it by name."""

    type: Literal["image"] = "image"
    data: str
    """Base64 of the encoded image."""
    media_type: str = "image/png"


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class ToolCall(Record):
    """A call that the policy wrote. `arguments` stays the raw text where it is not a JSON object."""

    id: str = ""
    name: str
    arguments: dict[str, Any] | str


class ToolSchema(Record):
    """A tool that an environment offers; `parameters` is a JSON schema of type object."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})


class Message(Record):
    """One message of a conversation.

    >>> Message(role="user", content="hello").text
    'hello'
    """

    role: Role
    content: str | list[Part] = ""
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None
    """Of a `tool` message: the call it answers."""
    name: str | None = None

    @property
    def text(self) -> str:
        """The text of the message, its parts joined; images are left out."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))
