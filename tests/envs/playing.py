"""Whole episodes of scripted policies, on the bare env: no model, no harness."""

import random
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

from latih.core import Task
from latih.envs import MessageEnv, message_of, messages_of

ROOT = Path(__file__).parents[2]


def play(env: MessageEnv, policy: str, seed: int, task: Task | None = None) -> SimpleNamespace:
    """One episode: its `messages` up to the last action, `reward`, `metrics`, and whether it was `truncated`."""
    rng = random.Random(seed)
    observation, _ = env.reset(seed=seed, options={"task": task})
    messages, reward = messages_of(observation), 0.0
    while True:
        action = env.scripted(policy, rng)
        messages.append(message_of(action))
        observation, paid, terminated, truncated, info = env.step(action)
        reward += paid
        if terminated or truncated:
            return SimpleNamespace(messages=messages, reward=reward, metrics=info["metrics"], truncated=truncated)
        messages += messages_of(observation)


def episodes_in_other_processes(name: str, seeds: int = 10, **dials: object) -> set[str]:
    """What all scripted policies play, as seen by processes with different hash seeds: one text, if it is the same."""
    code = f"""
        import json
        from latih.envs import make
        from tests.envs.playing import play
        env = make({name!r}, **{dials!r})
        games = [play(env, policy, seed) for seed in range({seeds}) for policy in env.policies]
        print(json.dumps([[each.model_dump() for each in game.messages] + [game.reward] for game in games]))
    """
    return printed_in_other_processes(textwrap.dedent(code))


def printed_in_other_processes(code: str) -> set[str]:
    """What code prints in processes with different hash seeds: one text, if it is the same."""
    return {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "random")
    }
