"""The harness seam: programs that own their own loop, and what happens when they fail."""

import asyncio

import pytest

from latih.core import EnvError, Message, SamplerError, StopReason
from latih.harnesses import ChatLoop
from tests.rollout.fakes import CountEnv, ScriptedSampler, user
from tests.rollout.playing import Raising, fresh, one, rollouts


class OwnLoop:
    """A program that owns its loop: it asks a helper on the side, in parallel, and acts on what the main line says."""

    async def play(self, episode):
        history = await episode.reset()
        while not episode.done:
            advice = await asyncio.gather(*(episode.model.chat([user(f"advise {i}")]) for i in range(2)))
            history.append(user(" ".join(each.text for each in advice)))
            reply = await episode.model.chat(history, tools=episode.tools)
            history.append(reply)
            history += await episode.step(reply)


def test_a_coroutine_that_owns_its_own_loop_plays_the_episode():
    env = fresh()
    sampler = ScriptedSampler(lambda call, prompt: f"reply {call}")
    trajectory = one(rollouts(env, sampler, OwnLoop()))
    assert (trajectory.stop_reason, trajectory.reward) == (StopReason.TERMINATED, 2.0)
    assert env.made[0].actions == ["reply 2", "reply 5"]
    seen = [(seq.prompt_ids(i), turn.ids) for seq in trajectory.sequences for i, turn in enumerate(seq.turns)]
    assert sorted(seen) == sorted((call.prompt, call.ids) for call in sampler.log)
    # The main line is one sequence of two turns, and only it was paid; each piece of advice is one of its own.
    assert [len(seq.turns) for seq in trajectory.sequences] == [1, 1, 2, 1, 1]
    assert [turn.reward for turn in trajectory.sequences[2].turns] == [1.0, 1.0]


def test_a_window_makes_new_sequences_and_trains_nothing_twice():
    trajectory = one(rollouts(lambda: CountEnv(length=4), harness=ChatLoop(window=1)))
    assert [len(seq.turns) for seq in trajectory.sequences] == [2, 1, 1]
    assert trajectory.sampled_tokens == 4 * len("go.")


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_harness_that_fails_or_hides_a_failure_is_an_error(swallowed):
    class Failing:
        async def play(self, episode):
            await episode.reset()
            await episode.model.chat([user("a")])
            try:
                await episode.step(Message(role="assistant", content="x"))
            except EnvError:
                if not swallowed:
                    raise ValueError("my own bug") from None

    trajectory = one(rollouts(fresh(Raising), harness=Failing()))
    assert trajectory.error.kind == "env"  # the first boundary that was crossed


def test_a_harness_bug_is_attributed_to_the_harness():
    class Buggy:
        async def play(self, episode):
            raise ValueError("my own bug")

    trajectory = one(rollouts(fresh(), harness=Buggy()))
    assert trajectory.error.kind == "harness"
    assert trajectory.error.message == "harness Buggy raised ValueError: my own bug"


def test_a_harness_that_gives_up_after_a_sampler_fault_is_not_scored_zero():
    class GivingUp:
        async def play(self, episode):
            first = await episode.reset()
            try:
                await episode.model.chat(first)
            except SamplerError:
                return

    sampler = ScriptedSampler(lambda call, prompt: OSError("gone"))
    assert one(rollouts(fresh(), sampler, GivingUp())).error.kind == "sampler"

    class Idle:
        async def play(self, episode):
            await episode.reset()

    assert "without a single model call" in one(rollouts(fresh(), harness=Idle())).error.message


def test_a_harness_that_stops_early_is_scored():
    class Early:
        async def play(self, episode):
            reply = await episode.model.chat(await episode.reset())
            await episode.step(reply)

    trajectory = one(rollouts(fresh(), harness=Early()))
    assert (trajectory.stop_reason, trajectory.reward, trajectory.error) == (StopReason.STOP, 1.0, None)


def test_a_hung_harness_has_a_deadline_that_names_what_it_waited_for():
    class Asleep:
        async def play(self, episode):
            await episode.reset()
            await asyncio.sleep(60)

    env = fresh()
    error = one(rollouts(env, harness=Asleep(), episode_timeout=0.2)).error
    assert (error.kind, error.hung) == ("harness", True)
    assert error.message == "harness Asleep did not end within 0.2 s: it waited for the harness itself"
    assert env.made[0].closed == 1
    slow = ScriptedSampler(lambda call, prompt: "go", delay=60)
    error = one(rollouts(fresh(), slow, episode_timeout=0.2)).error
    assert error.message.endswith("it waited for the sampler, model call 1")


def test_acting_out_of_turn_is_the_harness_fault():
    class Eager:
        async def play(self, episode):
            await episode.step(Message(role="assistant", content="x"))

    assert one(rollouts(fresh(), harness=Eager())).error.message == "step() was called before reset()"
