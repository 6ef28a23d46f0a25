"""Who plays the roles that a policy does not: scripts, endpoints, and policies that stay as they are."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from latih.core import ConfigError, ModelError, nearest
from latih.envs import EnvSettings, find
from latih.evaluation.agent import Agent
from latih.evaluation.source import Source, find_source
from latih.models.endpoint import EndpointModel
from latih.models.source import resolve_model
from latih.rollout import ChatSampler, MessageRenderer, Player, PlayerSettings, Rollouts


def roles_of(env: EnvSettings) -> tuple[str, ...]:
    """The roles of an env that has several, and none for any other. Raises ConfigError."""
    roles = tuple(getattr(find(env.id), "roles", ()))
    return roles if len(roles) > 1 else ()


@contextmanager
def frozen(settings: PlayerSettings, env: EnvSettings, timeout: float) -> Iterator[Player]:
    """A player that learns nothing, as `settings` name it; `timeout` (seconds) bounds a call of an endpoint.

    Raises ConfigError for a name that is neither a scripted policy of the env nor an endpoint, nor a run, checkpoint
    or model; LatihError where that is damaged.
    """
    found = find_player(settings, env, timeout)
    if isinstance(found, Player):
        yield found
    else:
        with Agent.load(found) as agent:
            yield Player(learns=False, sampler=agent.engine, renderer=agent.renderer)


def find_player(settings: PlayerSettings, env: EnvSettings, timeout: float) -> Player | Source:
    """What `frozen` seats, before anything large is loaded: a player, or where its weights are. Raises as it does."""
    name, scripts = settings.player, tuple(getattr(find(env.id), "policies", ()))
    if name in scripts:
        return Player(learns=False, script=name)
    if name.startswith(("http://", "https://")):
        if not settings.model:
            raise ConfigError(f"say which model of {name} plays: {{player: {name}, model: NAME}}")
        renderer = MessageRenderer()
        endpoint = EndpointModel(name, settings.model, timeout=timeout)
        return Player(learns=False, sampler=ChatSampler(endpoint, renderer), renderer=renderer)
    source = find_source(name)
    try:
        resolve_model(source.model)
    except ModelError as exc:
        known = nearest(name, {"policy", "past", "own", *scripts})
        raise ConfigError(f"no player {name!r}: {known}; nor a run, checkpoint or model: {exc}") from None
    return source


def seatings(
    rollouts: Rollouts, learning: Mapping[str, Player], fixed: Mapping[str, Player], opponent: Player | None
) -> list[Rollouts]:
    """How an evaluation seats the roles: each that learns in turn, `opponent` in the place of the others that do.

    `fixed` players keep their roles. Without an opponent the learning roles play together. An env without roles has
    one seating, `rollouts` itself.
    """
    if not learning:
        return [rollouts]
    if opponent is None or len(learning) == 1:
        return [replace(rollouts, players={**learning, **fixed})]
    others = dict.fromkeys(learning, opponent)
    return [replace(rollouts, players={**others, role: player, **fixed}) for role, player in learning.items()]
