"""Seeds: those of training, warm start and evaluation are disjoint by construction."""

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
