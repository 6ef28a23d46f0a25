"""The recorder: the one place where a model call becomes a turn, with exactly the tokens that were sampled.

A conversation that comes in is matched to the longest prefix among all sequences of its episode that ends in a
sampled reply. The stored tokens of that prefix are spliced in, and only the messages after it are rendered, so nothing
that was sampled is ever tokenized again. No match starts a new sequence.

A sequence is one row, so it grows at its end only. Where a call goes on from an earlier reply (an edited
history, a second branch), or where another call has meanwhile taken the end, a new sequence starts that holds the
shared tokens as prompt: each sampled token is trained exactly once.
"""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

from latih.core import LatihError, Message, Renderer, Sample, Sequence, ToolSchema, Turn
from latih.rollout.matching import Key, message_keys, tools_key


class UnknownCompletion(LatihError):
    """A completion id that this recorder never gave out."""


@dataclass
class _Row:
    """A sequence and what is needed to match it."""

    sequence: Sequence
    tools: Key
    keys: list[Key] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """How many messages the sequence had when each turn's reply was added. [turns]"""


@dataclass(frozen=True)
class Prompt:
    """A rendered call that waits for its sample."""

    ids: list[int]
    messages: list[Message]
    tools: Key
    row: _Row | None
    """What it extends, where it goes on from the end of a sequence."""
    depth: int
    """How many turns and how many tokens the row had then: `ids[start:]` is new to it."""
    start: int


class Recorder:
    """The sequences of one episode. Used from one event loop; calls may be in flight at once."""

    def __init__(self, renderer: Renderer, name: str = "") -> None:
        """`name` makes the ids of the episode's completions unique: they are `<name>#<number>`."""
        self.renderer = renderer
        self.name = name
        self._rows: list[_Row] = []
        self._turns: dict[str, tuple[Sequence, Turn]] = {}
        self._replies: list[tuple[Message, Turn]] = []

    @property
    def sequences(self) -> list[Sequence]:
        """In the order in which their first turns were recorded."""
        return [row.sequence for row in self._rows]

    @property
    def last(self) -> Turn | None:
        """The turn recorded last."""
        return self._replies[-1][1] if self._replies else None

    def prompt(self, messages: SequenceOf[Message], tools: SequenceOf[ToolSchema] = ()) -> Prompt:
        """Render a call, splicing in the tokens of what is known already."""
        messages, offered = list(messages), tools_key(tools)
        row, turn = self._match(message_keys(messages), offered)
        if row is None:
            return Prompt(self.renderer.render(messages, tools), messages, offered, None, 0, 0)
        end, sequence = row.ends[turn], row.sequence
        ids = sequence.prompt_ids(turn) + sequence.turns[turn].ids
        start = len(ids)
        ids = ids + self.renderer.extend(ids, messages[:end], messages[end:], tools)
        at_end = turn == len(sequence.turns) - 1
        return Prompt(ids, messages, offered, row if at_end else None, turn + 1, start)

    def record(self, prompt: Prompt, sample: Sample, temperature: float = 1.0) -> tuple[Message, Turn]:
        """The reply, and the turn that the sample made of it."""
        row, start = prompt.row, prompt.start
        if row is None or len(row.sequence.turns) != prompt.depth:
            row, start = _Row(Sequence(), prompt.tools), 0
            self._rows.append(row)
        reply = self.renderer.parse(sample.ids)
        turn = Turn.of(
            prompt.ids[start:], sample, temperature=temperature, completion_id=f"{self.name}#{len(self._replies)}"
        )
        conversation = [*prompt.messages, reply]
        row.sequence.turns.append(turn)
        row.sequence.messages[:] = conversation
        row.keys[:] = message_keys(conversation)
        row.ends.append(len(conversation))
        self._turns[turn.completion_id] = (row.sequence, turn)
        self._replies.append((reply, turn))
        return reply, turn

    def find(self, completion_id: str) -> tuple[Sequence, Turn]:
        """The turn that a completion id names, and its sequence. Raises UnknownCompletion."""
        try:
            return self._turns[completion_id]
        except KeyError:
            raise UnknownCompletion(
                f"unknown completion {completion_id!r}: hand in the ids that this episode's own model calls returned"
            ) from None

    def reward(self, action: Message, reward: float) -> None:
        """Credit what the env paid for `action` to the turn that said it, or else to the latest turn."""
        if not self._replies:
            return
        said = (turn for reply, turn in reversed(self._replies) if reply is action or reply == action)
        turn = next(said, self._replies[-1][1])
        turn.reward = (turn.reward or 0.0) + reward

    def _match(self, keys: list[Key], tools: Key) -> tuple[_Row | None, int]:
        """The row and turn whose reply ends the longest known prefix; the end of a row before its middle."""
        best: tuple[int, bool] = (0, False)
        found: tuple[_Row | None, int] = (None, 0)
        for row in self._rows:
            if row.tools != tools:
                continue
            same = next((i for i, (a, b) in enumerate(zip(row.keys, keys, strict=False)) if a != b), None)
            same = min(len(row.keys), len(keys)) if same is None else same
            for turn in reversed(range(len(row.ends))):
                if row.ends[turn] <= same:
                    rank = (row.ends[turn], turn == len(row.ends) - 1)
                    if rank > best:
                        best, found = rank, (row, turn)
                    break
        return found
