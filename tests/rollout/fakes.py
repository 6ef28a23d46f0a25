"""Doubles: a renderer whose tokens are characters, samplers that follow a script, and small envs."""

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace

from latih.core import Message, Sample, StopReason, ToolCall

START, STOP = 0, 1


def ids_of(text: str) -> list[int]:
    return [ord(c) + 2 for c in text]


class CharRenderer:
    """ChatML with one token per character. A reply `CALL name {json}` is a tool call."""

    stop_ids = [STOP]

    def render(self, messages, tools=(), *, generate=True):
        ids = ids_of("tools:" + ",".join(tool.name for tool in tools)) if tools else []
        for message in messages:
            ids += [START, *ids_of(message.role + "\n" + self._body(message)), STOP, *ids_of("\n")]
        return ids + ([START, *ids_of("assistant\n")] if generate else [])

    def extend(self, ids, messages, new, tools=()):
        assert messages[-1].role == "assistant"
        closing = [] if ids[-1] == STOP else [STOP]
        return closing + ids_of("\n") + self.render(new)

    def parse(self, ids):
        text = "".join(chr(i - 2) for i in ids if i > STOP)
        if text.startswith("CALL "):
            _, name, arguments = text.split(" ", 2)
            return Message(
                role="assistant", tool_calls=[ToolCall(id="made-up", name=name, arguments=json.loads(arguments))]
            )
        return Message(role="assistant", content=text)

    def reply(self, message):
        return [*ids_of(self._body(message)), STOP]

    def _body(self, message):
        calls = [f"CALL {call.name} {json.dumps(call.arguments)}" for call in message.tool_calls]
        return message.text + "".join(calls)


class ScriptedSampler:
    """Answers with `script(call, prompt_ids)`: a text, a Sample, or an exception to raise. Keeps a log of all calls."""

    policy_version = 7

    def __init__(self, script: Callable[[int, list[int]], object], context_length: int = 10_000, delay: float = 0.0):
        self.script = script
        self.context_length = context_length
        self.delay = delay
        self.log: list[SimpleNamespace] = []
        self.live = self.most = self.forgot = 0

    def forget(self):
        assert not self.live
        self.forgot += 1

    async def sample(self, prompt_ids, params):
        call = SimpleNamespace(prompt=list(prompt_ids), params=params, ids=None)
        number = len(self.log)
        self.log.append(call)
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            await asyncio.sleep(self.delay(number) if callable(self.delay) else self.delay)
            said = self.script(number, call.prompt)
        finally:
            self.live -= 1
        if isinstance(said, BaseException):
            raise said
        sample = said if isinstance(said, Sample) else says(said, params.max_tokens)
        call.ids = sample.ids
        return sample


def says(text: str, max_tokens: int = 10_000) -> Sample:
    ids = [*ids_of(text), STOP]
    cut = len(ids) > max_tokens
    ids = ids[:max_tokens]
    return Sample(
        ids=ids,
        logprobs=[-0.5] * len(ids),
        stop_reason=StopReason.LENGTH if cut else StopReason.STOP,
        policy_version=7,
    )


def user(text: str) -> Message:
    return Message(role="user", content=text)


def assistant(text: str) -> Message:
    return Message(role="assistant", content=text)


class CountEnv:
    """Ends after `length` steps; each pays 1. Everything can be made to misbehave by a subclass."""

    tools = ()
    made: list["CountEnv"] = []

    def __init__(self, length: int = 2):
        self.length = length
        self.closed = 0
        self.steps = 0
        self.actions = []
        type(self).made.append(self)

    def __init_subclass__(cls):
        cls.made = []

    def reset(self, *, seed=None, options=None):
        self.seed, self.options = seed, options
        return f"start {seed}", {}

    def step(self, action):
        self.steps += 1
        self.actions.append(action)
        return f"step {self.steps}", 1.0, self.steps >= self.length, False, {"metrics": {"steps": self.steps}}

    def close(self):
        self.closed += 1
