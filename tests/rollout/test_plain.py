"""Plain play: episodes without a language model, recorded as any other."""

from latih.core import Message, SamplerError, StopReason, ToolCall, ToolSchema
from latih.envs import make
from latih.harnesses import ChatLoop
from latih.rollout import ChatSampler, MessageRenderer, Rollouts, RolloutSettings, plan
from tests.rollout.fakes import CountEnv, assistant, user
from tests.rollout.playing import fresh, one


class Says:
    """A chat model that answers by `answer(messages, tools)`, and keeps what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def chat(self, messages, *, tools=(), params=None):
        self.asked.append((list(messages), tuple(tools), params))
        return self.answer(messages, tools)


def plain(make_env, model, window=None, script=None, **settings):
    renderer = MessageRenderer()
    settings = RolloutSettings(**{"max_error_fraction": 1.0} | settings)
    return Rollouts(settings, make_env, ChatLoop(window), renderer, ChatSampler(model, renderer), script=script)


def test_messages_are_tokens_and_come_back_as_they_were():
    renderer = MessageRenderer()
    call = Message(role="assistant", tool_calls=[ToolCall(id="a", name="add", arguments={"x": [1, "2"]})])
    tool = ToolSchema(name="add")
    ids = renderer.render([user("hi"), call, user("hi")], [tool])
    assert ids == [0, 1, 2, 1]
    assert renderer.read(ids) == ([user("hi"), call, user("hi")], (tool,))
    assert renderer.render([user("hi")]) == [1]
    assert renderer.extend(ids, [], [user("ho"), assistant("hi")]) == [3, 4]
    assert renderer.reply(call) == [2]
    assert renderer.parse([2]) == call
    assert renderer.read([1]) == ([user("hi")], ())


def test_a_chat_model_plays_and_sees_what_the_harness_shows():
    model, env = Says(lambda messages, tools: assistant(f"reply to {messages[-1].text}")), fresh(CountEnv)
    trajectory = one(plain(lambda: env(3), model))
    assert env.made[0].actions == [f"reply to {text}" for text in (f"start {trajectory.seed}", "step 1", "step 2")]
    assert (trajectory.reward, trajectory.stop_reason, trajectory.error) == (3.0, StopReason.TERMINATED, None)
    [sequence] = trajectory.sequences
    assert [len(turn.ids) for turn in sequence.turns] == [1, 1, 1]
    assert [turn.reward for turn in sequence.turns] == [1.0] * 3
    assert model.asked[2][0] == sequence.messages[:5]
    assert model.asked[0][2].seed is not None
    windowed = Says(model.answer)
    assert len(one(plain(lambda: env(3), windowed, window=0)).sequences) == 3
    assert windowed.asked[2][0] == [user("step 2")]


def test_tools_reach_the_model_in_every_call_and_calls_reach_the_env():
    def answer(messages, tools):
        if messages[-1].role == "tool":
            return assistant(f"Answer: {messages[-1].text}")
        call = ToolCall(id="k", name=tools[0].name, arguments={"expression": messages[-1].text})
        return Message(role="assistant", tool_calls=[call])

    model = Says(answer)
    trajectory = one(plain(lambda: make("arithmetic_tool"), model))
    assert trajectory.reward == 1.0
    assert [[tool.name for tool in tools] for _, tools, _ in model.asked] == [["calculator"]] * 2


def test_scripts_need_no_model_and_no_bound_on_tokens():
    roll = plain(lambda: make("arithmetic_tool"), Says(None), script="expert", sampling={"max_tokens": 1})
    assert [group.trajectories[0].reward for group in roll.run(plan(0, "eval", 0, groups=20))] == [1.0] * 20


def test_a_model_that_fails_is_an_error_of_the_sampler():
    def fails(messages, tools):
        raise SamplerError("busy")

    assert one(plain(fresh(CountEnv), Says(fails))).error.message == "busy"
    assert one(plain(fresh(CountEnv), Says(lambda messages, tools: 1 / 0))).error.kind == "sampler"
