"""Plain play: whoever has no tokens (a script, an endpoint, nobody at all) is played and recorded as any policy is.

Each message is one token of a vocabulary that grows as messages come, so the harness, the recorder, the bounds and the
deadlines are those of every rollout, and no language model is loaded. Nothing can be trained on such tokens.
"""

from collections.abc import Sequence as SequenceOf

from latih.core import ChatModel, Message, Sample, SamplingParams, StopReason, ToolSchema

Entry = Message | tuple[ToolSchema, ...]


class MessageRenderer:
    """One token per message, and one before them for the tools that are offered."""

    stop_ids: list[int] = []

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._ids: dict[str, int] = {}

    def render(
        self, messages: SequenceOf[Message], tools: SequenceOf[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        """The tokens of a conversation."""
        return [self._id(each) for each in ([tuple(tools)] if tools else []) + list[Entry](messages)]

    def extend(
        self,
        ids: SequenceOf[int],
        messages: SequenceOf[Message],
        new: SequenceOf[Message],
        tools: SequenceOf[ToolSchema] = (),
    ) -> list[int]:
        """The tokens of the new messages."""
        return self.render(new)

    def parse(self, ids: SequenceOf[int]) -> Message:
        """The reply, which is one token."""
        [reply], _ = self.read(ids)
        return reply

    def reply(self, message: Message) -> list[int]:
        """The token of a reply."""
        return [self._id(message)]

    def read(self, ids: SequenceOf[int]) -> tuple[list[Message], tuple[ToolSchema, ...]]:
        """The conversation and the tools that tokens stand for."""
        entries = [self._entries[token] for token in ids]
        messages = [each for each in entries if isinstance(each, Message)]
        return messages, next((each for each in entries if not isinstance(each, Message)), ())

    def _id(self, entry: Entry) -> int:
        parts = [entry] if isinstance(entry, Message) else entry
        key = type(entry).__name__ + "".join(each.model_dump_json() for each in parts)
        if key not in self._ids:
            self._ids[key] = len(self._entries)
            self._entries.append(entry)
        return self._ids[key]


class ChatSampler:
    """A sampler whose one token is what a chat model says."""

    policy_version = 0
    context_length = 2**31
    """Messages: no bound."""

    def __init__(self, model: ChatModel, renderer: MessageRenderer) -> None:
        self.model = model
        self.renderer = renderer

    async def sample(self, prompt_ids: SequenceOf[int], params: SamplingParams) -> Sample:
        """The model's reply. Raises what the model raises."""
        messages, tools = self.renderer.read(prompt_ids)
        ids = self.renderer.reply(await self.model.chat(messages, tools=tools, params=params))
        return Sample(ids=ids, logprobs=[0.0], stop_reason=StopReason.STOP, policy_version=0)

    def forget(self) -> None:
        """Nothing is kept."""
