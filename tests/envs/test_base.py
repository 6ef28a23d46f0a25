import copy
import pickle
import random
import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from latih.core import ConfigError, Env, Task
from latih.envs import MessageEnv, find, make
from latih.envs.registry import builtin_names, gymnasium_id
from latih.envs.roles import RolesEnv


def _gymnasium() -> list[str]:
    """All but those of several roles, which are PettingZoo's to check, and families: they have tests of their own."""
    found = {name: find(name) for name in builtin_names()}
    return [name for name, cls in found.items() if not issubclass(cls, RolesEnv) and not hasattr(cls, "member")]


@pytest.mark.parametrize("name", _gymnasium())
def test_check_env_passes_without_warnings(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(name))  # type: ignore[arg-type]
        check_env(type(make(name))())
        check_env(gymnasium.make(gymnasium_id(name)).unwrapped)
        gymnasium.make(gymnasium_id(name)).reset(seed=1)


class Guess(MessageEnv):
    """Guess a number."""

    def __init__(self, top: int = 3) -> None:
        self.top = top

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.number = int(self.np_random.integers(self.top))
        return f"A number below {self.top}?", {}

    def step(self, action):
        right = float(action == str(self.number))
        return "", right, True, False, {"metrics": {"correct": right}}


def test_a_subclass_needs_only_reset_and_step() -> None:
    env = Guess(top=5)
    assert isinstance(env, Env)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)
    env.reset(seed=4)
    number = env.number
    env.reset(seed=4)
    assert env.number == number
    assert env.step(str(number))[1:] == (1.0, True, False, {"metrics": {"correct": 1.0}})


def test_reset_keeps_the_task() -> None:
    env = Guess()
    env.reset(options={"task": Task(id="a", level=2)})
    assert env.task == Task(id="a", level=2)
    env.reset(options={"task": {"id": "b"}})
    assert env.task == Task(id="b")
    env.reset()
    assert env.task is None


def test_spaces_belong_to_the_instance_and_envs_can_be_copied() -> None:
    one, two = Guess(), Guess()
    assert one.action_space is one.action_space
    assert one.action_space is not two.action_space
    one.reset(seed=1)
    for twin in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert twin.number == one.number
        assert twin.np_random.random() == copy.deepcopy(one).np_random.random()


def test_unknown_scripted_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="Guess has no scripted policy 'expert': none are known"):
        Guess().scripted("expert", random.Random(0))
    with pytest.raises(ConfigError, match="no scripted policy 'exprt': did you mean 'expert'"):
        make("tic_tac_toe").scripted("exprt", random.Random(0))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "dials", "reward"),
    [
        ("arithmetic_tool", {}, 0.0),
        ("game_2048", {}, 0.0),
        ("gsm8k", {"calculator": True}, 0.0),
        ("guess_number", {}, 0.0),
        ("mail_search", {"mails": 32}, -0.5),
        ("tic_tac_toe", {}, 0.0),
    ],
)
def test_an_episode_that_another_cuts_short_reports_what_a_finished_one_does(name, dials, reward) -> None:
    env = make(name, **dials)
    env.reset(seed=0)
    _, _, terminated, _, finished = env.step("nonsense")
    assert terminated
    env.reset(seed=0)
    paid, info = env.truncate("context")
    assert (paid, info["metrics"].keys()) == (reward, finished["metrics"].keys())
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("nonsense")


def test_a_step_before_the_first_episode_is_refused_as_one_after_the_end_is() -> None:
    env = make("tic_tac_toe")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no episode is under way: call reset first"):
            env.step("1")
        env.reset(seed=0)
        env.step("nonsense")
