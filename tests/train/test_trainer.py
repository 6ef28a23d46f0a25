import dataclasses
import itertools
import math
import random
from dataclasses import replace

import pytest
import torch

from latih.core import Group, ModelError, Trainer
from latih.models.attention import PackedCausal
from latih.models.policy import LoraSettings, Policy
from latih.train.batch import make_batch, weigh
from latih.train.learner import Learner
from latih.train.losses import importance_weight, mismatch, policy_objective
from latih.train.settings import AlgorithmSettings, OptimizerSettings, TrainerSettings
from latih.train.trainer import PolicyTrainer
from tests.tiny import tiny_model
from tests.train.games import logprobs, random_groups, tiny_policy, trajectory, turn


@pytest.fixture
def policy(tmp_path):
    return tiny_policy(tmp_path)


def _rows(groups, algorithm):
    """Weighed rows, the sampler being the old policy."""
    rows = weigh(make_batch(groups, algorithm).rows, algorithm.aggregation, algorithm.constant)
    return [dataclasses.replace(each, old_logprobs=each.sampler_logprobs) for each in rows]


def _gradients(policy, rows, algorithm, tokens):
    learner = Learner(policy, OptimizerSettings(), tokens)
    statistics = learner.accumulate(rows, policy_objective(algorithm))
    gradients = {name: each.grad.clone() for name, each in policy.masters.items()}
    for each in policy.masters.values():
        each.grad = None
    return gradients, statistics


@pytest.mark.parametrize(
    ("ratio", "aggregation", "surrogate"),
    list(itertools.product(["token", "sequence"], ["token", "sequence", "constant"], ["clip", "cispo"])),
)
def test_gradient_does_not_depend_on_the_split(policy, ratio, aggregation, surrogate):
    algorithm = AlgorithmSettings(ratio=ratio, aggregation=aggregation, surrogate=surrogate, constant=4)
    rows = _rows(random_groups(policy), algorithm)
    whole, statistics = _gradients(policy, rows, algorithm, 10_000)
    assert max(float(each.abs().max()) for each in whole.values()) > 1e-3
    for tokens in (1, 60, 100, 150):
        parts, others = _gradients(policy, random.Random(tokens).sample(rows, len(rows)), algorithm, tokens)
        for name, gradient in whole.items():
            torch.testing.assert_close(parts[name], gradient, atol=1e-5, rtol=0)
        assert others.sum("loss") == pytest.approx(statistics.sum("loss"), abs=1e-5)
        assert others.mean("entropy") == pytest.approx(statistics.mean("entropy"), abs=1e-5)


def test_gradient_is_that_of_the_formula_written_out(policy):
    """The token-level clipped surrogate row by row, unpacked, against the packed and prefix-shared one."""
    algorithm = AlgorithmSettings(clip_low=0.05, clip_high=0.05)
    groups = random_groups(policy, noise=0.2)
    rows = _rows(groups, algorithm)
    packed, statistics = _gradients(policy, rows, algorithm, 100)
    total, count, clipped = torch.zeros(()), sum(t.sampled_tokens for g in groups for t in g.trajectories), 0
    for group in groups:
        mean = sum(t.reward for t in group.trajectories) / len(group.trajectories)
        for each in group.trajectories:
            sequence = each.sequences[0]
            ids = torch.tensor(sequence.ids)
            hidden = policy.forward(ids, torch.arange(len(ids)), PackedCausal([len(ids)]))
            new = policy.token_logprobs(hidden[:-1], ids[1:], 1.0)[0][torch.tensor(sequence.sampled_mask[1:])]
            ratio = (new - torch.tensor([p for t in sequence.turns for p in t.logprobs])).exp()
            advantage = each.reward - mean
            total = total - torch.minimum(ratio * advantage, ratio.clamp(0.95, 1.05) * advantage).sum()
            clipped += int(((ratio.clamp(0.95, 1.05) - ratio) * advantage < 0).sum())
    (total / count).backward()
    for name, master in policy.masters.items():
        torch.testing.assert_close(packed[name], master.grad, atol=1e-6, rtol=1e-4)
    assert statistics.mean("clip_fraction") == pytest.approx(clipped / count)


