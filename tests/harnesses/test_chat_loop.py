"""The default harness, over a bare episode."""

import pytest

from latih.core import ConfigError, Message
from latih.harnesses import ChatLoop, harnesses

SYSTEM = Message(role="system", content="rules")


class BareEpisode:
    """Says n after the n-th action, ends after `length`; the model answers with how many messages it saw."""

    seed, task, max_turns = 0, None, 99
    tools = ()

    def __init__(self, length):
        self.length, self.said, self.prompts, self.model = length, [], [], self

    async def reset(self):
        return [SYSTEM, Message(role="user", content="0")]

    async def chat(self, messages, *, tools=(), params=None):
        self.prompts.append([message.text for message in messages])
        return Message(role="assistant", content=f"r{len(self.prompts)}")

    async def step(self, action):
        self.said.append(action.text)
        return [Message(role="user", content=str(len(self.said)))]

    @property
    def done(self):
        return len(self.said) >= self.length

    def finish(self, reason):
        raise AssertionError("the env ends it")


async def test_it_shows_the_whole_history():
    episode = BareEpisode(3)
    await ChatLoop().play(episode)
    assert episode.said == ["r1", "r2", "r3"]
    assert episode.prompts == [["rules", "0"], ["rules", "0", "r1", "1"], ["rules", "0", "r1", "1", "r2", "2"]]


async def test_a_window_keeps_the_system_message_and_the_last_exchanges():
    episode = BareEpisode(4)
    await ChatLoop(window=1).play(episode)
    assert episode.prompts == [
        ["rules", "0"],
        ["rules", "0", "r1", "1"],
        ["rules", "1", "r2", "2"],
        ["rules", "2", "r3", "3"],
    ]
    memoryless = BareEpisode(3)
    await ChatLoop(window=0).play(memoryless)
    assert memoryless.prompts == [["rules", "0"], ["rules", "1"], ["rules", "2"]]


def test_harnesses_are_known_by_name():
    assert isinstance(harnesses.get("chat_loop")(window=2), ChatLoop)
    with pytest.raises(ConfigError, match="did you mean 'chat_loop'"):
        harnesses.get("chat_lop")
