import pytest

from latih.core import ToolCall, ToolSchema
from latih.envs.tools import Calls, bad_call, calling, tool_message

TOOLS = [
    ToolSchema(
        name="move",
        parameters={
            "type": "object",
            "properties": {
                "square": {"type": "integer", "minimum": 1},
                "path": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["square"],
            "additionalProperties": False,
        },
    ),
    ToolSchema(name="resign"),
]


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("move", {"square": 5}, None),
        ("resign", {}, None),
        ("mov", {"square": 5}, "error: unknown tool 'mov': did you mean 'move'?"),
        ("move", "{square: 5", "error: the arguments are not a JSON object"),
        ("move", {}, "error: 'square' is a required property"),
        ("move", {"square": "5"}, "error: square: '5' is not of type 'integer'"),
        ("move", {"square": 0}, "error: square: 0 is less than the minimum of 1"),
        ("move", {"square": 1, "path": ["a", 2]}, "error: path: 1: 2 is not of type 'string'"),
        ("move", {"square": 1, "x": 1}, "error: Additional properties are not allowed ('x' was unexpected)"),
    ],
)
def test_faults_are_told_to_the_policy(name: str, arguments: dict[str, object] | str, fault: str | None) -> None:
    assert bad_call(ToolCall(name=name, arguments=arguments), TOOLS) == fault


def test_faults_stay_short() -> None:
    fault = bad_call(ToolCall(name="move", arguments={"square": "x" * 10_000}), TOOLS)
    assert fault is not None
    assert len(fault) == 300


def test_answers_name_their_call() -> None:
    message = tool_message(ToolCall(id="c1", name="move", arguments={}), "ok")
    assert (message.role, message.text, message.tool_call_id, message.name) == ("tool", "ok", "c1", "move")


def test_calls_are_answered_and_counted_up_to_their_bound() -> None:
    def run(name: str, arguments: dict[str, object]) -> str:
        if arguments.get("square") == 9:
            raise ValueError("square 9 is taken")
        return f"{name} {arguments}"

    calls = Calls(TOOLS, 4)
    said = [calling("move", square=9), calling("move", square=2), calling("jump"), calling("resign"), calling("resign")]
    results, beyond = calls.answer([each.tool_calls[0] for each in said[:3]], run)
    assert [each.text for each in results] == [
        "error: square 9 is taken",
        "move {'square': 2}",
        "error: unknown tool 'jump': known: move, resign",
    ]
    assert (beyond, calls.left, calls.metrics) == (False, 1, {"tool_calls": 3.0, "bad_calls": 2.0})
    results, beyond = calls.answer([each.tool_calls[0] for each in said[3:]], run)
    assert ([each.text for each in results], beyond, calls.left) == (["resign {}"], True, 0)