def test_temperatures_of_turns_are_those_the_learner_computes_at(policy):
    rng = random.Random(0)
    turns, rest = [], []
    for temperature in (1.0, 0.5, 0.0, 2.0):
        turns.append(turn([rng.randrange(256) for _ in range(4)], [rng.randrange(256) for _ in range(3)]))
        turns[-1].temperature = temperature
    each = trajectory(*turns, reward=1.0)
    ids = each.sequences[0].ids
    for i, one in enumerate(turns):
        known = logprobs(policy, ids, one.temperature or 1.0)
        one.logprobs = known[7 * i + 3 : 7 * i + 6]
        rest += one.logprobs
    rows = make_batch([Group(id="", trajectories=[each, trajectory(turns[0])])], AlgorithmSettings()).rows
    assert Learner(policy, OptimizerSettings(), 1000).logprobs(rows)[0] == pytest.approx(rest, abs=1e-5)
    _, statistics = _gradients(policy, rows, AlgorithmSettings(), 1000)
    assert statistics.max("diff") < 1e-5


def test_importance_weight_by_hand():
    old = torch.tensor([-1.0, -1.0, -1.0]).requires_grad_()
    found = importance_weight(old, torch.tensor([-1.0, -1.0 - math.log(1.5), -6.0]), cap=2.0)
    torch.testing.assert_close(found, torch.tensor([1.0, 1.5, 2.0]))
    assert not found.requires_grad


def test_mismatch_is_k3_and_absolute_difference():
    found = mismatch(torch.tensor([-1.0, -2.0]), torch.tensor([-1.5, -1.0]))
    torch.testing.assert_close(found["kl"], torch.tensor([math.exp(0.5) - 1 - 0.5, math.exp(-1.0) - 1 + 1.0]))
    torch.testing.assert_close(found["diff"], torch.tensor([0.5, 1.0]))


def test_old_learner_weighs_tokens_by_the_truncated_ratio(policy):
    """On the first minibatch the ratio is 1, so the gradient is that of sum w A logprob with w = min(p/q, cap)."""
    algorithm = AlgorithmSettings(old="learner", is_cap=1.02)
    rows = weigh(make_batch(random_groups(policy, noise=0.1), algorithm).rows, "token")
    found, statistics = _gradients(policy, rows, algorithm, 1000)
    assert statistics.max("ratio") == pytest.approx(1.0)

    def by_hand(micro, logprobs_M, entropy_M):
        weight = (logprobs_M.detach() - micro.sampler_M).exp().clamp(max=1.02)
        return -(micro.weights_M * weight * micro.advantages_M * logprobs_M).sum(), {}

    Learner(policy, OptimizerSettings(), 1000).accumulate(rows, by_hand)
    for name, master in policy.masters.items():
        torch.testing.assert_close(found[name], master.grad, atol=1e-6, rtol=1e-4)


def test_entropy_bonus_adds_the_gradient_of_the_entropy(policy):
    rows = weigh(make_batch(random_groups(policy, noise=0.0), AlgorithmSettings()).rows, "token")
    rows = [replace(each, old_logprobs=each.sampler_logprobs) for each in rows]
    without, with_bonus = (policy_objective(AlgorithmSettings(surrogate="reinforce"), bonus) for bonus in (0.0, 0.3))
    grads = []
    for objective in (without, with_bonus, lambda micro, _, entropy_M: ((micro.weights_M * entropy_M).sum(), {})):
        Learner(policy, OptimizerSettings(), 1000).accumulate(rows, objective, entropy_gradient=True)
        grads.append({name: each.grad for name, each in policy.masters.items()})
        for each in policy.masters.values():
            each.grad = None
    for name in policy.masters:
        torch.testing.assert_close(grads[1][name], grads[0][name] - 0.3 * grads[2][name], atol=1e-6, rtol=1e-3)


def _trainer(policy, **settings):
    return PolicyTrainer(policy, TrainerSettings(micro_batch_tokens=200, **settings))


def test_step_makes_one_version_per_minibatch_and_reports(policy):
    trainer: Trainer = _trainer(policy, minibatches=2, optimizer={"lr": 0.01})
    before = {name: each.detach().clone() for name, each in policy.masters.items()}
    groups = random_groups(policy)
    result = trainer.step(groups)
    assert result.step == policy.version == 2
    assert any(not torch.equal(before[name], each) for name, each in policy.masters.items())
    m = result.metrics
    assert m["updates"] == 2
    assert m["trained_tokens"] == sum(t.sampled_tokens for g in groups for t in g.trajectories)
    assert m["groups_mixed"] == 1.0
    assert 0 < m["sampler_kl"] < 0.01
    assert 0 < m["sampler_logprob_diff"] < 0.1
    assert m["ratio_max"] > 1
    assert m["lr"] == 0.01
    assert all(math.isfinite(value) for value in m.values())
    assert trainer.step(groups).metrics["version_lag"] == 2


