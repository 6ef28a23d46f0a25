import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from latih.core import ConfigError, ImagePart, Message, SamplerError, SamplingParams, TextPart, ToolCall, ToolSchema
from latih.models.endpoint import EndpointModel, of_openai, to_openai
from tests.serving import says, serving

TOOL = ToolSchema(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {}}})


@pytest.fixture
def served() -> Iterator[SimpleNamespace]:
    with serving() as state:
        yield state


async def test_what_is_asked_and_answered(served: SimpleNamespace) -> None:
    served.answers = [says(content="5")]
    model = EndpointModel(served.url + "/", "big", key="secret")
    params = SamplingParams(temperature=0.5, max_tokens=8, seed=2**40 + 3, stop=["\n"])
    reply = await model.chat([Message(role="user", content="2+3")], params=params)
    await model.close()
    assert reply == Message(role="assistant", content="5")
    [request] = served.requests
    assert (request.path, request.key) == ("/v1/chat/completions", "Bearer secret")
    assert request.body == {
        "model": "big",
        "messages": [{"role": "user", "content": "2+3"}],
        "temperature": 0.5,
        "max_tokens": 8,
        "seed": 3,
        "stop": ["\n"],
    }


async def test_tools_go_out_and_calls_come_back(served: SimpleNamespace) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    served.answers = [says(content=None, tool_calls=[call])]
    model = EndpointModel(served.url, "big", key="")
    reply = await model.chat([Message(role="user", content="go")], tools=[TOOL], params=SamplingParams(top_k=5))
    assert reply.tool_calls == [ToolCall(id="c1", name="add", arguments={"a": 1})]
    result = Message(role="tool", content="1", tool_call_id="c1", name="add")
    await model.chat([Message(role="user", content="go"), reply, result], tools=[TOOL])
    await model.close()
    first, second = served.requests
    assert first.key is None
    assert first.body["tools"] == [{"type": "function", "function": TOOL.model_dump()}]
    assert first.body["top_k"] == 5
    assert second.body["messages"][1:] == [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "1", "tool_call_id": "c1", "name": "add"},
    ]


def test_arguments_too_deep_to_read_stay_text() -> None:
    deep = '{"a":' * 100_000
    said = {"tool_calls": [{"id": "1", "function": {"name": "add", "arguments": deep}}]}
    assert of_openai(said).tool_calls[0].arguments == deep


def test_parts_and_raw_arguments() -> None:
    parts = [TextPart(text="what is"), ImagePart(data="QUJD")]
    assert to_openai(Message(role="user", content=parts))["content"] == [
        {"type": "text", "text": "what is"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
    ]
    for raw in ("{", "[1]", "null"):
        message = of_openai({"tool_calls": [{"id": "x", "function": {"name": "add", "arguments": raw}}]})
        assert message.tool_calls[0].arguments == raw
        assert to_openai(message)["tool_calls"][0]["function"]["arguments"] == raw


async def test_a_busy_endpoint_is_asked_again(served: SimpleNamespace) -> None:
    served.answers = [(503, "busy"), (429, "slower"), says(content="ok")]
    model = EndpointModel(served.url, "big", pause=0.01)
    assert (await model.chat([Message(role="user", content="x")])).text == "ok"
    assert len(served.requests) == 3
    served.answers = [(503, "busy")]
    with pytest.raises(SamplerError, match="answered 503: busy"):
        await model.chat([Message(role="user", content="x")])
    assert len(served.requests) == 6
    await model.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, "no key"), "answered 401: no key"),
        ((200, "<html>"), "answered no JSON: '<html>'"),
        ((200, "[" * 100_000), "answered no JSON"),
        ((200, {"choices": []}), "something else than a chat completion: IndexError"),
        ((200, {"choices": [{"message": None}]}), "something else than a chat completion"),
    ],
)
async def test_faults_are_told_and_not_asked_again(served: SimpleNamespace, answer: Any, said: str) -> None:
    served.answers = [answer]
    model = EndpointModel(served.url, "big", pause=0.01)
    with pytest.raises(SamplerError, match=said):
        await model.chat([Message(role="user", content="x")])
    assert len(served.requests) == 1
    await model.close()


async def test_nobody_there(served: SimpleNamespace) -> None:
    with pytest.raises(SamplerError, match="cannot be asked: ConnectError"):
        await EndpointModel("http://127.0.0.1:1/v1", "big", pause=0.01).chat([Message(role="user", content="x")])
    with pytest.raises(ConfigError, match="is no endpoint: give its base URL"):
        EndpointModel("localhost:8000", "big")


def test_connections_close_with_the_loop_that_opened_them() -> None:
    async def ask(times: int) -> None:
        for _ in range(times):
            await model.chat([Message(role="user", content="x")])

    with serving(says(content="ok")) as served:
        model = EndpointModel(served.url, "big")
        for opened in (1, 2):
            asyncio.run(ask(3))
            assert (served.connections, served.open()) == (opened, 0)
    assert len(served.requests) == 6


async def test_a_model_that_was_closed_may_be_asked_again(served: SimpleNamespace) -> None:
    served.answers = [says(content="ok")]
    model = EndpointModel(served.url, "big")
    for opened in (1, 2):
        await model.chat([Message(role="user", content="x")])
        await model.close()
        await model.close()
        assert (served.connections, await asyncio.to_thread(served.open)) == (opened, 0)
