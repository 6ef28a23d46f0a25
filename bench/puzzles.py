"""CPU seconds that `temporal_clue` takes to make a puzzle, and how long puzzles are, from 2 suspects to 10."""

import argparse
import statistics
import time

from latih.envs.temporal_clue import TemporalClue
from latih.envs.temporal_clue.puzzle import puzzle


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--puzzles", type=int, default=5, help="of each size")
    args = parser.parse_args()
    puzzle(TemporalClue().size, 0)  # the first one imports the solver
    print("| suspects | weapons, rooms, times | clues | characters | CPU seconds, median | most |")
    print("|---|---|---|---|---|---|")
    for suspects in range(2, 11):
        size, seconds, made = TemporalClue(suspects=suspects).size, [], []
        for seed in range(1, args.puzzles + 1):
            started = time.process_time()
            made.append(puzzle(size, seed))
            seconds.append(time.process_time() - started)
        clues = statistics.median(len(each.clues) for each in made)
        length = statistics.median(len(each.rules) + len(each.prompt) for each in made)
        print(
            f"| {suspects} | {size.weapons}, {size.rooms}, {size.times} | {clues:.0f} | {length:.0f} "
            f"| {statistics.median(seconds):.3f} | {max(seconds):.3f} |"
        )


if __name__ == "__main__":
    main()
