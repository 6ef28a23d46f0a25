"""The default harness: reset, then chat and step until the episode is over."""

from typing import Annotated

from pydantic import Field, validate_call

from latih.core import Episode, Message
from latih.harnesses.registry import harnesses


@harnesses.register("chat_loop")
class ChatLoop:
    """One conversation with one model.

    `window`: show the model the leading system messages, the last `window` exchanges (what the world said and
    the reply to it) and the newest messages; None shows everything. Once a window has slid, the prompt no longer
    extends the one before it, so each turn from there on is a sequence of its own.

    A reply that was cut by `max_tokens` is given to the env like any other: the env judges it. The episode bounds its
    turns itself, and a full context ends it by the exception that `chat` raises.

    """

    @validate_call
    def __init__(self, window: Annotated[int, Field(ge=0)] | None = None) -> None:
        self.window = window

    async def play(self, episode: Episode) -> None:
        """Play the whole episode. Faults of the env and the model pass through."""
        first = await episode.reset()
        body = next((i for i, message in enumerate(first) if message.role != "system"), len(first))
        system, exchanges = first[:body], [first[body:]]
        while not episode.done:
            shown = exchanges if self.window is None else exchanges[-self.window - 1 :]
            prompt = system + [message for exchange in shown for message in exchange]
            reply = await episode.model.chat(prompt, tools=episode.tools)
            new: list[Message] = await episode.step(reply)
            exchanges[-1].append(reply)
            exchanges.append(list(new))
