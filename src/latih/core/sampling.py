"""Sampling: what a sampler is asked for and what it gives back."""

from enum import StrEnum

from pydantic import Field, model_validator

from latih.core.schema import Record


class StopReason(StrEnum):
    """Why a model call, or an episode, ended."""

    STOP = "stop"
    """A stop token or stop string was sampled."""
    LENGTH = "length"
    """`max_tokens` was reached."""
    CONTEXT = "context"
    """The model's context is full."""
    CANCELLED = "cancelled"
    """The caller went away."""
    TERMINATED = "terminated"
    """The environment says that the episode is over."""
    TRUNCATED = "truncated"
    """The environment cut the episode short."""
    TURNS = "turns"
    """`rollout.max_turns` steps of the env are over."""
    ERROR = "error"
    """A fault that is not the policy's; see the trajectory's `error`."""

    @property
    def is_truncation(self) -> bool:
        """Whether the policy ran out of something (tokens, turns, context) before the task was over."""
        return self in (StopReason.LENGTH, StopReason.CONTEXT, StopReason.TRUNCATED, StopReason.TURNS)


class SamplingParams(Record):
    """How to sample. The default is the untruncated softmax at temperature 1, which is what training wants."""

    temperature: float = Field(1.0, ge=0.0)
    """0 is greedy."""
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    """Sample among the likeliest tokens that make up this much probability; 1 turns it off."""
    top_k: int = Field(0, ge=0)
    """Sample among so many likeliest tokens; 0 turns it off."""
    min_p: float = Field(0.0, ge=0.0, le=1.0)
    """Leave out tokens less likely than this fraction of the likeliest; 0 turns it off."""
    max_tokens: int = Field(128, ge=1)
    """Of one reply."""
    stop: list[str] = []
    """Strings that end the reply; the tokens that complete one are kept."""
    stop_ids: list[int] = []
    """Token ids that end the reply, kept as its last token. The renderer adds the template's own."""
    seed: int | None = None
    """Seeds this request alone; None draws a fresh one."""

    @property
    def truncated(self) -> bool:
        """Whether the sampled distribution differs in support from the full softmax."""
        return self.top_p < 1.0 or self.top_k > 0 or self.min_p > 0.0


class Sample(Record):
    """What a sampler answers. All lists have one entry per sampled token."""

    ids: list[int]
    logprobs: list[float]
    """Natural log probabilities under the distribution that was sampled from (temperature and truncation applied);
    of greedy sampling, under the full softmax at temperature 1."""
    full_logprobs: list[float] | None = None
    """Under the full softmax at the same temperature, where top-p, top-k or min-p cut the sampled one."""
    stop_reason: StopReason
    policy_version: int
    """The oldest version that made any of the tokens."""

    @model_validator(mode="after")
    def _same_length(self) -> "Sample":
        if len(self.ids) != len(self.logprobs):
            raise ValueError(f"{len(self.ids)} ids but {len(self.logprobs)} logprobs")
        if self.full_logprobs is not None and len(self.full_logprobs) != len(self.ids):
            raise ValueError(f"{len(self.ids)} ids but {len(self.full_logprobs)} full_logprobs")
        return self
