"""Steps per second of the games on one core: random valid moves, resets and observations included, no model."""

import argparse
import random
import statistics
import time
from typing import Any

from latih.envs import make
from latih.envs.roles import RolesEnv

GAMES = ("game_2048", "guess_number", "tic_tac_toe", "tic_tac_toe_duel", "codewords")


def speed(env: Any, seconds: float) -> float:
    """Steps per second over so many seconds."""
    play = several if isinstance(env, RolesEnv) else one
    rng, steps, seed, start = random.Random(0), 0, 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        steps, seed = steps + play(env, seed, rng), seed + 1
    return steps / spent


def one(env: Any, seed: int, rng: random.Random) -> int:
    """The steps of an episode."""
    env.reset(seed=seed)
    steps, over = 0, False
    while not over:
        _, _, terminated, truncated, _ = env.step(env.scripted("random", rng))
        over, steps = terminated or truncated, steps + 1
    return steps


def several(env: RolesEnv, seed: int, rng: random.Random) -> int:
    """The steps of a game of several roles; taking one's leave is none."""
    env.reset(seed=seed)
    steps = 0
    for _ in env.agent_iter():
        over = any(env.last()[2:4])
        env.step(None if over else env.scripted("random", rng))
        steps += not over
    return steps


def main() -> None:
    """Print the median of the runs for each game."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="*", default=GAMES)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    args = parser.parse_args()
    for name in args.games:
        rates = [speed(make(name), args.seconds) for _ in range(args.runs)]
        print(f"{name}: {statistics.median(rates):.0f} steps/s ({min(rates):.0f} to {max(rates):.0f})")


if __name__ == "__main__":
    main()
