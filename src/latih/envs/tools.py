"""Tool calls: answered, counted and bounded; a bad one is an observation, in words for the policy, and no error."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from latih.core import Message, ToolCall, ToolSchema, nearest


def tool_schema(
    name: str,
    description: str = "",
    optional: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    /,
    **required: dict[str, Any],
) -> ToolSchema:
    """A tool that takes these arguments and no others, each given by its JSON schema.

    >>> tool_schema("read", path={"type": "string"}).parameters["required"]
    ['path']
    """
    parameters: dict[str, Any] = {"type": "object", "properties": {**required, **optional}}
    if required:
        parameters["required"] = list(required)
    return ToolSchema(name=name, description=description, parameters=parameters | {"additionalProperties": False})


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


def calling(name: str, **arguments: Any) -> Message:
    """What an assistant says that calls one tool: for scripted policies."""
    return Message(role="assistant", tool_calls=[ToolCall(name=name, arguments=arguments)])


class Calls:
    """The tool calls of one episode: answered and counted, up to a bound."""

    def __init__(self, tools: Iterable[ToolSchema], most: int) -> None:
        self.tools = tuple(tools)
        self.most = most
        self.made = self.bad = 0

    @property
    def left(self) -> int:
        """How many may still be made."""
        return self.most - self.made

    def answer(
        self, calls: Sequence[ToolCall], run: Callable[[str, dict[str, Any]], str]
    ) -> tuple[list[Message], bool]:
        """A tool message for each call, and whether there was a call beyond the bound, which is not answered.

        `run(name, arguments)` does what a well-formed call asks for; a ValueError of it is told to the policy, as
        what is wrong with a bad call is.
        """
        allowed = calls[: self.left]
        self.made += len(allowed)
        return [tool_message(call, self._result(call, run)) for call in allowed], len(allowed) < len(calls)

    @property
    def metrics(self) -> dict[str, float]:
        """`tool_calls`: those that were answered; `bad_calls`: those of them that were bad."""
        return {"tool_calls": float(self.made), "bad_calls": float(self.bad)}

    def _result(self, call: ToolCall, run: Callable[[str, dict[str, Any]], str]) -> str:
        fault = bad_call(call, self.tools)
        if fault is None and isinstance(call.arguments, dict):
            try:
                return run(call.name, call.arguments)
            except ValueError as exc:
                fault = f"error: {exc}"[:300]
        self.bad += 1
        return str(fault)
