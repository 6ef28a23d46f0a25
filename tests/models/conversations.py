"""Conversations of every supported kind, with our renderer and that of transformers for each."""

import functools

import tokenizers
from hypothesis import strategies as st

from latih.core import Message, ToolCall, ToolSchema
from latih.models.chat import Renderer
from latih.models.tokenizer import Tokenizer
from tests.models.templates import NAMED, TEMPLATES, trained

KINDS = sorted(TEMPLATES)
CALCULATOR = ToolSchema(
    name="calculator",
    description="Arithmetic.",
    parameters={"type": "object", "properties": {"expression": {"type": "string"}}},
)


@functools.cache
def renderer(kind: str) -> Renderer:
    backend = tokenizers.Tokenizer.from_str(trained(kind))
    return Renderer(Tokenizer(backend, named=NAMED[kind]), TEMPLATES[kind])


@functools.cache
def reference(kind: str):
    from transformers import PreTrainedTokenizerFast

    backend = tokenizers.Tokenizer.from_str(trained(kind))
    return PreTrainedTokenizerFast(tokenizer_object=backend, chat_template=TEMPLATES[kind], **NAMED[kind])


def user(text: str) -> Message:
    return Message(role="user", content=text)


def reply(text: str, *calls: ToolCall) -> Message:
    return Message(role="assistant", content=text, tool_calls=list(calls))


def result(text: str) -> Message:
    return Message(role="tool", content=text)


def as_dicts(messages: list[Message]) -> list[dict]:
    return [
        {
            "role": message.role,
            "content": message.text,
            **(
                {
                    "tool_calls": [
                        {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                        for call in message.tool_calls
                    ]
                }
                if message.tool_calls
                else {}
            ),
        }
        for message in messages
    ]


PIECES = [
    "hello",
    " world",
    "\n",
    "\n\n",
    " ",
    "  ",
    "\t",
    "\r\n",
    "123",
    "é",
    "日本",
    "🙂",
    "I'll",
    "<b>",
    "{}",
    "<|im_",
]
texts = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
conversations = st.tuples(
    st.none() | texts,
    st.lists(st.tuples(texts, texts), min_size=1, max_size=4),
    st.booleans(),
).map(
    lambda parts: [
        *([Message(role="system", content=parts[0])] if parts[0] is not None else []),
        *(message for ask, answer in parts[1] for message in (user(ask), reply(answer))),
        *([user("and now?")] if parts[2] else []),
    ]
)
