import pytest

from latih.core import ConfigError, Sequence, Trajectory
from latih.train.advantages import advantages
from tests.train.games import trajectory, turn


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # returns 1, 0, 0, 3: mean 1; population deviation sqrt((0 + 1 + 1 + 4) / 4) = 1.2247449
        ("mean", [0.0, -1.0, -1.0, 2.0]),
        ("grpo", [0.0, -0.8164966, -0.8164966, 1.6329932]),
        # the others' means: 1, 4/3, 4/3, 1/3
        ("rloo", [0.0, -4 / 3, -4 / 3, 8 / 3]),
    ],
)
def test_episode_advantages_by_hand(name, expected):
    rewards = [[1.0], [0.0, 0.0], [0.0], [1.0, 0.0, 2.0]]
    found = advantages.get(name)(rewards, [])
    assert [len(each) for each in found] == [1, 2, 1, 3]
    for values, value in zip(found, expected, strict=True):
        assert values == pytest.approx([value] * len(values), abs=1e-5)


def test_anchor_measures_a_turn_against_those_in_the_same_place():
    def game(*turns, reward):
        """Each turn a prompt and a reply, in a sequence of its own, as `window: 0` makes them."""
        sequences = [Sequence(turns=[turn([prompt], ids)]) for prompt, ids in turns]
        return Trajectory(env="test", seed=0, sequences=sequences, reward=reward)

    games = [
        game((1, [10, 11]), (2, [12]), reward=1.0),  # all start in 1; the first two come to 2
        game((1, [10, 11]), (2, [13]), reward=0.0),
        game((1, [14]), (3, [12]), (3, [15]), reward=-1.0),  # 3 twice, and nobody else
        game((1, [16]), reward=0.0),
    ]
    rewards = [[0.0, 0.0, 1.0], [0.0] * 3, [0.0, 0.0, -1.0], [0.0]]
    # means: 0 in 1, 1/2 in 2, and of the group 0 in 3
    assert advantages.get("anchor")(rewards, games) == [[1, 1, 0.5], [0, 0, -0.5], [-1, -1, -1], [0]]


def test_anchor_knows_a_place_by_all_that_was_said_before():
    games = [
        trajectory(turn([1], [2]), turn([3], [4])),
        trajectory(turn([1], [2]), turn([3], [5])),
        trajectory(turn([1], [6]), turn([3], [4])),  # the same question after another reply
    ]
    assert advantages.get("anchor")([[0, 4.0], [0, 2.0], [0, 0.0]], games) == [[2, 1], [0, -1], [-2, -2]]


def test_unknown_advantage_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown advantage 'rlo': did you mean 'rloo'"):
        advantages.get("rlo")
