"""The episode's env, whatever happens to those who wait for it."""

import asyncio
import contextlib
import time

from latih.rollout import EnvEpisode, RecordedModel, Recorder
from latih.rollout.threads import Threads
from latih.rollout.world import World
from tests.rollout.fakes import CharRenderer, ScriptedSampler
from tests.rollout.playing import fresh


async def test_an_env_is_closed_though_its_reset_was_cancelled_as_the_constructor_came_back():
    env = fresh()
    model = RecordedModel(Recorder(CharRenderer()), ScriptedSampler(lambda call, prompt: "go"))
    episode = EnvEpisode(World(env, Threads(), name="env", timeout=60.0), model)
    reset = asyncio.create_task(episode.reset())
    await asyncio.sleep(0)
    time.sleep(0.1)  # the loop is busy, so the env that its thread has made meanwhile is not delivered
    reset.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reset
    await episode.world.close()
    assert [each.closed for each in env.made] == [1]
