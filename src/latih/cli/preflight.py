"""What is checked before anything long begins, so that a mistake costs seconds."""

from dataclasses import dataclass

from latih.core import ConfigError, Message
from latih.envs.spaces import messages_of
from latih.models.chat import Renderer
from latih.models.config import DecoderConfig
from latih.models.device import pick_device, pick_dtype
from latih.models.source import resolve_model
from latih.rollout import plan
from latih.tracking import Events, find_loggers, named_progress
from latih.train.config import Config


@dataclass(frozen=True)
class Preflight:
    """What was found."""

    model: str
    """The model's folder."""
    computes: str
    """Device and compute type."""
    messages: list[Message]
    """The first observation of the first training episode."""
    prompt: str
    """As it is rendered."""
    prompt_tokens: int
    context_length: int


def preflight(config: Config, events: Events) -> Preflight:
    """Check loggers, device, env, model and context. Raises LatihError, in one line, for the first fault."""
    find_loggers(config.tracking)
    device = pick_device(config.trainer.policy.model.device)
    dtype = pick_dtype(config.trainer.policy.model.dtype, device)
    env = config.env.make()
    try:
        seed = plan(config.seed, "train", 1, groups=1)[0].seed
        messages = messages_of(env.reset(seed=seed)[0])
        tools = list(env.tools)
    except Exception as exc:
        raise ConfigError(f"env {config.env.id} cannot be reset: {type(exc).__name__}: {exc}") from exc
    finally:
        env.close()
    with named_progress(events) as told:
        folder = resolve_model(config.trainer.policy.model.path, told)
    renderer = Renderer.from_folder(folder)
    ids = renderer.render(messages, tools)
    longest = DecoderConfig.from_folder(folder).context_length
    context = min(config.inference.context_length or longest, longest)
    if len(ids) >= context:
        mend = "raise inference.context_length" if context < longest else "take a model with a longer context"
        raise ConfigError(
            f"the first prompt has {len(ids)} tokens and leaves no room for a reply in a context of {context}: "
            f"{mend}, or make the env's messages shorter"
        )
    return Preflight(
        model=str(folder),
        computes=f"{str(dtype).removeprefix('torch.')} on {device}",
        messages=messages,
        prompt=renderer.tokenizer.decode(ids),
        prompt_tokens=len(ids),
        context_length=context,
    )
