import pytest

from latih.core import ConfigError
from latih.train.advantages import advantages


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
    found = advantages.get(name)(rewards)
    assert [len(each) for each in found] == [1, 2, 1, 3]
    for values, value in zip(found, expected, strict=True):
        assert values == pytest.approx([value] * len(values), abs=1e-5)


def test_unknown_advantage_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown advantage 'rlo': did you mean 'rloo'"):
        advantages.get("rlo")
