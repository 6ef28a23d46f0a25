import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from latih.core import ConfigError, ImagePart, Message, SamplerError, SamplingParams, TextPart, ToolCall, ToolSchema
from latih.models.endpoint import EndpointModel, of_openai, to_openai

TOOL = ToolSchema(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {}}})


@pytest.fixture
def served() -> Iterator[SimpleNamespace]:
    """A server that gives `answers`, one for each request (the last one again and again), and keeps the `requests`."""
    state = SimpleNamespace(answers=[], requests=[])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(SimpleNamespace(path=self.path, key=self.headers.get("Authorization"), body=body))
            code, answer = state.answers[min(len(state.requests), len(state.answers)) - 1]
            text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield state
    server.shutdown()
    server.server_close()


def says(**message: Any) -> tuple[int, dict[str, Any]]:
    return 200, {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


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
