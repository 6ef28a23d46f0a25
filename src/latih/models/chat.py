"""Conversations to tokens and back: the chat template, rendered turn by turn so that what was sampled is kept."""

import json
import re
from collections.abc import Sequence as SequenceOf
from pathlib import Path
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.sandbox

from latih.core.errors import ModelError
from latih.core.messages import ImagePart, Message, ToolSchema
from latih.models.tokenizer import Tokenizer, read_json
from latih.models.tools import OPEN, inline_tools, parse_tool_calls

GUARD = "\ufdd0"
"""A code point that is never a character. Put inside a control token's name it keeps that name plain text until the
control tokens of the template itself have been found; a guard that a text holds already is doubled."""
REPLY = f"reply{GUARD}here"
"""Stands for a reply whose tokens are known already. The single guard keeps any text from looking like it."""
_PROBE = ToolSchema(name="probe_tool", description="")


class Renderer:
    """Renders messages into a model's tokens, and reads sampled tokens as a message.

    The tokens equal those of the whole rendered text wherever a conversation is rendered at once; `extend` adds to
    tokens that exist without touching them. Text inside messages never becomes a control token.

    `strftime_now` is left undefined on purpose, so that templates fall back on their fixed date: the same conversation
    gives the same tokens on every day.
    """

    def __init__(self, tokenizer: Tokenizer, template: str) -> None:
        """Raises ModelError where the template does not compile or cannot render a plain conversation."""
        self.tokenizer = tokenizer
        try:
            self._template = _ENVIRONMENT.from_string(template)
        except jinja2.TemplateError as exc:
            raise ModelError(f"the chat template does not compile: {exc}") from exc
        pattern = tokenizer.special_pattern.pattern
        self._names = re.compile(f"(?=(?:{pattern}))(.)", re.DOTALL)
        user = self._user = Message(role="user", content="hello")
        self.native_tools = self._has_native_tools(user)
        """Whether the template shows tools itself; otherwise they go into the system message."""
        self._bare_calls = self.native_tools and OPEN not in template
        after = self._text([*self._entries([user], ()), {"role": "assistant", "content": REPLY}], (), False)
        end = tokenizer.special_pattern.match(after.partition(REPLY)[2])
        self._end = end.group() if end else ""
        ends = [tokenizer.special_ids[self._end]] if self._end else []
        self.stop_ids: list[int] = list(dict.fromkeys([*ends, *tokenizer.eos_ids]))
        """The ids that end a reply: the template's end of turn, then the tokenizer's ends of text."""
        self._before = self._text(self._entries([user], ()), (), True)

    @classmethod
    def from_folder(cls, folder: Path, tokenizer: Tokenizer | None = None) -> "Renderer":
        """The renderer of a model's folder. Raises ModelError where it holds no chat template."""
        return cls(tokenizer or Tokenizer.from_folder(folder), load_template(folder))

    def render(
        self, messages: SequenceOf[Message], tools: SequenceOf[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        """The tokens of a whole conversation; with `generate`, up to where the assistant's next reply begins.

        Raises ModelError where a message holds an image, or the template refuses the conversation.
        """
        return self._encode(self._text(self._entries(messages, tools), tools, generate))

    def extend(
        self,
        ids: SequenceOf[int],
        messages: SequenceOf[Message],
        new: SequenceOf[Message],
        tools: SequenceOf[ToolSchema] = (),
    ) -> list[int]:
        """The tokens that follow `ids` so that the `new` messages are read and the next reply can begin.

        `ids` render `messages`, the last of which is the reply that was sampled. Where it was cut before its stop
        token, the template's end of turn comes first among the tokens returned: it was not sampled.
        """
        if not messages or messages[-1].role != "assistant":
            raise ValueError("extend follows a reply: the last of `messages` must be the assistant's")
        # What stands before the last reply is not used, so past replies need not render the way they were sampled.
        past = [Message(role="assistant") if each.role == "assistant" else each for each in messages[:-1]]
        entries = [*self._entries(past, tools), {"role": "assistant", "content": REPLY}, *self._entries(new, ())]
        after = self._text(entries, tools, True).partition(REPLY)[2]
        if ids and ids[-1] in self.stop_ids:
            after = after.removeprefix(self._end)
        return self._encode(after)

    def parse(self, ids: SequenceOf[int]) -> Message:
        """The assistant's message that sampled `ids` mean: without the stop token, its tool calls taken apart."""
        if ids and ids[-1] in self.stop_ids:
            ids = ids[:-1]
        text, calls = parse_tool_calls(self.tokenizer.decode(ids), bare=self._bare_calls)
        return Message(role="assistant", content=text, tool_calls=calls)

    def reply(self, message: Message) -> list[int]:
        """The tokens of an assistant's message as a policy would sample them, its end of turn included.

        The inverse of `parse`, as far as the template shows all of the message. Raises ModelError where the template
        does not render a reply as a continuation of its prompt.
        """
        whole = self._text(self._entries([self._user, message], ()), (), False)
        if not whole.startswith(self._before):
            raise ModelError("the chat template does not render a reply as a continuation of its prompt")
        ids = self._encode(whole[len(self._before) :])
        stops = [i for i, token in enumerate(ids) if token in self.stop_ids]
        return ids[: stops[-1] + 1] if stops else ids

    def _has_native_tools(self, user: Message) -> bool:
        try:
            return _PROBE.name in self._render([self._entry(user)], [_PROBE], False)
        except ModelError:
            return False

    def _entries(self, messages: SequenceOf[Message], tools: SequenceOf[ToolSchema]) -> list[dict[str, Any]]:
        """Messages in the form that templates read."""
        for i, message in enumerate(messages):
            if not isinstance(message.content, str):
                for part in message.content:
                    if isinstance(part, ImagePart):
                        raise ModelError(
                            f"the model reads text only, but message {i} ({message.role}) holds an image "
                            f"({part.media_type}): leave images out"
                        )
        if not self.native_tools:
            messages = inline_tools(messages, tools)
        return [self._entry(message) for message in messages]

    def _entry(self, message: Message) -> dict[str, Any]:
        entry: dict[str, Any] = {"role": message.role, "content": self._guard(message.text)}
        if message.tool_calls:
            entry["tool_calls"] = [
                {
                    "type": "function",
                    "id": call.id,
                    "function": self._guard({"name": call.name, "arguments": call.arguments}),
                }
                for call in message.tool_calls
            ]
        if message.tool_call_id is not None:
            entry["tool_call_id"] = message.tool_call_id
        if message.name is not None:
            entry["name"] = self._guard(message.name)
        return entry

    def _guard(self, value: Any) -> Any:
        """The same value with no control token's name in its strings."""
        if isinstance(value, str):
            if GUARD in value:
                value = value.replace(GUARD, GUARD * 2)
            return self._names.sub(rf"\1{GUARD}", value)
        if isinstance(value, dict):
            return {self._guard(key): self._guard(each) for key, each in value.items()}
        return [self._guard(each) for each in value] if isinstance(value, list) else value

    def _text(self, entries: list[dict[str, Any]], tools: SequenceOf[ToolSchema], generate: bool) -> str:
        return self._render(entries, tools if self.native_tools else (), generate)

    def _render(self, entries: list[dict[str, Any]], tools: SequenceOf[ToolSchema], generate: bool) -> str:
        offered = [{"type": "function", "function": self._guard(tool.model_dump())} for tool in tools]
        try:
            return self._template.render(
                messages=entries, tools=offered or None, add_generation_prompt=generate, **self.tokenizer.named
            )
        except Exception as exc:  # a template is somebody's program: it may fail in any way
            raise ModelError(f"the chat template refuses this conversation: {exc}") from exc

    def _encode(self, text: str) -> list[int]:
        """The tokens of rendered text. Control tokens split text before anything else does, so pieces can be cached."""
        ids: list[int] = []
        for piece in self.tokenizer.pieces(text):
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids += self.tokenizer.encode(_GUARDS.sub(r"\1", piece) if GUARD in piece else piece)
        return ids


def load_template(folder: Path) -> str:
    """The chat template of a model's folder. Raises ModelError where there is none."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = read_json(folder / "tokenizer_config.json").get("chat_template")
    if isinstance(template, list):  # several, by name
        named = [each for each in template if isinstance(each, dict) and each.get("name") == "default"]
        template = named[0].get("template") if named else None
    if not isinstance(template, str):
        raise ModelError(f"{folder} has no chat template: take an instruct model, or write its chat_template.jinja")
    return template


_GUARDS = re.compile(f"{GUARD}({GUARD}?)")


def _refuse(reason: str) -> NoReturn:
    raise jinja2.TemplateError(reason)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON, as templates expect it; jinja2's own escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    """The environment that chat templates are written for: that of transformers."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    return environment


_ENVIRONMENT = _environment()
