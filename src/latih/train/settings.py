"""The settings of training: algorithm, optimizer, warm start, checkpoints."""

from typing import Literal

from pydantic import Field, model_validator

from latih.core.schema import Record
from latih.models.policy import PolicySettings
from latih.train.advantages import advantages
from latih.train.aggregations import aggregations
from latih.train.ratios import ratios
from latih.train.surrogates import surrogates


class AlgorithmSettings(Record):
    """Advantage x ratio level x surrogate x aggregation, and what counts."""

    advantage: str = "mean"
    """How returns become advantages: mean, grpo, rloo, anchor."""
    ratio: str = "token"
    """Over what the ratio of new to old policy is taken: token, sequence."""
    surrogate: str = "clip"
    """The loss of a token: clip, cispo, reinforce."""
    aggregation: str = "token"
    """The weight of a token: token, sequence, constant."""
    clip_low: float = Field(default=0.2, ge=0.0, le=1.0)
    """The ratio of new to old policy earns nothing below 1 - clip_low."""
    clip_high: float = Field(default=0.28, ge=0.0)
    """Nor above 1 + clip_high."""
    old: Literal["sampler", "learner"] = "sampler"
    """Whose logprobs stand for the old policy in the ratio: those recorded while sampling, or the learner's own at the
    start of the step. The latter costs a forward pass over all minibatches but the first."""
    is_cap: float = Field(default=2.0, gt=0.0)
    """With `old: learner`: the cap of the importance weight old learner / sampler of each token (truncated importance
    sampling, Yao et al. 2025). With `old: sampler` the ratio itself holds that correction, so no weight is used."""
    entropy_bonus: float = Field(default=0.0, ge=0.0)
    """What a nat of entropy of each token's distribution is worth, beside an advantage of 1. It falls linearly
    towards 0 at the last step: the policy explores first and settles then."""
    constant: int = Field(default=1, ge=1)
    """The divisor, in tokens per trajectory, of the constant aggregation."""
    overlong: Literal["score", "mask", "penalize"] = "score"
    """Trajectories that ran out of turns or context, that the env truncated, or whose last reply `max_tokens` cut:
    train on the env's reward; leave them out of baseline and loss; or take `overlong_penalty` off their reward."""
    overlong_penalty: float = Field(default=1.0, ge=0.0)
    """With `overlong: penalize`, in units of reward."""
    count_uniform_groups: bool = False
    """Whether the tokens of groups without contrast, which carry no gradient, count in the loss's denominator."""

    @model_validator(mode="after")
    def _registered(self) -> "AlgorithmSettings":
        advantages.get(self.advantage)
        ratios.get(self.ratio)
        surrogates.get(self.surrogate)
        aggregations.get(self.aggregation)
        return self


class OptimizerSettings(Record):
    """AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101) on the float32 masters."""

    lr: float = Field(default=3e-4, gt=0.0)
    """The learning rate. Adapters want about ten times that of full fine-tuning."""
    betas: tuple[float, float] = (0.9, 0.999)
    """How slowly the running means of gradient and squared gradient forget."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """Decoupled from the gradient; of the masters, so of A and B where an adapter trains."""
    warmup_steps: int = Field(default=0, ge=0)
    """Training steps over which the learning rate grows linearly to `lr`."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate goes from `lr`, after the warm-up, towards 0 at the last step."""
    max_grad_norm: float = Field(default=1.0, gt=0.0)
    """A longer gradient is scaled down to this norm."""


class WarmStartSettings(Record):
    """Supervised steps on games that a scripted policy played, before reinforcement learning."""

    steps: int = Field(default=25, ge=1)
    """Supervised updates."""
    games: int = Field(default=16, ge=1)
    """New games in each step."""
    lr: float = Field(default=1e-3, gt=0.0)
    """Constant. Reinforcement learning begins with a fresh optimizer."""
    policy: str = "random"
    """The name of the env's scripted policy; `random` plays legally and aimlessly."""


class CheckpointSettings(Record):
    """When checkpoints are written and how many stay."""

    every: int = Field(default=5, ge=1)
    """Training steps between two checkpoints; the last step always writes one."""
    keep: int = Field(default=2, ge=1)
    """The latest so many stay, and the one of the step with the highest reward besides."""
    pool: int = Field(default=10, ge=1)
    """Where a role is played by the policy's `past`: it is drawn from the latest so many checkpoints, whose weights
    are kept apart."""


class TrainerSettings(Record):
    """Everything between a group of trajectories and a new policy version."""

    policy: PolicySettings = PolicySettings()
    algorithm: AlgorithmSettings = AlgorithmSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    minibatches: int = Field(default=1, ge=1)
    """Optimizer updates in one training step, each on its own share of the groups (of the trajectories,
    where fewer groups have a gradient)."""
    micro_batch_tokens: int = Field(default=2000, ge=1)
    """Tokens of one forward and backward pass; bounds memory, does not change the gradient."""
    steps: int = Field(default=20, ge=0)
    """Training steps: play groups, then train on them."""
    warm_start: WarmStartSettings | None = None
    checkpoint: CheckpointSettings = CheckpointSettings()
