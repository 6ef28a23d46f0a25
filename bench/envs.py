"""Steps per second of the games on one core: random valid moves, resets and observations included, no model."""

import argparse
import random
import statistics
import time
from typing import Any

from latih.envs import make

GAMES = ("game_2048", "guess_number", "tic_tac_toe")


def speed(env: Any, seconds: float) -> float:
    """Steps per second over so many seconds."""
    rng, steps, seed, start = random.Random(0), 0, 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        env.reset(seed=seed)
        over, seed = False, seed + 1
        while not over:
            _, _, terminated, truncated, _ = env.step(env.scripted("random", rng))
            over, steps = terminated or truncated, steps + 1
    return steps / spent


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
