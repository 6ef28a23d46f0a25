"""What the user may set about rollouts."""

from typing import Any

from pydantic import Field, model_validator

from latih.core import SamplingParams
from latih.core.schema import Record

POLICY, OWN, PAST = "policy", "own", "past"
"""The players that a training has at hand; any other name is of one that learns nothing."""


class PlayerSettings(Record):
    """Who plays a role of an env that has several."""

    player: str = POLICY
    """`policy`: the policy that is trained; `own`: one of the role's own, trained beside it; `past`: an earlier version
    of the policy, drawn anew at each step. The rest learns nothing: a scripted policy of the env, a run, checkpoint or
    model, or the URL of an OpenAI-compatible endpoint."""
    model: str = ""
    """The model's name at an endpoint."""

    @model_validator(mode="before")
    @classmethod
    def _of_name(cls, value: Any) -> Any:
        """A name alone is the player's."""
        return {"player": value} if isinstance(value, str) else value


class RolloutSettings(Record):
    """How episodes are played. Times are in seconds."""

    groups: int = Field(default=16, ge=1)
    """Groups in a training step; each has a task and an env seed of its own."""
    group_size: int = Field(default=8, ge=1)
    """Trajectories in a group."""
    max_turns: int = Field(default=16, ge=1)
    """Steps of the env after which an episode is cut (stop reason `turns`)."""
    max_model_calls: int = Field(default=128, ge=1)
    """Bound on live calls of the sampler, those of all roles together; further ones wait. How many of them the embedded
    engine computes at a time is bounded by `inference.kv_cache_gb`; the rest wait, too. No call is refused."""
    max_envs: int = Field(default=128, ge=1)
    """Bound on live envs, and so on episodes that are played at once."""
    step_timeout: float = Field(default=60.0, gt=0)
    """For one call of an env, its constructor included, not counting a wait for a sandbox; `close` gets 10 at most."""
    model_timeout: float = Field(default=600.0, gt=0)
    """For one call of the sampler, not counting the wait for a place under `max_model_calls`."""
    episode_timeout: float = Field(default=3600.0, gt=0)
    """For a whole episode: what stops a harness that hangs."""
    max_error_fraction: float = Field(default=0.1, ge=0.0, le=1.0)
    """Errors above this fraction of the trajectories that are to be played stop the run."""
    sampling: SamplingParams = SamplingParams()
