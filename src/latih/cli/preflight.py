"""What is checked before anything long begins, so that a mistake costs seconds."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from latih.core import ConfigError, Sample, SamplingParams, StopReason
from latih.evaluation import check_player, roles_of
from latih.inference.cache import capacity
from latih.models.chat import Renderer
from latih.models.config import DecoderConfig
from latih.models.device import pick_device, pick_dtype
from latih.models.source import resolve_model
from latih.rollout import Player, Rollouts, TaskSets, plan
from latih.sandbox import unisolated
from latih.tracking import Events, find_loggers, named_progress
from latih.train.config import Config
from latih.train.setup import try_out


@dataclass(frozen=True)
class Preflight:
    """What was found."""

    model: str
    """The model's folder."""
    computes: str
    """Device and compute type."""
    prompt: str
    """What the harness shows the policy first, in the first training episode."""
    prompt_tokens: int
    context_length: int
    tasks: TaskSets
    """The data, read and checked."""


def preflight(config: Config, events: Events) -> Preflight:
    """Check loggers, device, env, harness, model, cache, players and prompt.

    Warns where programs are not isolated. Raises LatihError, in one line for the first fault.
    """
    if unisolated():
        events.warn(unisolated())
    find_loggers(config.tracking)
    device = pick_device(config.trainer.policy.model.device)
    dtype = pick_dtype(config.trainer.policy.model.dtype, device)
    tasks = try_out(config)
    with named_progress(events) as told:
        folder = resolve_model(config.trainer.policy.model.path, told)
    shape = DecoderConfig.from_folder(folder)
    context, _ = capacity(shape, config.inference, dtype)  # before minutes go into reading the weights
    if roles_of(config.env):
        for player in (*config.roles.values(), config.evaluation.opponent):
            check_player(player, config.env)
    renderer = Renderer.from_folder(folder)
    probe = _Probe()
    settings = config.rollout.model_copy(update={"max_error_fraction": 1.0})
    rollouts = Rollouts(
        settings,
        config.env.make_training,
        config.harness.make(),
        renderer,
        probe,
        env=f"env {config.env.id}",
        players={role: Player() for role in roles_of(config.env)},
    )
    [group, *_] = rollouts.run(plan(config.seed, "train", 1, groups=1, tasks=tasks.train))
    if probe.prompt is None:
        error = group.trajectories[0].error
        raise ConfigError(error.message.partition("\n")[0] if error else "the harness asks the policy for nothing")
    ids = probe.prompt
    if len(ids) >= context:
        mend = (
            "raise inference.context_length" if context < shape.context_length else "take a model with a longer context"
        )
        raise ConfigError(
            f"the first prompt has {len(ids)} tokens and leaves no room for a reply in a context of {context}: "
            f"{mend}, or make the env's messages shorter"
        )
    return Preflight(
        model=str(folder),
        computes=f"{str(dtype).removeprefix('torch.')} on {device}",
        prompt=renderer.tokenizer.decode(ids),
        prompt_tokens=len(ids),
        context_length=context,
        tasks=tasks,
    )


class _Probe:
    """A sampler that keeps the first prompt, and has no room for an answer."""

    policy_version = 0
    context_length = sys.maxsize

    def __init__(self) -> None:
        self.prompt: list[int] | None = None

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams) -> Sample:
        self.prompt = self.prompt or list(prompt_ids)
        return Sample(ids=[], logprobs=[], stop_reason=StopReason.CONTEXT, policy_version=0)

    def forget(self) -> None:
        pass
