import asyncio
import threading
import time

import pytest

from latih.rollout.threads import Threads
from latih.rollout.world import World


async def test_however_often_a_close_is_cancelled_it_is_done_first() -> None:
    class Slow:
        closed = 0
        closing = threading.Event()

        def close(self) -> None:
            self.closing.set()
            time.sleep(0.2)
            self.closed += 1

    threads, env = Threads(), Slow()
    world = World(lambda: env, threads, name="slow", timeout=5.0)
    await world.make()
    task = asyncio.create_task(world.close())
    assert await asyncio.to_thread(env.closing.wait, 5)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert env.closed == 1
    threads.close()
