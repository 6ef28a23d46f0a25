import pytest

from latih.core import ConfigError
from latih.envs import make
from latih.models.chat import Renderer
from latih.models.tokenizer import Tokenizer
from latih.train.settings import TrainerSettings, WarmStartSettings
from latih.train.trainer import PolicyTrainer
from latih.train.warm_start import demonstrations, warm_start
from tests.train.games import tiny_policy


@pytest.fixture
def trainer(tmp_path):
    return PolicyTrainer(tiny_policy(tmp_path), TrainerSettings(), seed=3)


@pytest.fixture
def renderer(trainer):
    return Renderer.from_folder(trainer.policy.folder, Tokenizer.from_folder(trainer.policy.folder))


def _make():
    return make("tic_tac_toe")


def test_demonstrations_are_legal_games_rendered_with_only_the_replies_sampled(renderer):
    data = demonstrations(_make(), renderer, "random", 3, 0, 5)
    for sequence in data:
        for turn in sequence.turns:
            assert renderer.parse(turn.ids).text in list("123456789")
            assert turn.ids[-1] in renderer.stop_ids
        assert sequence.ids[: len(sequence.prompt_ids(0))] == renderer.render(sequence.messages[:2])


def test_every_step_has_new_games_and_the_same_seed_the_same(renderer):
    first = demonstrations(_make(), renderer, "random", 3, 0, 4)
    assert first == demonstrations(_make(), renderer, "random", 3, 0, 4)
    assert first[2:] == demonstrations(_make(), renderer, "random", 3, 2, 2)
    assert first != demonstrations(_make(), renderer, "random", 3, 4, 4)
    assert first != demonstrations(_make(), renderer, "random", 4, 0, 4)


def test_the_steps_teach_and_leave_a_fresh_optimizer(trainer, renderer):
    settings = WarmStartSettings(steps=8, games=4, lr=0.02)
    rows = list(warm_start(trainer, _make, renderer, settings))
    assert [row["warm_start/step"] for row in rows] == list(range(1, 9))
    assert rows[-1]["warm_start/loss"] < 0.8 * rows[0]["warm_start/loss"]
    assert trainer.policy.version == 8
    assert trainer.steps == 0
    assert set(trainer.state()) == {"steps"}


def test_an_unknown_policy_names_the_nearest(trainer, renderer):
    settings = WarmStartSettings(policy="randm")
    with pytest.raises(ConfigError, match="no scripted policy 'randm': did you mean 'random'"):
        next(warm_start(trainer, _make, renderer, settings))
