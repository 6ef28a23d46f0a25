"""The trainer: groups of trajectories in, a better policy out. It knows no env."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from latih.core.protocols import StepResult
from latih.core.seeds import derive_seed
from latih.core.trajectories import Group
from latih.core.trajectories import Sequence as TokenSequence
from latih.models.policy import Policy
from latih.train.batch import Batch, Row, make_batch, row, split, weigh
from latih.train.learner import Learner, Statistics
from latih.train.losses import mismatch, policy_objective, supervised_objective
from latih.train.packing import pack
from latih.train.schedules import learning_rate
from latih.train.settings import TrainerSettings


class PolicyTrainer:
    """Policy-gradient and supervised updates of one policy: a `latih.core.Trainer`."""

    def __init__(self, policy: Policy, settings: TrainerSettings, seed: int = 0) -> None:
        self.policy = policy
        self.settings = settings
        self.seed = seed
        self.steps = 0
        """Training steps made, those without an update included."""
        self.learner = Learner(policy, settings.optimizer, settings.micro_batch_tokens)

    def step(self, groups: Sequence[Group]) -> StepResult:
        """One training step: up to `minibatches` updates. Groups without contrast leave the policy as it is."""
        algorithm = self.settings.algorithm
        batch = make_batch(groups, algorithm)
        lr = learning_rate(self.settings.optimizer, self.steps, self.settings.steps)
        minibatches = split(batch.rows, self.settings.minibatches, derive_seed(self.seed, "minibatches", self.steps))
        minibatches = [weigh(rows, algorithm.aggregation, algorithm.constant) for rows in minibatches]
        minibatches = self._with_old([[row for row in rows if row.trains] for rows in minibatches])
        bonus = algorithm.entropy_bonus * max(0.0, 1 - self.steps / max(1, self.settings.steps))
        objective = policy_objective(algorithm, bonus)
        lag = self._lag(groups)
        every: list[Statistics] = []
        norms: list[float] = []
        for rows in minibatches:
            every.append(self.learner.accumulate(rows, objective, bonus > 0))
            norms.append(self.learner.update(lr))
        self.steps += 1
        return StepResult(
            step=self.policy.version,
            metrics={
                **batch.metrics,
                **(_gap(every[0]) if every else self._measured_gap(batch)),
                **_summary(every, norms),
                "lr": lr,
                "version": self.policy.version,
                "version_lag": lag,
            },
        )

    def supervised_step(self, sequences: Sequence[TokenSequence], lr: float | None = None) -> StepResult:
        """One update towards the assistant tokens of `sequences`: mean negative log-likelihood over all tokens."""
        rows = weigh([row(each, [1.0] * sum(each.sampled_mask), i) for i, each in enumerate(sequences)], "token")
        statistics = self.learner.accumulate(rows, supervised_objective)
        norm = self.learner.update(self.settings.optimizer.lr if lr is None else lr)
        metrics = {**_summary([statistics], [norm]), "trained_tokens": sum(len(each.targets) for each in rows)}
        metrics["row_tokens"] = sum(len(each.ids) for each in rows)
        return StepResult(step=self.policy.version, metrics=metrics)

    def restart(self) -> None:
        """A fresh optimizer, as between the warm start and reinforcement learning."""
        self.learner.restart()

    def _with_old(self, minibatches: list[list[Row]]) -> list[list[Row]]:
        """Name the old policy of every row. The first minibatch meets the learner as it is: it needs no extra pass."""
        if self.settings.algorithm.old == "sampler":
            return [[replace(row, old_logprobs=row.sampler_logprobs) for row in rows] for rows in minibatches]
        later = [row for rows in minibatches[1:] for row in rows]
        known = iter(self.learner.logprobs(later))
        return minibatches[:1] + [[replace(row, old_logprobs=next(known)) for row in rows] for rows in minibatches[1:]]

    def _measured_gap(self, batch: Batch) -> dict[str, float]:
        """Sampler against learner on one micro-batch, for a step in which nothing trains."""
        packed = pack(batch.rows + batch.uniform, self.settings.micro_batch_tokens)
        if not packed:
            return {}
        learner = [p for values in self.learner.logprobs(packed[0]) for p in values]
        sampler = [p for row in packed[0] for p in row.sampler_logprobs]
        statistics = Statistics()
        statistics.add(mismatch(torch.tensor(learner), torch.tensor(sampler)))
        return _gap(statistics)

    def _lag(self, groups: Sequence[Group]) -> float:
        """How many versions ago the oldest token was sampled."""
        versions = [turn.policy_version for group in groups for each in group.trajectories for turn in each.turns]
        return self.policy.version - min(versions) if versions else 0

    def state(self) -> dict[str, Tensor]:
        """Optimizer tensors and the step count; the policy's masters are saved by the policy."""
        return {**self.learner.state(), "steps": torch.tensor(self.steps)}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave. Raises ModelError where it belongs to another model."""
        self.steps = int(tensors["steps"])
        self.learner.load_state({name: value for name, value in tensors.items() if name != "steps"})


def _gap(statistics: Statistics) -> dict[str, float]:
    return {
        "sampler_kl": statistics.mean("kl"),
        "sampler_logprob_diff": statistics.mean("diff"),
        "sampler_logprob_diff_max": statistics.max("diff"),
    }


def _summary(every: Sequence[Statistics], norms: Sequence[float]) -> dict[str, float]:
    """Means over the updates of a step; nothing of what a step without updates does not have."""
    finite = [norm for norm in norms if math.isfinite(norm)]
    metrics: dict[str, float] = {"updates": len(finite), "updates_skipped": len(norms) - len(finite)}
    metrics["computed_tokens"] = sum(each.tokens for each in every)
    if finite:
        metrics["grad_norm"] = math.fsum(finite) / len(finite)
    if every:
        metrics["loss"] = math.fsum(each.sum("loss") for each in every) / len(every)
        metrics["entropy"] = math.fsum(each.mean("entropy") for each in every) / len(every)
        if every[0].has("ratio"):
            metrics["clip_fraction"] = math.fsum(each.mean("clip_fraction") for each in every) / len(every)
            metrics["ratio_max"] = max(each.max("ratio") for each in every)
    return metrics
