"""Matching of messages."""

from latih.core import ImagePart, Message, TextPart, ToolCall, ToolSchema
from latih.rollout.matching import message_keys, tools_key


def test_the_keys_of_a_prefix_are_the_prefix_of_the_keys():
    messages = [
        Message(role="user", content="x"),
        Message(
            role="assistant",
            tool_calls=[ToolCall(id="1", name="f", arguments={}), ToolCall(id="2", name="f", arguments={})],
        ),
        Message(role="tool", content="r", tool_call_id="2"),
        Message(role="tool", content="r", tool_call_id="1"),
    ]
    assert message_keys(messages[:2]) == message_keys(messages)[:2]
    assert len(set(message_keys(messages))) == 4  # which call a result answers is part of it


def test_images_and_broken_arguments_are_compared_as_they_are():
    image = [Message(role="user", content=[TextPart(text="x"), ImagePart(data="AA")])]
    other = [Message(role="user", content=[TextPart(text="x"), ImagePart(data="AB")])]
    assert message_keys(image) == message_keys(image) != message_keys(other)
    for raw in ("{not json", "[1]"):
        call = Message(role="assistant", tool_calls=[ToolCall(name="f", arguments=raw)])
        assert message_keys([call]) == message_keys([call])
        assert message_keys([call]) != message_keys(
            [Message(role="assistant", tool_calls=[ToolCall(name="f", arguments={})])]
        )


def test_tools_are_compared_by_all_they_say():
    assert tools_key([ToolSchema(name="f")]) == tools_key([ToolSchema(name="f")])
    assert tools_key([ToolSchema(name="f")]) != tools_key([ToolSchema(name="f", description="d")])