@pytest.mark.parametrize("old", ["sampler", "learner"])
def test_computed_tokens_count_a_shared_prefix_once(policy, old):
    groups = random_groups(policy, groups=2)
    metrics = PolicyTrainer(policy, TrainerSettings(algorithm={"old": old})).step(groups).metrics
    rows = [each.sequences[0].ids for group in groups for each in group.trajectories]
    rows = [ids[:-1] for ids in rows]  # the last sampled token predicts nothing
    distinct = {tuple(ids[: i + 1]) for ids in rows for i in range(len(ids))}  # a token is its whole prefix
    assert metrics["computed_tokens"] == len(distinct)
    assert metrics["row_tokens"] == sum(len(ids) for ids in rows) >= len(distinct) + 2 * 3 * 30  # prompts, four times


@pytest.mark.parametrize("old", ["sampler", "learner"])
def test_the_gap_is_measured_before_any_update(policy, old):
    groups = random_groups(policy, noise=0.0)
    metrics = _trainer(policy, minibatches=3, optimizer={"lr": 0.05}, algorithm={"old": old}).step(groups).metrics
    assert metrics["sampler_logprob_diff_max"] < 1e-5
    assert metrics["ratio_max"] > 1.001  # later minibatches meet a policy that has moved


def test_old_learner_takes_its_logprobs_before_the_first_update(policy):
    groups = random_groups(policy, noise=0.0)
    other = {}
    for old in ("sampler", "learner"):
        policy.load_state(other.get("start", policy.state()))
        policy.refresh(0)
        other.setdefault("start", {name: each.clone() for name, each in policy.state().items()})
        _trainer(policy, minibatches=3, optimizer={"lr": 0.01}, algorithm={"old": old}).step(groups)
        other[old] = {name: each.clone() for name, each in policy.state().items()}
    # without a sampler-learner gap both dials are the same algorithm
    for name in policy.masters:
        torch.testing.assert_close(other["sampler"][name], other["learner"][name], atol=1e-4, rtol=1e-3)


def test_step_without_contrast_trains_nothing_but_counts_and_measures(policy):
    trainer = _trainer(policy)
    groups = random_groups(policy)
    for group in groups:
        for each in group.trajectories:
            each.reward = 1.0
    before = {name: each.detach().clone() for name, each in policy.masters.items()}
    result = trainer.step(groups)
    assert all(torch.equal(before[name], each) for name, each in policy.masters.items())
    assert policy.version == 0
    assert trainer.steps == 1
    assert result.metrics["updates"] == 0
    assert result.metrics["groups_mixed"] == 0
    assert 0 < result.metrics["sampler_logprob_diff"] < 0.1
    assert trainer.step([]).metrics["groups"] == 0


def test_training_raises_the_probability_of_what_pays(policy):
    groups = random_groups(policy, noise=0.0)
    best = [max(group.trajectories, key=lambda t: t.reward).sequences[0] for group in groups]

    def score():
        return sum(p for s in best for p, m in zip(logprobs(policy, s.ids), s.sampled_mask[1:], strict=True) if m)

    before = score()
    trainer = _trainer(policy, optimizer={"lr": 0.01}, algorithm={"surrogate": "reinforce"})
    for _ in range(5):
        trainer.step(groups)
    assert score() > before + 1


def test_non_finite_gradient_is_thrown_away_counted_and_warned_of(policy, monkeypatch):
    trainer = _trainer(policy)
    before = {name: each.detach().clone() for name, each in policy.masters.items()}
    groups = random_groups(policy)
    real = Learner.accumulate

    def poisoned(self, rows, objective, entropy_gradient):
        statistics = real(self, rows, objective, entropy_gradient)
        next(iter(self.policy.masters.values())).grad[0, 0] = math.nan
        return statistics

    monkeypatch.setattr(Learner, "accumulate", poisoned)
    with pytest.warns(RuntimeWarning, match="update 1 skipped"):
        metrics = trainer.step(groups).metrics
    assert metrics["updates_skipped"] == 1
    assert "grad_norm" not in metrics
    assert policy.version == 0
    assert all(torch.equal(before[name], each) for name, each in policy.masters.items())
    monkeypatch.setattr(Learner, "accumulate", real)
    assert trainer.step(groups).metrics["updates"] == 1


