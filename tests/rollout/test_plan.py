"""Seeds: those of training, warm start and evaluation are disjoint by construction.

Tasks: every epoch is a permutation, and its place follows from the step.
"""

from collections import Counter

from latih.core import Task
from latih.rollout import PHASES, env_seed, plan


def test_phases_are_disjoint_across_runs_and_steps():
    seeds = {
        phase: {env_seed(run, phase, step, i) for run in range(10) for step in range(10) for i in range(40)}
        for phase in PHASES
    }
    assert [len(each) for each in seeds.values()] == [4000, 4000, 4000]
    assert {phase: {seed % 4 for seed in each} for phase, each in seeds.items()} == {
        "train": {0},
        "eval": {1},
        "warm_start": {2},
    }
    assert all(0 <= seed < 2**63 for each in seeds.values() for seed in each)


def test_groups_of_a_step_differ_and_so_do_the_samplings_of_phases_and_steps():
    specs = [spec for phase in PHASES for step in (0, 1) for spec in plan(0, phase, step, groups=5)]
    assert len({spec.seed for spec in specs}) == len(specs)
    assert len({spec.sampling_seed for spec in specs}) == 6


def test_seeds_never_change():
    # Runs resume, and evaluations compare, across versions.
    assert [env_seed(0, phase, 0, 0) for phase in PHASES] == [
        2732157980903183848,
        40121224820118129,
        1952340358364140010,
    ]


def played(step, groups, rows=10, seed=0, phase="train"):
    tasks = [Task(id=str(row)) for row in range(rows)]
    return [spec.task.id for spec in plan(seed, phase, step, groups=groups, tasks=tasks)]


def test_every_epoch_is_a_permutation_across_steps():
    order = [row for step in range(1, 11) for row in played(step, groups=4)]
    epochs = [order[at : at + 10] for at in range(0, 40, 10)]
    assert all(Counter(epoch) == Counter(map(str, range(10))) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


def test_a_step_alone_tells_its_tasks():
    # so what a resumed run plays is what an unbroken one plays
    assert played(7, groups=4) == [row for step in (1, 2) for row in played(step, groups=14)][24:28]
    assert played(1, groups=25)[:10] == played(1, groups=10)
    assert sorted(played(0, groups=10, phase="eval")) == sorted(map(str, range(10)))


def test_the_order_depends_on_seed_and_phase_and_never_changes():
    orders = {tuple(played(1, 10, seed=seed, phase=phase)) for seed in (0, 1) for phase in ("train", "warm_start")}
    assert len(orders) == 4
    assert "".join(played(1, groups=10)) == "9061524387"


def test_without_tasks_there_are_none():
    assert [spec.task for spec in plan(0, "train", 1, groups=2)] == [None, None]
