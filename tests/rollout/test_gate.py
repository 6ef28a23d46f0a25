"""Deterministic mode: batches that no clock decides."""

import asyncio
import random
import time

import pytest

from latih.core import SamplerError, SamplingParams
from latih.harnesses import ChatLoop
from latih.rollout import Gate, Rollouts, RolloutSettings, plan
from tests.rollout.fakes import CharRenderer, CountEnv, ScriptedSampler
from tests.rollout.playing import fresh, rollouts


class BatchSampler(ScriptedSampler):
    """Notes which calls came in one tick of the event loop: the batches that an engine would run."""

    def __init__(self, script, **more):
        super().__init__(script, **more)
        self.batches, self.open = [], False

    async def sample(self, prompt_ids, params):
        if not self.open:
            self.open = True
            self.batches.append([])
            asyncio.get_running_loop().call_soon(self._shut)
        self.batches[-1].append(params.seed)
        return await super().sample(prompt_ids, params)

    def _shut(self):
        self.open = False


def played(clock: int, **settings):
    """The batches and the trajectories of a run whose envs and sampler take random times drawn by `clock`."""
    jitter = random.Random(clock)

    class Slow(CountEnv):
        def __init__(self):
            super().__init__()

        def reset(self, *, seed=None, options=None):
            time.sleep(jitter.random() * 0.01)
            self.length = 1 + seed % 3
            return super().reset(seed=seed, options=options)

        def step(self, action):
            time.sleep(jitter.random() * 0.01)
            return super().step(action)

    sampler = BatchSampler(lambda call, prompt: "go" * (1 + len(prompt) % 3), delay=lambda call: jitter.random() * 0.01)
    roll = Rollouts(RolloutSettings(**settings), Slow, ChatLoop(), CharRenderer(), sampler, deterministic=True)
    groups = roll.run(plan(0, "train", 0, groups=4, size=3))
    return sampler.batches, [group.model_dump() for group in groups]


@pytest.mark.parametrize("settings", [{}, {"max_envs": 5}, {"max_envs": 5, "max_model_calls": 2}])
def test_the_same_seed_gives_the_same_batches_whatever_the_clock_says(settings):
    first, second = played(1, **settings), played(2, **settings)
    assert first == second
    assert max(len(batch) for batch in first[0]) == min(
        settings.get("max_envs", 12), settings.get("max_model_calls", 12)
    )


@pytest.mark.parametrize("deterministic", [True, False])
def test_every_play_begins_with_a_sampler_that_forgot(deterministic):
    sampler = ScriptedSampler(lambda call, prompt: "go")
    roll = rollouts(fresh(), sampler, deterministic=deterministic)
    for _ in range(2):
        roll.run(plan(0, "train", 0, groups=2, size=2))
    assert sampler.forgot == 2 * deterministic


async def test_a_batch_waits_for_every_live_episode_and_goes_in_order():
    order = []

    def script(call, prompt):
        order.append(prompt[0])
        return "x"

    sampler, gate = ScriptedSampler(script), Gate(width=10)
    for index in (0, 1, 2):
        gate.enter(index)
    two = asyncio.create_task(gate.gated(2, sampler).sample([2], SamplingParams()))
    zero = asyncio.create_task(gate.gated(0, sampler).sample([0], SamplingParams()))
    await asyncio.sleep(0.01)
    assert order == []
    gate.leave(1)
    await asyncio.gather(two, zero)
    assert order == [0, 2]


async def test_one_failing_call_does_not_fail_its_batch_and_a_cancelled_one_holds_nobody():
    sampler = ScriptedSampler(lambda call, prompt: SamplerError("no") if prompt[0] == 0 else "x")
    gate = Gate(width=10)
    for index in (0, 1, 2):
        gate.enter(index)
    calls = [asyncio.create_task(gate.gated(i, sampler).sample([i], SamplingParams())) for i in (0, 1)]
    waits = asyncio.create_task(gate.gated(2, sampler).sample([2], SamplingParams()))
    waits.cancel()
    gate.leave(2)
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(results[0], SamplerError)
    assert results[1].ids


async def test_closing_cancels_the_batch_in_flight():
    sampler = ScriptedSampler(lambda call, prompt: "x", delay=60)
    gate = Gate(width=1)
    gate.enter(0)
    call = asyncio.create_task(gate.gated(0, sampler).sample([0], SamplingParams()))
    await asyncio.sleep(0.01)
    gate.close()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert sampler.live == 0
