"""Scripted play: recorded as any rollout, whoever plays."""

import random

import pytest

from latih.core import StopReason, ToolCall, ToolSchema
from latih.envs import make
from latih.harnesses import ChatLoop
from latih.rollout import TooManyErrors, plan
from tests.rollout.fakes import CountEnv, ScriptedSampler, assistant, ids_of
from tests.rollout.playing import fresh, one, rollouts


def never(call, prompt):
    raise AssertionError("the sampler was asked")


class Counting(CountEnv):
    """Its policies say the number of the step, or a random number."""

    def scripted(self, name, rng: random.Random):
        return str(self.steps) if name == "count" else str(rng.randrange(10**9))


def scripted(make_env, policy="count", harness=None, **settings):
    roll = rollouts(make_env, ScriptedSampler(never), harness, **settings)
    roll.script = policy
    return roll


def test_the_scripted_reply_is_recorded_as_if_it_had_been_sampled():
    env = fresh(Counting)
    trajectory = one(scripted(lambda: env(3)))
    assert env.made[0].actions == ["0", "1", "2"]
    assert (trajectory.reward, trajectory.stop_reason) == (3.0, StopReason.TERMINATED)
    (sequence,) = trajectory.sequences
    assert [turn.ids for turn in sequence.turns] == [[*ids_of(text), 1] for text in "012"]
    assert [turn.logprobs for turn in sequence.turns] == [[0.0, 0.0]] * 3
    assert sequence.messages[1::2] == [assistant("0"), assistant("1"), assistant("2")]
    sampled = one(rollouts(lambda: env(3), ScriptedSampler(lambda call, prompt: str(call))))
    assert sequence.ids == sampled.sequences[0].ids


def test_the_prompts_are_those_of_the_harness():
    env = fresh(Counting)
    windowed = one(scripted(lambda: env(3), harness=ChatLoop(window=0)))
    sampled = one(rollouts(lambda: env(3), ScriptedSampler(lambda call, prompt: str(call)), ChatLoop(window=0)))
    assert [each.ids for each in windowed.sequences] == [each.ids for each in sampled.sequences]
    assert len(windowed.sequences) == 3


def test_calls_of_tools_reach_the_env_as_calls():
    call = ToolCall(name="add", arguments={"a": 1})
    env = fresh(tools=[ToolSchema(name="add")], scripted=lambda self, name, rng: assistant("").model_copy(
        update={"tool_calls": [call]}))  # fmt: skip
    assert one(scripted(env)).error is None
    assert {each.tool_calls[0].arguments["a"] for each in env.made[0].actions} == {1}
    groups = rollouts(lambda: make("arithmetic_tool"), ScriptedSampler(never), max_turns=4)
    groups.script = "expert"
    played = groups.run(plan(0, "eval", 0, groups=10))
    assert [group.trajectories[0].reward for group in played] == [1.0] * 10


def test_the_same_seed_scripts_the_same_and_every_episode_differs():
    def said(**settings):
        groups = scripted(lambda: Counting(2), "random", **settings).run(plan(5, "warm_start", 1, groups=6))
        return [turn.ids for group in groups for each in group.trajectories for turn in each.turns]

    assert said() == said(max_envs=1) == said(deterministic=True)
    assert len({tuple(ids) for ids in said()}) == 12


def test_what_fails_is_contained_and_told():
    error = one(scripted(fresh())).error
    assert error.kind == "env"
    assert "has no attribute 'scripted'" in error.message
    error = one(scripted(lambda: Counting(1), sampling={"max_tokens": 1})).error
    assert error.message == (
        "the scripted policy 'count' says 2 tokens where the policy may say 1: raise rollout.sampling.max_tokens"
    )
    with pytest.raises(TooManyErrors, match="no scripted policy 'exprt': did you mean 'expert'"):
        one(scripted(lambda: make("tic_tac_toe"), "exprt", max_error_fraction=0.0))


def test_a_harness_that_asks_before_reset_is_at_fault():
    class Hasty:
        async def play(self, episode):
            await episode.model.chat([assistant("x")])

    assert one(scripted(fresh(Counting), harness=Hasty())).error.kind == "harness"
