import pytest

from latih.core import ErrorRecord, Group, Sequence, StopReason
from latih.train.batch import make_batch, row, split, token_rewards, weigh
from latih.train.settings import AlgorithmSettings
from tests.train.games import trajectory, turn


def _group(*trajectories):
    return Group(id="g", trajectories=list(trajectories))


def _game(reward, tokens=2, **more):
    return trajectory(turn([1, 2], list(range(10, 10 + tokens))), reward=reward, **more)


ERROR = ErrorRecord(kind="env", message="broke")


def test_row_predicts_exactly_the_sampled_tokens():
    each = Sequence(turns=[turn([1, 2, 3], [4, 5]), turn([6], [7], temperature=0.5)])
    found = row(each, [1.0, 1.0, 1.0])
    assert found.ids == [1, 2, 3, 4, 5, 6]  # nothing needs the last token's hidden state
    assert found.at == [2, 3, 5]
    assert found.targets == [4, 5, 7]
    assert found.temperatures == [1.0, 1.0, 0.5]


def test_row_compares_full_logprobs_where_sampling_was_cut_and_greedy_at_temperature_one():
    cut = turn([1], [2], logprobs=[-0.1], full_logprobs=[-0.7])
    greedy = turn([3], [4], logprobs=[-0.2], temperature=0.0)
    found = row(Sequence(turns=[cut, greedy]), [1.0, 1.0])
    assert found.sampler_logprobs == [-0.7, -0.2]
    assert found.temperatures == [1.0, 1.0]


def test_row_refuses_a_token_that_nothing_predicts():
    with pytest.raises(ValueError, match="needs a prompt"):
        row(Sequence(turns=[turn([], [1])]), [1.0])


def test_token_rewards_sum_to_the_reward_whether_paid_by_turn_or_at_the_end():
    turns = [turn([1], [2, 3], reward=0.5), turn([4], [5]), turn([6], [7, 8], reward=-1.0)]
    assert token_rewards(trajectory(*turns), -0.5) == [0.0, 0.5, 0.0, 0.0, -1.0]
    assert token_rewards(trajectory(*turns), 2.0) == [0.0, 0.5, 0.0, 0.0, 1.5]
    assert token_rewards(_game(3.0), 3.0) == [0.0, 3.0]


def test_errors_leave_baseline_and_loss():
    batch = make_batch([_group(_game(1.0), _game(0.0), _game(99.0, error=ERROR))], AlgorithmSettings())
    assert [each.advantages for each in batch.rows] == [[0.5, 0.5], [-0.5, -0.5]]
    assert batch.metrics["left_out/errors"] == 1


def test_groups_without_contrast_and_groups_of_one_give_no_gradient():
    mixed = _group(_game(1.0, 3), _game(0.0, 1))
    uniform = _group(_game(0.1, 4), _game(0.1, 4), _game(0.1, 4))
    single = _group(_game(7.0, 5), _game(0.0, error=ERROR))
    for advantage in ("mean", "grpo", "rloo"):
        batch = make_batch([mixed, uniform, single], AlgorithmSettings(advantage=advantage))
        assert len(batch.rows) == 2
        assert batch.metrics["groups"] == 3
        assert batch.metrics["groups_mixed"] == pytest.approx(1 / 3)
        assert [each.weight for each in weigh(batch.rows, "token")] == [1 / 4] * 2
    counted = make_batch([mixed, uniform, single], AlgorithmSettings(count_uniform_groups=True))
    assert [each.weight for each in weigh(counted.rows, "token")] == pytest.approx([1 / 21] * 6)
    assert [each.trains for each in counted.rows] == [True, True, False, False, False, False]
    assert counted.metrics["trained_tokens"] == 4


