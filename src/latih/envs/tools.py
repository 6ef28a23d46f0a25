"""Tool calls: what is wrong with one, in words for the policy, since a bad call is an observation and no error."""

from collections.abc import Iterable

from latih.core import Message, ToolCall, ToolSchema, nearest


def bad_call(call: ToolCall, tools: Iterable[ToolSchema]) -> str | None:
    """One line that says what is wrong with the call (unknown tool, arguments off its JSON schema), or None."""
    from jsonschema import Draft202012Validator  # 0.1 s to import: only envs with tools pay it

    schemas = {tool.name: tool.parameters for tool in tools}
    if call.name not in schemas:
        return f"error: unknown tool {call.name!r}: {nearest(call.name, schemas)}"
    if isinstance(call.arguments, str):
        return "error: the arguments are not a JSON object"
    faults = Draft202012Validator(schemas[call.name]).iter_errors(call.arguments)
    first = min(faults, key=lambda fault: (list(map(str, fault.path)), fault.message), default=None)
    if first is None:
        return None
    where = "".join(f"{each}: " for each in first.path)
    return f"error: {where}{first.message}"[:300]  # the message quotes the policy's own, unbounded, text


def tool_message(call: ToolCall, content: str) -> Message:
    """The answer to `call`."""
    return Message(role="tool", content=content, tool_call_id=call.id, name=call.name)
