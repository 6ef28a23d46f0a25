"""Answers of an env, checked: nonsense raises Nonsense that names what was returned and what is expected."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from latih.core import Message
from latih.envs import messages_of


class Nonsense(Exception):
    """An env returned something that it must not."""


@dataclass(frozen=True)
class Outcome:
    """What a step did."""

    messages: list[Message]
    reward: float
    terminated: bool
    truncated: bool
    metrics: dict[str, float]


def checked_reset(answer: Any) -> tuple[list[Message], dict[str, float]]:
    """The first messages and metrics of what `reset` returned. Raises Nonsense."""
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise Nonsense(f"returned {_shown(answer)}; expected (observation, info)")
    messages = _messages(answer[0])
    if not messages:
        raise Nonsense("returned no messages: there is nothing to show to the model")
    return messages, _metrics(answer[1])


def checked_step(answer: Any) -> Outcome:
    """The parts of what `step` returned. Raises Nonsense."""
    if not (isinstance(answer, tuple) and len(answer) == 5):
        raise Nonsense(f"returned {_shown(answer)}; expected (observation, reward, terminated, truncated, info)")
    observation, reward, terminated, truncated, info = answer
    for what, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool | np.bool_):
            raise Nonsense(f"returned {_shown(flag)} as {what}; expected True or False")
    return Outcome(
        _messages(observation), _number("the reward", reward), bool(terminated), bool(truncated), _metrics(info)
    )


def checked_truncate(answer: Any) -> tuple[float, dict[str, float]]:
    """The reward and metrics of what `truncate` returned. Raises Nonsense."""
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise Nonsense(f"returned {_shown(answer)}; expected (reward, info)")
    return _number("the reward", answer[0]), _metrics(answer[1])


def _messages(observation: Any) -> list[Message]:
    try:
        return messages_of(observation)
    except TypeError:
        expected = "a str, a Message or a list of Messages"
        raise Nonsense(f"returned {_shown(observation)} as the observation; expected {expected}") from None


def _metrics(info: Any) -> dict[str, float]:
    if not isinstance(info, Mapping):
        raise Nonsense(f"returned {_shown(info)} as info; expected a dict")
    metrics = info.get("metrics", {})
    if not isinstance(metrics, Mapping):
        raise Nonsense(f'returned {_shown(metrics)} as info["metrics"]; expected a dict of numbers')
    return {str(name): _number(f'info["metrics"][{name!r}]', value) for name, value in metrics.items()}


def _number(what: str, value: Any) -> float:
    if not isinstance(value, Real | np.bool_) or not math.isfinite(value):
        raise Nonsense(f"returned {_shown(value)} as {what}; expected a finite number")
    return float(value)


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}: {_short(value)}"
    return f"{type(value).__name__} {_short(value)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
