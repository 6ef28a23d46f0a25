"""Tool calls as text: how they are shown to a model whose template knows no tools, and the one parser that reads them.

The convention is that of Hermes and Qwen2.5: schemas inside <tools>, calls inside <tool_call>, results inside
<tool_response>.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from latih.core.messages import Message, ToolCall, ToolSchema

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MAX_DEPTH = 64
"""Of the JSON in a call. Writers of records give up on JSON nested a few hundred deep."""
_NAME = re.compile(r'"name"\s*:\s*"([^"\\]*)"')


def parse_tool_calls(text: str, *, bare: bool = False) -> tuple[str, list[ToolCall]]:
    """The text without its calls, and the calls. Never raises: malformed ones keep their raw text as arguments.

    With `bare`, a text that is one JSON object with a name and parameters is a call too (the way of Llama 3).

    >>> parse_tool_calls('Let me see.\\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>')
    ('Let me see.', [ToolCall(id='call_0', name='add', arguments={'a': 1})])
    >>> parse_tool_calls('<tool_call>{"name": "add", 1}</tool_call>')[1]
    [ToolCall(id='call_0', name='add', arguments='{"name": "add", 1}')]
    """
    if bare and (call := _bare_call(text)):
        return "", [call]
    kept: list[str] = []
    calls: list[ToolCall] = []
    at = 0
    while (start := text.find(OPEN, at)) >= 0:
        kept.append(text[at:start])
        start += len(OPEN)
        value, end = _json_object(text, start)
        # what is not JSON ends at the closing tag, at the next call, or with the text where the reply was cut
        ends = [place for tag in (CLOSE, OPEN) if (place := text.find(tag, end)) >= 0]
        close = min(ends, default=len(text))
        if value is None or text[end:close].strip():
            calls.append(_broken_call(text[start:close].strip(), len(calls)))
        else:
            calls.append(_call(value, text[start:close].strip(), len(calls)))
        at = close + len(CLOSE) if text.startswith(CLOSE, close) else close
    if not calls:
        return text, []
    return ("".join(kept) + text[at:]).strip(), calls


def inline_tools(messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> list[Message]:
    """The same conversation for a template without tools: schemas in the system message, calls and results as text."""
    plain: list[Message] = []
    after_tool = False
    for message in messages:
        if message.role == "tool":
            response = f"<tool_response>\n{message.text}\n</tool_response>"
            if after_tool:  # several results make one user message
                response = f"{plain.pop().text}\n{response}"
            plain.append(Message(role="user", content=response))
        elif message.tool_calls:
            lines = [message.text] * bool(message.text) + [format_tool_call(call) for call in message.tool_calls]
            plain.append(Message(role=message.role, content="\n".join(lines)))
        else:
            plain.append(message)
        after_tool = message.role == "tool"
    if tools:
        section = format_tools(tools)
        if plain and plain[0].role == "system":
            plain[0] = Message(role="system", content=f"{plain[0].text}\n\n{section}")
        else:
            plain.insert(0, Message(role="system", content=section))
    return plain


def format_tools(tools: Sequence[ToolSchema]) -> str:
    """The section of a system message that offers tools; short, since every token is read again in every episode."""
    schemas = "\n".join(_dump(tool.model_dump()) for tool in tools)
    call = '{"name": <name>, "arguments": <object>}'
    return f"Tools:\n<tools>\n{schemas}\n</tools>\nTo call one, write:\n{OPEN}\n{call}\n{CLOSE}"


def format_tool_call(call: ToolCall) -> str:
    """A call as the model writes it."""
    return f"{OPEN}\n{_dump({'name': call.name, 'arguments': call.arguments})}\n{CLOSE}"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _call(value: dict[str, Any], raw: str, index: int) -> ToolCall:
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str):
        return _broken_call(raw, index)
    if not isinstance(arguments, dict | str):
        arguments = _dump(arguments)
    return ToolCall(id=f"call_{index}", name=name, arguments=arguments)


def _broken_call(raw: str, index: int) -> ToolCall:
    name = _NAME.search(raw)
    return ToolCall(id=f"call_{index}", name=name.group(1) if name else "", arguments=raw)


def _bare_call(text: str) -> ToolCall | None:
    text = text.strip().removeprefix("<|python_tag|>").strip()
    value, end = _json_object(text, 0)
    if value is None or end != len(text) or not {"parameters", "arguments"} & value.keys() or "name" not in value:
        return None
    return _call(value, text, 0)


def _json_object(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """The JSON object that begins at `start`, after white space, and where it ends; None and `start` without one."""
    while start < len(text) and text[start].isspace():
        start += 1
    if not text.startswith("{", start):
        return None, start
    try:
        value, end = _DECODER.raw_decode(text, start)
        _dump(value).encode()  # a lone surrogate, written as an escape, could not be stored
        storable = _depth(value) <= MAX_DEPTH
    except (ValueError, RecursionError):
        return None, start
    if not storable:
        return None, start
    return value, end


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


def _number(text: str) -> float:
    """Trajectories hold finite numbers only."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


# not strict: models write line breaks inside strings
_DECODER = json.JSONDecoder(strict=False, parse_float=_number, parse_constant=_number)
