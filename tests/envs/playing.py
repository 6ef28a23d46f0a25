"""Whole episodes of scripted policies, on the bare env: no model, no harness."""

import random
from types import SimpleNamespace

from latih.envs import MessageEnv, message_of, messages_of


def play(env: MessageEnv, policy: str, seed: int) -> SimpleNamespace:
    """One episode: its `messages` up to the last action, `reward`, `metrics`, and whether it was `truncated`."""
    rng = random.Random(seed)
    observation, _ = env.reset(seed=seed)
    messages, reward = messages_of(observation), 0.0
    while True:
        action = env.scripted(policy, rng)
        messages.append(message_of(action))
        observation, paid, terminated, truncated, info = env.step(action)
        reward += paid
        if terminated or truncated:
            return SimpleNamespace(messages=messages, reward=reward, metrics=info["metrics"], truncated=truncated)
        messages += messages_of(observation)