def test_gradient_is_clipped_to_its_norm(policy):
    learner = Learner(policy, OptimizerSettings(max_grad_norm=0.5), 100)
    for master in policy.masters.values():
        master.grad = torch.ones_like(master)
    count = sum(each.numel() for each in policy.masters.values())
    norms = []
    learner.optimizer.register_step_pre_hook(
        lambda *_: norms.append(math.sqrt(sum(float((p.grad**2).sum()) for p in policy.masters.values())))
    )
    assert learner.update(0.1) == pytest.approx(math.sqrt(count), rel=1e-5)
    assert norms == pytest.approx([0.5], rel=1e-4)


def test_supervised_step_learns_the_replies_only(policy):
    trainer = _trainer(policy, optimizer={"lr": 0.02})
    data = [t.sequences[0] for g in random_groups(policy, groups=2) for t in g.trajectories]
    losses = [trainer.supervised_step(data).metrics["loss"] for _ in range(12)]
    nats = [
        p for s in data for p, m in zip(logprobs(policy, s.ids), s.sampled_mask[1:], strict=True) if m
    ]  # fmt: skip
    assert losses[-1] < 0.7 * losses[0]
    assert -sum(nats) / len(nats) < losses[-1]
    assert policy.version == 12


def test_supervised_loss_is_the_mean_negative_log_likelihood_whatever_the_split(policy):
    data = [t.sequences[0] for g in random_groups(policy) for t in g.trajectories]
    nats = [p for s in data for p, m in zip(logprobs(policy, s.ids), s.sampled_mask[1:], strict=True) if m]
    start = {name: each.clone() for name, each in policy.state().items()}
    ends = []
    for tokens in (50, 5000):
        policy.load_state(start)
        policy.refresh(0)
        trainer = PolicyTrainer(policy, TrainerSettings(micro_batch_tokens=tokens))
        loss = trainer.supervised_step(data, lr=0.01).metrics["loss"]
        assert loss == pytest.approx(-sum(nats) / len(nats), abs=1e-5)
        ends.append({name: each.clone() for name, each in policy.state().items()})
    # AdamW's first step is lr x sign(gradient), so where a gradient is all rounding the ends may differ by 2 lr
    near = [(ends[0][name] - ends[1][name]).abs().le(1e-4) for name in start]
    assert sum(int(each.sum()) for each in near) > 0.99 * sum(each.numel() for each in near)


def test_state_round_trip_continues_exactly(policy, tmp_path):
    settings = {"minibatches": 2, "optimizer": {"lr": 0.01, "schedule": "linear"}, "steps": 4}
    groups = random_groups(policy)
    trainer = _trainer(policy, **settings)
    trainer.step(groups)
    masters = {name: each.clone() for name, each in policy.state().items()}
    state = {name: each.clone() for name, each in trainer.state().items()}
    first = trainer.step(groups)
    after = {name: each.clone() for name, each in policy.state().items()}

    other = Policy.load(policy.folder, lora=LoraSettings(rank=4, alpha=8.0), dtype="float32", device="cpu")
    other.load_state(masters)
    other.refresh(2)
    again = _trainer(other, **settings)
    again.load_state(state)
    assert again.step(groups) == first
    assert all(torch.equal(after[name], each) for name, each in other.state().items())


def test_state_of_another_model_is_refused(policy, tmp_path):
    trainer = _trainer(policy)
    trainer.step(random_groups(policy))
    folder = tiny_model(tmp_path / "other", hidden=16)
    other = Policy.load(folder, lora=LoraSettings(rank=4), dtype="float32", device="cpu")
    with pytest.raises(ModelError, match="another model"):
        _trainer(other).load_state(trainer.state())
    deeper = tiny_model(tmp_path / "deeper", layers=1)
    other = Policy.load(deeper, lora=LoraSettings(rank=4), dtype="float32", device="cpu")
    with pytest.raises(ModelError, match="another model"):
        _trainer(other).load_state(trainer.state())
