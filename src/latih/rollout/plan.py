"""The plan of a step: which groups are played, with which seeds and tasks."""

import functools
from collections.abc import Sequence as SequenceOf
from typing import Literal, TypeAlias, get_args

from latih.core import Task, derive_seed
from latih.core.schema import Record

Phase: TypeAlias = Literal["train", "eval", "warm_start"]
"""What episodes are played for."""
PHASES: tuple[Phase, ...] = get_args(Phase)


class GroupSpec(Record):
    """A group to be played: its members share task and env seed, and differ in how they are sampled."""

    id: str
    seed: int
    """The env's."""
    size: int
    first: int = 0
    """The index of its first episode among all of the step."""
    sampling_seed: int = 0
    """The step's: a call's own seed depends on the episode's index, the role and the number of the call too."""
    task: Task | None = None


def plan(
    seed: int, phase: Phase, step: int, *, groups: int, size: int = 1, tasks: SequenceOf[Task] = ()
) -> list[GroupSpec]:
    """The groups of one step, all seeds derived from the run's seed, the phase and the step.

    Where there are tasks, the rows of a data set, they are played in a seeded order: every epoch is a permutation of
    all of them, and the steps of a phase, counted from 1, go on where the one before ended. The place in the data
    follows from the step alone, so a resumed run plays the same tasks as an unbroken one.

    >>> [spec.first for spec in plan(0, "train", 1, groups=3, size=8)]
    [0, 8, 16]
    """
    at = max(step - 1, 0) * groups
    return [
        GroupSpec(
            id=f"{phase}/{step}/{i}",
            seed=env_seed(seed, phase, step, i),
            size=size,
            first=i * size,
            sampling_seed=derive_seed(seed, phase, step, "sampling"),
            task=tasks[place(seed, phase, at + i, len(tasks))] if tasks else None,
        )
        for i in range(groups)
    ]


def place(seed: int, phase: Phase, position: int, size: int) -> int:
    """Which of `size` rows is played at a position of the seeded order, counted from 0 and on through all epochs.

    >>> sorted(place(0, "train", position, 4) for position in range(4, 8))
    [0, 1, 2, 3]
    """
    epoch, at = divmod(position, size)
    return _epoch(seed, phase, epoch, size)[at]


@functools.lru_cache(maxsize=8)
def _epoch(seed: int, phase: Phase, epoch: int, size: int) -> list[int]:
    # Sorted by a hash: no generator whose stream another version of a library may change.
    return sorted(range(size), key=lambda row: (derive_seed(seed, phase, "epoch", epoch, row), row))


def env_seed(seed: int, phase: Phase, step: int, index: int) -> int:
    """The 63-bit env seed of group `index` of a step.

    Hashed, so that neighbouring run seeds, steps and indices share nothing. The two lowest bits tell the phase, so that
    no run ever trains on what any run is evaluated on.

    >>> [env_seed(0, phase, 1, 0) % 4 for phase in PHASES]
    [0, 1, 2]
    """
    return derive_seed(seed, phase, step, "env", index) & ~3 | PHASES.index(phase)
