from types import SimpleNamespace

import pytest

from latih.envs import make
from latih.harnesses import ChatLoop
from latih.models.chat import Renderer
from latih.models.tokenizer import Tokenizer
from latih.rollout import Rollouts, RolloutSettings, TooManyErrors
from latih.train.roles import MAIN, Cast, Side
from latih.train.settings import TrainerSettings, WarmStartSettings
from latih.train.trainer import PolicyTrainer
from latih.train.warm_start import demonstrations, warm_start
from tests.rollout.fakes import ScriptedSampler
from tests.train.games import tiny_policy


@pytest.fixture
def trainer(tmp_path):
    return PolicyTrainer(tiny_policy(tmp_path), TrainerSettings(), seed=3)


@pytest.fixture
def renderer(trainer):
    return Renderer.from_folder(trainer.policy.folder, Tokenizer.from_folder(trainer.policy.folder))


def _rollouts(renderer, window=None):
    nobody = ScriptedSampler(lambda call, prompt: AssertionError("the sampler was asked"))
    return Rollouts(RolloutSettings(), lambda: make("tic_tac_toe"), ChatLoop(window), renderer, nobody)


def _cast(trainer, renderer):
    nothing_cached = SimpleNamespace(forget=lambda: None)
    return Cast(_rollouts(renderer), [], {MAIN: Side(trainer.policy, nothing_cached, trainer)})


def _sequences(groups):
    return [sequence for group in groups for each in group.trajectories for sequence in each.sequences]


@pytest.mark.parametrize("window", [None, 0])
def test_demonstrations_are_legal_games_as_the_harness_shows_them(renderer, window):
    data = _sequences(demonstrations(_rollouts(renderer, window), "random", 3, 1, 5))
    turns = [turn for sequence in data for turn in sequence.turns]
    for turn in turns:
        assert renderer.parse(turn.ids).text in list("123456789")
        assert turn.ids[-1] in renderer.stop_ids
        assert not any(turn.logprobs)
    # with no history, every move is a sequence that begins with the rules
    assert len(data) == (5 if window is None else len(turns))
    for sequence in data:
        rules, position, *rest = sequence.messages
        assert (rules.role, position.role, rest[0].role) == ("system", "user", "assistant")
        assert sequence.prompt_ids(0) == renderer.render([rules, position])
        assert window is None or len(rest) == 1


def test_every_step_has_new_games_and_the_same_seed_the_same(renderer):
    rollouts = _rollouts(renderer)

    def games(seed, step):
        return [each.ids for each in _sequences(demonstrations(rollouts, "random", seed, step, 4))]

    assert games(3, 1) == games(3, 1)
    assert games(3, 1) != games(3, 2)
    assert games(3, 1) != games(4, 1)


def test_the_steps_teach_and_leave_a_fresh_optimizer(trainer, renderer):
    settings = WarmStartSettings(steps=8, games=4, lr=0.02)
    rows = list(warm_start(_cast(trainer, renderer), settings, 3))
    assert [row["warm_start/step"] for row in rows] == list(range(1, 9))
    assert rows[-1]["warm_start/loss"] < 0.8 * rows[0]["warm_start/loss"]
    assert trainer.policy.version == 8
    assert trainer.steps == 0
    assert set(trainer.state()) == {"steps"}


def test_an_unknown_policy_names_the_nearest(trainer, renderer):
    settings = WarmStartSettings(policy="randm")
    with pytest.raises(TooManyErrors, match="no scripted policy 'randm': did you mean 'random'"):
        next(warm_start(_cast(trainer, renderer), settings, 3))
