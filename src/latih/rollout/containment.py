"""One episode, played to its end whatever fails: each failure is attributed to the boundary that it crossed."""

import asyncio
import traceback
from typing import Any

from latih.core import (
    ContextFull,
    EndpointError,
    ErrorRecord,
    Harness,
    HarnessError,
    LatihError,
    RolloutError,
    StopReason,
)
from latih.rollout.episode import EnvEpisode


async def contained(harness: Harness, episode: EnvEpisode, limit: float) -> RolloutError | None:
    """Play the episode, `limit` seconds at most; the fault that ended it, if one did. Only cancellation passes."""
    error: RolloutError | None = None
    try:
        try:
            await _drive(harness, episode, limit)
        except ContextFull:
            if episode.model.recorder.last is None:  # the first prompt: nothing of it is the policy's doing
                raise
            episode.finish(StopReason.CONTEXT)
        finally:
            episode.model.closed = True
        await episode.truncate()
    except RolloutError as exc:
        error = exc
    await episode.leave(error)
    return error


def outcome(episode: EnvEpisode, error: RolloutError | None) -> dict[str, Any]:
    """What a Trajectory says of an episode that is over; the env's own fault comes before any other."""
    error = episode.fault or error
    return {
        "sequences": episode.model.recorder.sequences,
        "reward": episode.reward,
        "metrics": episode.metrics,
        # A harness that returns before the env is over has stopped by itself.
        "stop_reason": StopReason.ERROR if error else episode.stop_reason or StopReason.STOP,
        "error": _record(error) if error else None,
    }


async def _drive(harness: Harness, episode: EnvEpisode, limit: float) -> None:
    who = type(harness).__name__
    waited: list[str] = []
    # Asked just before the deadline cancels the wait, after which nobody knows any more.
    watch = asyncio.get_running_loop().call_later(limit, lambda: waited.append(episode.waits_for))
    try:
        async with asyncio.timeout(limit) as deadline:
            await harness.play(episode)
    except RolloutError:
        raise
    except Exception as exc:
        if not deadline.expired():
            raise HarnessError(f"harness {who} raised {type(exc).__name__}: {exc}") from exc
        error = HarnessError(f"harness {who} did not end within {limit:g} s: it waited for {waited[0]}")
        error.hung = True
        raise error from None
    finally:
        watch.cancel()
    if not episode.done and episode.model.fault is not None:  # the harness swallowed it and gave up
        raise episode.model.fault
    if episode.model.recorder.last is None and not episode.idle:
        raise HarnessError(f"harness {who} returned without a single model call")


def _record(error: RolloutError) -> ErrorRecord:
    told = isinstance(error, ContextFull | EndpointError) or isinstance(error.__cause__, LatihError)
    return ErrorRecord(
        kind=error.kind,
        message=str(error),
        # What a user can mend is told in one line; where in latih it was found helps nobody.
        traceback="" if told else "".join(traceback.format_exception(error)),
        hung=error.hung,
    )
