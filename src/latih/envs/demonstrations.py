"""Demonstrations: whole conversations played by an env's scripted policies, for warm starts and baselines."""

import random

from latih.core import Message, Task
from latih.core.schema import Record
from latih.envs.base import MessageEnv
from latih.envs.spaces import message_of, messages_of


class Demonstration(Record):
    """One episode of a scripted policy."""

    messages: list[Message]
    """The conversation up to the last action."""
    reward: float
    """The sum of the rewards of the turns."""
    metrics: dict[str, float] = {}
    truncated: bool = False


def demonstrate(env: MessageEnv, policy: str, seed: int, task: Task | None = None) -> Demonstration:
    """Play one episode by `env.scripted(policy, …)`, everything random seeded by `seed`.

    Raises ConfigError where the env has no such policy.
    """
    rng = random.Random(seed)
    observation, _ = env.reset(seed=seed, options={"task": task} if task else None)
    messages, reward = messages_of(observation), 0.0
    while True:
        action = env.scripted(policy, rng)
        messages.append(message_of(action))
        observation, paid, terminated, truncated, info = env.step(action)
        reward += float(paid)
        if terminated or truncated:
            return Demonstration(
                messages=messages, reward=reward, metrics=info.get("metrics", {}), truncated=not terminated
            )
        messages += messages_of(observation)
