"""Matching: when two messages count as the same, so that a conversation that comes back finds its tokens."""

import json
from collections.abc import Hashable, Iterable

from latih.core import Message, TextPart, ToolCall, ToolSchema

Key = Hashable


def message_keys(messages: Iterable[Message]) -> list[Key]:
    """One key per message: equal keys mean the same message. A conversation's prefix has the prefix of its keys.

    Text parts count as their joined text, and tool arguments as the JSON value that they hold. Ids of tool calls are
    whatever the client makes up: only which earlier call a result answers counts, not what the id is.
    """
    order: dict[str, int] = {}
    return [_key(message, order) for message in messages]


def tools_key(tools: Iterable[ToolSchema]) -> Key:
    """Equal for equal lists of tools: they are part of what a prompt renders."""
    return tuple(_canonical(tool.model_dump()) for tool in tools)


def _key(message: Message, order: dict[str, int]) -> Key:
    content = message.content
    if not isinstance(content, str):
        if all(isinstance(part, TextPart) for part in content):
            content = message.text
        else:
            content = _canonical([part.model_dump() for part in content])
    for call in message.tool_calls:
        if call.id:
            order[call.id] = len(order)
    answered = order.get(message.tool_call_id) if message.tool_call_id else None
    calls = tuple((call.name, _arguments(call)) for call in message.tool_calls)
    return (message.role, content, calls, answered, message.name)


def _arguments(call: ToolCall) -> str:
    value = call.arguments
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return call.arguments if isinstance(call.arguments, str) else ""
        if not isinstance(value, dict):
            return str(call.arguments)
    return _canonical(value)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
