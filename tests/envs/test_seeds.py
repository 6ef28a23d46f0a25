from latih.envs import episode_seed


def test_splits_are_disjoint_across_runs() -> None:
    seeds = {
        split: {episode_seed(run, split, index) for run in range(20) for index in range(200)}
        for split in ("train", "warm_start", "eval")
    }
    assert [len(each) for each in seeds.values()] == [4000, 4000, 4000]
    assert {seed % 2 for seed in seeds["eval"]} == {1}
    assert {seed % 2 for seed in seeds["train"] | seeds["warm_start"]} == {0}
    assert not seeds["train"] & seeds["warm_start"]
    assert all(0 <= seed < 2**63 for each in seeds.values() for seed in each)


def test_value_never_changes() -> None:
    # Runs resume, and evaluations compare, across versions.
    assert episode_seed(0, "eval", 0) == 5561728685653790023
    assert episode_seed(0, "train", 0) == 3441574651244689840
