"""Threads that can be abandoned."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from latih.core.turns import waiting
from latih.rollout.threads import Hung, Threads


async def test_calls_of_one_holder_run_in_one_thread_and_threads_are_used_again():
    threads = Threads()
    thread = threads.take()
    names = {await thread.call(threading.get_ident, 5) for _ in range(3)}
    threads.give(thread)
    assert threads.take() is thread
    assert len(names) == 1
    assert threading.get_ident() not in names


async def test_what_a_call_raises_comes_out_even_what_a_future_cannot_carry():
    thread = Threads().take()

    def leave(error):
        raise error

    with pytest.raises(TimeoutError, match="the env's own"):
        await thread.call(lambda: leave(TimeoutError("the env's own")), 5)
    for odd in (StopIteration("s"), SystemExit("s")):
        with pytest.raises(RuntimeError, match=type(odd).__name__):
            await thread.call(lambda odd=odd: leave(odd), 5)


@pytest.mark.parametrize("error", [None, ZeroDivisionError("its own")])
async def test_a_call_that_ended_in_time_counts_though_the_loop_was_busy_past_the_deadline(error):
    threads = Threads()

    def quick():
        if error:
            raise error
        return 7

    call = asyncio.create_task(threads.take().call(quick, 0.05))
    await asyncio.sleep(0)  # it is on its way
    time.sleep(0.2)  # a long step of the sampler, which runs in this loop
    if error:
        with pytest.raises(ZeroDivisionError, match="its own"):
            await call
    else:
        assert await call == 7
    assert (threads.abandoned, threads.late) == (0, 0)


async def test_a_call_that_hangs_is_abandoned_counted_and_its_late_result_ignored():
    threads, go = Threads(), threading.Event()
    thread = threads.take()

    def stuck_here():
        go.wait(30)
        return "late"

    with pytest.raises(Hung) as caught:
        await thread.call(stuck_here, 0.05)
    assert "stuck_here" in caught.value.stack
    assert (threads.abandoned, threads.late) == (1, 0)
    threads.give(thread)
    assert threads.take() is not thread
    go.set()
    await asyncio.to_thread(thread.thread.join, 5)
    await asyncio.sleep(0.01)
    assert not thread.thread.is_alive()
    assert threads.late == 1


def test_a_late_result_after_the_loop_is_gone_is_counted_too():
    threads, go = Threads(), threading.Event()

    async def main():
        thread = threads.take()
        with pytest.raises(Hung):
            await thread.call(lambda: go.wait(30), 0.02)
        threads.give(thread)
        return thread

    thread = asyncio.run(main())
    go.set()
    thread.thread.join(5)
    assert threads.late == 1


async def test_a_closed_pool_keeps_no_threads():
    threads = Threads()
    held = [threads.take() for _ in range(3)]
    for thread in held:
        threads.give(thread)
    threads.close()
    for thread in held:
        thread.thread.join(5)
    assert not any(thread.thread.is_alive() for thread in held)


def test_the_interpreter_does_not_wait_for_a_hung_thread():
    code = """
import asyncio, time
from latih.rollout.threads import Hung, Threads
async def main():
    try:
        await Threads().take().call(lambda: time.sleep(60), 0.05)
    except Hung:
        print("abandoned")
asyncio.run(main())
"""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.stdout == "abandoned\n", done.stderr
    assert time.monotonic() - start < 30


async def test_waiting_for_a_turn_does_not_count_and_what_comes_after_it_does():
    threads, turn = Threads(), threading.Event()
    thread = threads.take()

    def waits(then):
        with waiting():
            turn.wait(30)
        return then()

    call = asyncio.create_task(thread.call(lambda: waits(lambda: 7), 0.2))
    await asyncio.sleep(1)
    assert not call.done()
    turn.set()
    assert await call == 7
    with pytest.raises(Hung):
        await thread.call(lambda: waits(lambda: time.sleep(2)), 0.2)


async def test_a_call_behind_one_that_waits_has_its_own_deadline():
    threads, turn = Threads(), threading.Event()
    thread = threads.take()

    def waits():
        with waiting():
            turn.wait(30)

    before = asyncio.create_task(thread.call(waits, 5))
    await asyncio.sleep(0.1)
    with pytest.raises(Hung):  # so that closing an env is bounded however long its step waits
        await thread.call(lambda: None, 0.1)
    before.cancel()
    with pytest.raises(asyncio.CancelledError):
        await before
    turn.set()