def test_overlong_dial():
    group = _group(_game(1.0), _game(0.0), _game(5.0, stop_reason=StopReason.LENGTH))
    scored = make_batch([group], AlgorithmSettings(overlong="score"))
    assert [each.advantages[0] for each in scored.rows] == [-1.0, -2.0, 3.0]
    masked = make_batch([group], AlgorithmSettings(overlong="mask"))
    assert [each.advantages[0] for each in masked.rows] == [0.5, -0.5]
    assert masked.metrics["left_out/masked"] == 1
    penalized = make_batch([group], AlgorithmSettings(overlong="penalize", overlong_penalty=2.0))
    # rewards 1, 0, 3
    assert [each.advantages[0] for each in penalized.rows] == pytest.approx([-1 / 3, -4 / 3, 5 / 3])


def test_a_last_reply_that_max_tokens_cut_is_overlong_an_earlier_one_is_not():
    cut, ended = turn([1], [2], stop_reason=StopReason.LENGTH), turn([1], [2])
    group = _group(
        trajectory(cut, ended, reward=1.0), trajectory(ended, cut, reward=0.0), trajectory(ended, reward=5.0)
    )
    masked = make_batch([group], AlgorithmSettings(overlong="mask"))
    assert masked.metrics["left_out/masked"] == 1
    assert [each.advantages[-1] for each in masked.rows] == [-2.0, 2.0]


def test_a_penalty_can_make_contrast():
    group = _group(_game(1.0), _game(1.0, stop_reason=StopReason.TURNS))
    assert make_batch([group], AlgorithmSettings()).mixed == 0
    assert make_batch([group], AlgorithmSettings(overlong="penalize")).mixed == 1


def test_trajectories_in_which_nothing_was_sampled_are_left_out_and_counted():
    silent = trajectory(turn([1, 2, 3], []), reward=9.0, stop_reason=StopReason.CONTEXT)
    batch = make_batch([_group(_game(1.0), _game(0.0), silent)], AlgorithmSettings())
    assert [each.advantages[0] for each in batch.rows] == [0.5, -0.5]
    assert batch.metrics["left_out/empty"] == 1


def test_baseline_counts_trajectories_not_sequences():
    two = _game(1.0)
    two.sequences.append(Sequence(turns=[turn([9, 9], [8])]))
    batch = make_batch([_group(two, _game(0.0))], AlgorithmSettings())
    assert [each.advantages for each in batch.rows] == [[0.5, 0.5], [0.5], [-0.5, -0.5]]
    assert [each.trajectory for each in batch.rows] == [0, 0, 1]
    # two sequences of one trajectory share its constant denominator
    assert [each.weight for each in weigh(batch.rows, "constant", 5)] == [1 / 10] * 3


def test_split_deals_whole_groups_evenly_and_by_seed():
    groups = [_group(_game(1.0), _game(0.0), _game(0.0)) for _ in range(6)]
    groups[0].trajectories[0].sequences.append(Sequence(turns=[turn([9, 9], [8])]))
    rows = make_batch(groups, AlgorithmSettings()).rows
    assert [each.group for each in rows] == [0] * 4 + [number for number in range(1, 6) for _ in range(3)]
    parts = split(rows, 3, seed=1)
    owners = [{each.group for each in part} for part in parts]
    assert [len(each) for each in owners] == [2, 2, 2]
    assert set.union(*owners) == set(range(6))
    assert sum(len(part) for part in parts) == len(rows)
    assert parts == split(rows, 3, seed=1)
    assert parts != split(rows, 3, seed=2)


def test_split_deals_trajectories_where_groups_are_too_few():
    rows = make_batch([_group(_game(1.0), _game(0.0), _game(0.0))] * 2, AlgorithmSettings()).rows
    owners = [{each.trajectory for each in part} for part in split(rows, 3, seed=1)]
    assert [len(each) for each in owners] == [2, 2, 2]
    assert set.union(*owners) == set(range(6))


def test_split_never_makes_an_update_without_gradient():
    rows = make_batch(
        [_group(_game(1.0), _game(0.0)), _group(_game(0.0), _game(0.0))], AlgorithmSettings(count_uniform_groups=True)
    ).rows
    parts = split(rows, 4, seed=0)
    assert len(parts) == 2
    assert all(any(each.trains for each in part) for part in parts)
    assert split([each for each in rows if not each.trains], 4, seed=0) == []
