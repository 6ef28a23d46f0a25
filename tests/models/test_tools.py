import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latih.core import Message, ToolCall, ToolSchema
from latih.models.tools import CLOSE, OPEN, format_tool_call, inline_tools, parse_tool_calls

OK = '{"name": "add", "arguments": {"a": 1}}'
ADD = ToolCall(id="call_0", name="add", arguments={"a": 1})


SAY = ToolCall(id="call_0", name="say", arguments={"x": "a\nb"})


def broken(raw: str, name: str = "") -> list[ToolCall]:
    return [ToolCall(id="call_0", name=name, arguments=raw)]


@pytest.mark.parametrize(
    ("text", "rest", "calls"),
    [
        ("no call ", "no call ", []),
        (f"{OPEN}{OK}{CLOSE}", "", [ADD]),
        (f"{OPEN}\n{OK}\n{CLOSE}", "", [ADD]),
        (f"Hm.\n{OPEN}{OK}{CLOSE}\nYes", "Hm.\n\nYes", [ADD]),
        (f"{OPEN}{OK}{CLOSE}{OPEN}{OK}{CLOSE}", "", [ADD, ADD.model_copy(update={"id": "call_1"})]),
        # cut before the closing tag, and a second call without closing the first
        (f"{OPEN}{OK}", "", [ADD]),
        (f"{OPEN}{OK}{OPEN}{OK}", "", [ADD, ADD.model_copy(update={"id": "call_1"})]),
        # the tags inside a string are part of the string
        (
            OPEN + json.dumps({"name": "say", "arguments": {"x": f"a{CLOSE}b{OPEN}c"}}) + CLOSE + "!",
            "!",
            [ToolCall(id="call_0", name="say", arguments={"x": f"a{CLOSE}b{OPEN}c"})],
        ),
        # a line break inside a string is what models write
        (f'{OPEN}{{"name": "say", "arguments": {{"x": "a\nb"}}}}{CLOSE}', "", [SAY]),
        (f'{OPEN}{{"name": "f"}}{CLOSE}', "", [ToolCall(id="call_0", name="f", arguments={})]),
        (f'{OPEN}{{"name": "f", "arguments": [1, 2]}}{CLOSE}', "", broken("[1, 2]", "f")),
        (f'{OPEN}{{"name": "f", "arguments": "x"}}{CLOSE}', "", broken("x", "f")),
        (f'{OPEN}{{"name": 3, "arguments": {{}}}}{CLOSE}', "", broken('{"name": 3, "arguments": {}}')),
        (f'{OPEN}{{"name": "f", }}{CLOSE}', "", broken('{"name": "f", }', "f")),
        (f"{OPEN}{OK} and more{CLOSE}", "", broken(f"{OK} and more", "add")),
        (f"{OPEN}[{OK}]{CLOSE}", "", broken(f"[{OK}]", "add")),
        (f"{OPEN}f(1){CLOSE}", "", broken("f(1)")),
        (f"{OPEN}{CLOSE}", "", broken("")),
        (CLOSE, CLOSE, []),
    ],
)  # fmt: skip
def test_parse(text, rest, calls):
    assert parse_tool_calls(text) == (rest, calls)


@pytest.mark.parametrize(
    "value",
    [
        "9" * 5000,  # past Python's limit on digits
        "[" * 100_000,  # past its limit on depth
        "[" * 300 + "]" * 300,  # past what pydantic writes
        # numbers that JSON has and a record may not hold, and text that UTF-8 cannot
        "1e999",
        "-Infinity",
        "NaN",
        '"\\ud800"',
    ],
    ids=["digits", "unclosed", "deep", "1e999", "infinity", "nan", "surrogate"],
)
def test_json_that_cannot_be_stored_is_a_malformed_call(value):
    raw = f'{{"name": "f", "arguments": {{"x": {value}}}}}'
    assert parse_tool_calls(f"{OPEN}{raw}{CLOSE}") == ("", broken(raw, "f"))


def test_extreme_json_that_can_be_stored_is_kept():
    raw = f'{{"name": "f", "arguments": {{"x": {"9" * 1000}, "y": {"[" * 60}{"]" * 60}}}}}'
    message = Message(role="assistant", tool_calls=parse_tool_calls(f"{OPEN}{raw}{CLOSE}")[1])
    assert message.tool_calls[0].arguments["x"] == int("9" * 1000)
    assert Message.model_validate_json(message.model_dump_json()) == message


def test_bare_calls():
    llama = '<|python_tag|>{"name": "add", "parameters": {"a": 1}}'
    assert parse_tool_calls(llama) == (llama, [])
    assert parse_tool_calls(llama, bare=True) == ("", [ADD])
    assert parse_tool_calls(' {"name": "add", "parameters": {"a": 1}}\n', bare=True) == ("", [ADD])
    for text in ('{"name": "add"}', "{}", "hello", '{"name": "add", "parameters": {}} or so', "3"):
        assert parse_tool_calls(text, bare=True) == (text, [])


JSON_BITS = [
    OPEN,
    CLOSE,
    OK,
    '{"name"',
    ": ",
    '"f"',
    ", ",
    '"arguments"',
    "{",
    "}",
    "[",
    '"',
    "\\",
    "\\u",
    "NaN",
    "1e999",
]
fragments = st.lists(st.sampled_from(JSON_BITS) | st.text(max_size=5), max_size=20).map("".join)


@given(text=fragments, bare=st.booleans())
def test_parse_never_raises_and_gives_what_can_be_stored(text, bare):
    rest, calls = parse_tool_calls(text, bare=bare)
    assert len(calls) >= (text.count(OPEN) > 0)
    assert [call.id for call in calls] == [f"call_{i}" for i in range(len(calls))]
    message = Message(role="assistant", content=rest, tool_calls=calls)
    assert Message.model_validate_json(message.model_dump_json()) == message
    if not calls:
        assert rest == text


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
)


@given(
    calls=st.lists(st.tuples(st.text(max_size=8), st.dictionaries(st.text(max_size=5), values, max_size=3)), max_size=3)
)
def test_written_calls_parse_back(calls):
    written = [ToolCall(id=f"call_{i}", name=name, arguments=arguments) for i, (name, arguments) in enumerate(calls)]
    assert parse_tool_calls("\n".join(["so", *map(format_tool_call, written)])) == ("so", written)


def test_numbers_keep_their_value():
    (call,) = parse_tool_calls(f'{OPEN}{{"name": "f", "arguments": {{"x": 0.1, "y": 12345678901234567890}}}}{CLOSE}')[1]
    assert call.arguments == {"x": 0.1, "y": 12345678901234567890}
    assert math.isfinite(call.arguments["x"])


def test_inline_tools_leaves_a_plain_conversation_alone():
    messages = [Message(role="system", content="s"), Message(role="user", content="u")]
    assert inline_tools(messages) == messages
    assert messages[0].text == "s"
    assert inline_tools(messages, [ToolSchema(name="f")])[0].text.startswith("s\n\nTools:\n<tools>\n")
    assert messages[0].text == "s"  # the caller's messages are not changed


def test_inline_tools_joins_results_that_stand_together():
    tool = Message(role="tool", content="1")
    plain = inline_tools([tool, tool, Message(role="user", content="u"), tool])
    assert [message.role for message in plain] == ["user", "user", "user"]
    assert [message.text.count("<tool_response>") for message in plain] == [2, 0, 1]
