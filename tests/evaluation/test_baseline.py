import pytest

from latih.core import ConfigError, Message
from latih.envs import EnvSettings
from latih.evaluation import EvaluationSettings, baseline_seatings, evaluate
from latih.evaluation.baseline import TRIVIAL
from latih.harnesses import HarnessSettings
from latih.rollout import PlayerSettings, RolloutSettings

BARE = '''
from latih.envs import MessageEnv, text_of


class Bare(MessageEnv):
    """Repeat the word. It has no scripts."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return "word", {}

    def step(self, action):
        return "", float(text_of(action) == "word"), True, False, {}
'''


def play(policy, env="tic_tac_toe"):
    return baseline_seatings(policy, EnvSettings(id=str(env)), HarnessSettings(), RolloutSettings())


async def test_trivial_policies() -> None:
    said = [Message(role="system", content="be"), Message(role="user", content="hello")]
    assert await TRIVIAL["no-op"].chat(said) == Message(role="assistant", content="")
    assert await TRIVIAL["echo"].chat(said) == Message(role="assistant", content="hello")


async def test_baselines_are_evaluations_of_held_out_episodes(tmp_path) -> None:
    (tmp_path / "bare.py").write_text(BARE)
    bare = f"{tmp_path / 'bare.py'}:Bare"
    settings = EvaluationSettings(episodes=5)
    for policy, reward in {"no-op": 0.0, "echo": 1.0}.items():
        result = await evaluate(play(policy, bare), settings, label=policy)
        assert (result.label, result.episodes, result.reward.value) == (policy, 5, reward)
    assert play("expert", bare) is None
    assert play("random", bare) is None

    class Always:
        async def chat(self, messages, *, tools=(), params=None):
            return Message(role="assistant", content="word")

    assert (await evaluate(play(Always(), bare), settings, label="always")).reward.value == 1.0


async def test_the_same_seeds_give_the_same_numbers() -> None:
    settings = EvaluationSettings(episodes=30)
    first, again = [await evaluate(play("random"), settings, label="") for _ in range(2)]
    assert (first.reward, first.rates, first.means) == (again.reward, again.rates, again.means)
    assert 0 < first.rates["win"].value < 1


async def test_the_opponent_is_a_script_of_the_env() -> None:
    def against(name):
        settings = HarnessSettings(), RolloutSettings(), PlayerSettings(player=name)
        return baseline_seatings("random", EnvSettings(id="tic_tac_toe_duel"), *settings)

    assert [each.players["o"].script for each in against("expert")] == ["expert", "random"]
    assert [each.players["o"].script for each in against("policy")] == ["random"]
    with pytest.raises(ConfigError, match=r"evaluation\.opponent=runs/old: a baseline plays against a scripted policy"):
        against("runs/old")


def test_unknown_policies_are_told() -> None:
    with pytest.raises(ConfigError, match="unknown policy 'exprt': did you mean 'expert'"):
        play("exprt")
