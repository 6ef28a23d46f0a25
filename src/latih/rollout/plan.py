"""The plan of a step: which groups are played, with which seeds."""

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
    """The index of its first trajectory among all of the step."""
    sampling_seed: int = 0
    """The step's: a call's own seed depends on the trajectory's index and the number of the call too."""
    task: Task | None = None


def plan(
    seed: int, phase: Phase, step: int, *, groups: int, size: int = 1, tasks: SequenceOf[Task] = ()
) -> list[GroupSpec]:
    """The groups of one step, all seeds derived from the run's seed, the phase and the step.

    Group `i` plays `tasks[i]`, where there are tasks.

    >>> [spec.first for spec in plan(0, "train", 1, groups=3, size=8)]
    [0, 8, 16]
    """
    return [
        GroupSpec(
            id=f"{phase}/{step}/{i}",
            seed=env_seed(seed, phase, step, i),
            size=size,
            first=i * size,
            sampling_seed=derive_seed(seed, phase, step, "sampling"),
            task=tasks[i] if tasks else None,
        )
        for i in range(groups)
    ]


def env_seed(seed: int, phase: Phase, step: int, index: int) -> int:
    """The 63-bit env seed of group `index` of a step.

    Hashed, so that neighbouring run seeds, steps and indices share nothing. The two lowest bits tell the phase, so that
    no run ever trains on what any run is evaluated on.

    >>> [env_seed(0, phase, 1, 0) % 4 for phase in PHASES]
    [0, 1, 2]
    """
    return derive_seed(seed, phase, step, "env", index) & ~3 | PHASES.index(phase)
