import contextlib
import threading
from pathlib import Path

import pytest

from latih.core import ConfigError, LatihError, StepResult
from latih.data import read_trajectories
from latih.inference.engine import Engine
from latih.rollout import plan
from latih.runs import Run
from latih.tracking import Silent
from latih.train.config import resolve
from latih.train.learner import Learner
from latih.train.loop import train
from latih.train.metrics import step_metrics
from latih.train.setup import parts
from latih.train.trainer import PolicyTrainer
from tests.tiny import tiny_model

PARITY = f"{Path(__file__).with_name('parity_env.py')}:Parity"


class Watcher:
    """Remembers what it was told."""

    def __init__(self):
        self.notes, self.warnings, self.parts, self.steps = [], [], {}, []

    def note(self, text):
        self.notes.append(text)

    def warn(self, text):
        self.warnings.append(text)

    @contextlib.contextmanager
    def progress(self, what, total):
        done = [0]
        yield lambda count: done.__setitem__(0, done[0] + count)
        self.parts[what] = (done[0], total)

    def step(self, step, steps, metrics):
        self.steps.append((step, steps, metrics))


def _config(tmp_path, *overrides, target=PARITY):
    model = tmp_path / "model"
    if not model.exists():
        tiny_model(model)
    return resolve(
        target,
        [
            f"trainer.policy.model={{path: {model}, dtype: float32, device: cpu}}",
            f"run={{folder: {tmp_path}, name: run}}",
            "trainer.steps=2",
            "trainer.warm_start={steps: 2, games: 2}",
            "rollout={groups: 3, group_size: 3, sampling: {max_tokens: 4}}",
            "evaluation={episodes: 4, every: 1}",
            *overrides,
        ],
    )


def _train(config, watcher=None):
    with Run.create(config.run, config.as_dict()) as run:
        train(config, run, watcher)
    return run


def test_a_whole_run(tmp_path):
    watcher = Watcher()
    run = _train(_config(tmp_path), watcher)
    rows = run.metrics()
    assert [(row["step"], row["warm_start/step"]) for row in rows if "warm_start/step" in row] == [(0, 1), (0, 2)]
    assert [row["step"] for row in rows if "eval/reward" in row] == [0, 0, 1, 2]
    steps = [row for row in rows if "reward" in row]
    assert [row["step"] for row in steps] == [1, 2]
    for name in (
        *("reward", "env/score", "groups_mixed", "entropy", "sampler_kl", "clip_fraction", "grad_norm", "lr"),
        *("sampled_tokens_per_second", "computed_tokens_per_second", "row_tokens_per_second"),
        *("seconds/rollout", "seconds/train", "seconds/step"),
    ):
        assert name in steps[0], name
    assert [step[:2] for step in watcher.steps] == [(1, 2), (2, 2)]
    assert watcher.parts["step 1: playing"] == (9, 9)
    assert watcher.parts["warm start"] == (2, 2)
    assert watcher.parts["evaluation before"] == (4, 4)
    trajectories = read_trajectories(run.trajectories_path(1))
    assert [each.index for each in trajectories] == list(range(9))
    assert len({each.seed for each in trajectories}) == 3
    assert run.checkpoints().steps()[-1] == 2
    assert sorted(path.name for path in (run.folder / "evaluations").iterdir()) == [
        "step-000000-after-warm-start",
        "step-000000-before",
        "step-000001-after-step-1",
        "step-000002-after-RL",
    ]


def test_constant_reward_is_warned_of_with_what_the_policy_said(tmp_path):
    watcher = Watcher()
    _train(_config(tmp_path, "trainer.warm_start=null", "env.args={side: x}", target="tic_tac_toe"), watcher)
    assert watcher.warnings
    assert "there is nothing to learn from" in watcher.warnings[0]


def test_training_may_set_dials_that_evaluation_does_not(tmp_path):
    """The first position shows how many moves were made before: at most the opponent's one, or up to `opening` more."""
    run = _train(
        _config(
            tmp_path, "env.args.list_empty=true", "env.training={opening: 6}", "rollout.groups=8", target="tic_tac_toe"
        )
    )

    def marks(path):
        first = [each.sequences[0].messages[1].text for each in read_trajectories(path)]
        return max(9 - len(text.partition("Free:")[2]) for text in first)

    assert marks(run.trajectories_path(1)) > 1
    assert marks(run.folder / "evaluations" / "step-000002-after-RL" / "episodes.parquet") <= 1


def test_a_sampler_that_serves_stale_weights_stops_the_run(tmp_path, monkeypatch):
    sample = Engine.sample

    async def stale(self, prompt_ids, params):
        return (await sample(self, prompt_ids, params)).model_copy(update={"policy_version": 0})

    config = _config(tmp_path, "evaluation.every=0")
    monkeypatch.setattr(Engine, "sample", stale)
    with pytest.raises(LatihError, match=r"the sampler served policy version 0 while \d was due"):
        _train(config)


def test_nothing_that_was_played_is_cached_while_the_policy_learns(tmp_path, monkeypatch):
    step, rows = PolicyTrainer.step, []

    def watched(self, groups):
        rows.append(cache.rows)
        return step(self, groups)

    monkeypatch.setattr(PolicyTrainer, "step", watched)
    with parts(_config(tmp_path), Silent()) as p:
        cache = p.cast.main.engine._scheduler.cache
        groups = p.cast.rollouts.run(plan(0, "train", 1, groups=2, size=3))
        rows.append(cache.rows)
        p.cast.learn(groups)
    assert rows == [16, 0]  # room for six, in steps of 16


def test_interrupted_runs_can_be_resumed(tmp_path, monkeypatch):
    update, updates = Learner.update, []

    def stop(self, lr):
        updates.append(lr)
        if len(updates) == 4:
            raise KeyboardInterrupt
        return update(self, lr)

    monkeypatch.setattr(Learner, "update", stop)
    config = _config(tmp_path, "trainer.checkpoint.every=1", "evaluation.every=0")
    before = {*threading.enumerate()}  # other tests may have left envs that hang
    with pytest.raises(KeyboardInterrupt):
        _train(config)
    for thread in [each for each in threading.enumerate() if each.name == "latih-env" and each not in before]:
        thread.join(timeout=10)
        assert not thread.is_alive()
    with Run.open("run", tmp_path, write=True) as run:
        train(config, run, resume=True)
    assert [row["step"] for row in run.metrics() if "reward" in row] == [1, 2]


def test_what_is_wrong_with_the_env_is_told_before_the_model_is_loaded(tmp_path):
    wrong = ["trainer.warm_start.policy=exprt", "trainer.policy.model.path=/nowhere"]
    with pytest.raises(ConfigError, match="has no scripted policy 'exprt'"):
        _train(_config(tmp_path, *wrong, target="tic_tac_toe"))


def test_speed_of_learning_with_and_without_what_is_shared():
    result = StepResult(step=3, metrics={"computed_tokens": 600.0, "row_tokens": 2400.0})
    found = step_metrics([], result, {"step": 4.0, "rollout": 2.0, "train": 1.5})
    assert (found["computed_tokens_per_second"], found["row_tokens_per_second"]) == (400.0, 1600.0)


def test_metrics_of_a_step_in_which_nothing_trained():
    found = step_metrics([], StepResult(step=3, metrics={"groups": 0.0}), {"step": 2.0, "rollout": 1.0, "train": 0.0})
    assert found["computed_tokens_per_second"] == found["row_tokens_per_second"] == 0.0
    assert found["seconds/step"] == 2.0
