"""Endpoints: a chat model behind OpenAI's HTTP protocol, for comparisons, judges and opponents; it is never trained."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from latih.core import ConfigError, EndpointError, ImagePart, Message, SamplingParams, ToolCall, ToolSchema

if TYPE_CHECKING:
    import httpx

KEY = "OPENAI_API_KEY"
"""The environment variable that holds the key, where the endpoint wants one."""
ATTEMPTS = 3
"""How often a call is made that the endpoint is too busy for, or that does not reach it."""
SEEDS = 2**31
"""Some servers keep a seed in 32 bits."""


class EndpointModel:
    """A `ChatModel` at `<url>/chat/completions`.

    The protocol is that of https://platform.openai.com/docs/api-reference/chat. Used from one event loop at a time;
    connections close with the loop that opened them, where that is run by `asyncio.run`, and by `close`.
    """

    def __init__(self, url: str, model: str, *, key: str | None = None, timeout: float = 600.0, pause: float = 1.0):
        """`url` ends where `/chat/completions` begins, usually in `/v1`; `key` defaults to that of `OPENAI_API_KEY`.

        `timeout` and `pause`, before the second attempt and doubled before the next, are in seconds.

        Raises ConfigError where `url` is none.
        """
        try:
            host = urlsplit(url).hostname if url.startswith(("http://", "https://")) else None
            urlsplit(url).port  # noqa: B018 - read to be checked
        except ValueError:
            host = None
        if not host:
            raise ConfigError(f"{url!r} is no endpoint: give its base URL, such as http://localhost:8000/v1")
        self.url = url.rstrip("/") + "/chat/completions"
        self.model = model
        self._key = os.environ.get(KEY, "") if key is None else key
        self._timeout = timeout
        self._pause = pause
        self._http: httpx.AsyncClient | None = None
        self._opened: AsyncGenerator[httpx.AsyncClient] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def chat(
        self,
        messages: SequenceOf[Message],
        *,
        tools: SequenceOf[ToolSchema] = (),
        params: SamplingParams | None = None,
    ) -> Message:
        """The endpoint's answer. Raises EndpointError."""
        body: dict[str, Any] = {"model": self.model, "messages": [to_openai(each) for each in messages]}
        if tools:
            body["tools"] = [{"type": "function", "function": each.model_dump()} for each in tools]
        answer = await self._post(body | _options(params or SamplingParams()))
        try:
            return of_openai(answer["choices"][0]["message"])
        except (LookupError, TypeError, AttributeError, ValueError) as exc:
            raise EndpointError(f"{self.url} answered something else than a chat completion: {exc!r}") from exc

    async def close(self) -> None:
        """Close the connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()

    async def _post(self, body: dict[str, Any]) -> Any:
        import httpx

        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(self._pause * 2 ** (attempt - 1))
            try:
                response = await (await self._client()).post(self.url, json=body)
            except httpx.HTTPError as exc:
                fault = f"{self.url} cannot be asked: {type(exc).__name__}: {exc}"
                continue
            if response.is_success:
                try:
                    return response.json()
                except (ValueError, RecursionError):
                    raise EndpointError(f"{self.url} answered no JSON: {response.text[:200]!r}") from None
            fault = f"{self.url} answered {response.status_code}: {response.text[:300]}"
            if response.status_code != 429 and response.status_code < 500:
                break  # asking again would not help
        raise EndpointError(fault)

    async def _client(self) -> "httpx.AsyncClient":
        loop = asyncio.get_running_loop()
        if self._opened is None or self._loop is not loop:  # connections belong to the loop that opened them
            self._opened, self._loop = self._open(), loop
            self._http = await anext(self._opened)
        assert self._http is not None
        return self._http

    async def _open(self) -> "AsyncGenerator[httpx.AsyncClient]":
        """A client. It is given by a generator because an event loop, before it ends, lets its generators clean up."""
        import httpx  # where it is used: judges and opponents import this module before they need it

        http = httpx.AsyncClient(
            timeout=self._timeout, headers={"Authorization": f"Bearer {self._key}"} if self._key else {}
        )
        try:
            yield http
        finally:
            await http.aclose()


def _options(params: SamplingParams) -> dict[str, Any]:
    """What the protocol knows of the parameters; what only some servers know goes along where it is not the default."""
    options: dict[str, Any] = {"temperature": params.temperature, "max_tokens": params.max_tokens}
    if params.stop:
        options["stop"] = params.stop
    if params.seed is not None:
        options["seed"] = params.seed % SEEDS
    for name in ("top_p", "top_k", "min_p"):
        if getattr(params, name) != SamplingParams.model_fields[name].default:
            options[name] = getattr(params, name)
    return options


def to_openai(message: Message) -> dict[str, Any]:
    """The message as the protocol writes it.

    >>> to_openai(Message(role="user", content="hello"))
    {'role': 'user', 'content': 'hello'}
    """
    content: Any = message.content
    if not isinstance(content, str):
        content = [
            {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}
            if isinstance(part, ImagePart)
            else {"type": "text", "text": part.text}
            for part in content
        ]
    made: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
                },
            }
            for call in message.tool_calls
        ]
    return made | {name: value for name in ("tool_call_id", "name") if (value := getattr(message, name)) is not None}


def of_openai(said: dict[str, Any]) -> Message:
    """The assistant's message that the protocol wrote. What is none raises KeyError, TypeError and the like."""
    calls = [
        ToolCall(
            id=call.get("id") or "", name=call["function"]["name"], arguments=_arguments(call["function"]["arguments"])
        )
        for call in said.get("tool_calls") or ()
    ]
    return Message(role="assistant", content=said.get("content") or "", tool_calls=calls)


def _arguments(text: str) -> dict[str, Any] | str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
