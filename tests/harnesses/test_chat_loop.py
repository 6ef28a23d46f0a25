"""The default harness, over a bare episode."""

import pytest

from latih.core import ConfigError, Message
from latih.harnesses import ChatLoop, HarnessSettings, harnesses

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


def test_settings_choose_a_harness():
    assert HarnessSettings().make().window is None
    assert isinstance(harnesses.get("chat_loop"), type)
    harness = HarnessSettings(id="chat_loop", args={"window": 2}).make()
    assert (type(harness), harness.window) == (ChatLoop, 2)


@pytest.mark.parametrize(
    ("id", "args", "message"),
    [
        ("chat_lop", {}, "unknown harness 'chat_lop': did you mean 'chat_loop'?"),
        ("chat_loop", {"windw": 1}, "chat_loop has no dial 'windw': did you mean 'window'? (it takes window)"),
        ("chat_loop", {"window": -1}, "chat_loop: window=-1: Input should be greater than or equal to 0"),
        ("chat_loop", {"window": "x"}, "chat_loop: window='x': Input should be a valid integer"),
    ],
)
def test_mistakes_are_told_in_one_line(id, args, message):
    with pytest.raises(ConfigError) as caught:
        HarnessSettings(id=id, args=args).make()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
