"""Seeds of episodes: those of training and those of evaluation are disjoint by construction."""

from typing import Literal

from latih.core import derive_seed

Split = Literal["train", "warm_start", "eval"]


def episode_seed(run_seed: int, split: Split, index: int) -> int:
    """The 63-bit seed of episode (or group) `index`: odd for evaluation, even for all that trains.

    Hashed, so that neighbouring run seeds and indices share nothing; the lowest bit keeps the splits apart even
    between runs.

    >>> episode_seed(0, "eval", 3) % 2, episode_seed(0, "train", 3) % 2
    (1, 0)
    """
    return derive_seed("episode", run_seed, split, index) & ~1 | (split == "eval")
