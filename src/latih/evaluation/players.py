"""Who plays the roles that a policy does not: scripts, endpoints, and policies that stay as they are."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from latih.core import ConfigError, ModelError, nearest
from latih.envs import EnvSettings, find
from latih.evaluation.agent import Agent
from latih.evaluation.source import find_source
from latih.models.endpoint import EndpointModel
from latih.models.source import resolve_model
from latih.rollout import OWN, PAST, POLICY, ChatSampler, MessageRenderer, Player, PlayerSettings, Rollouts

LEARNING = (POLICY, OWN, PAST)
URLS = ("http://", "https://")


def roles_of(env: EnvSettings) -> tuple[str, ...]:
    """The roles of an env that has several, and none for any other. Raises ConfigError."""
    roles = tuple(getattr(find(env.id), "roles", ()))
    return roles if len(roles) > 1 else ()


def scripts_of(env: EnvSettings) -> tuple[str, ...]:
    """The names of an env's scripted policies. Raises ConfigError."""
    return tuple(getattr(find(env.id), "policies", ()))


def check_player(settings: PlayerSettings, env: EnvSettings) -> None:
    """Tell whether a player is there without loading it; a model that has to be fetched is.

    Raises ConfigError for a name that is neither a scripted policy of the env nor an endpoint, nor a run, checkpoint
    or model; LatihError where that is damaged.
    """
    name, scripts = settings.player, scripts_of(env)
    if name in LEARNING or name in scripts:
        return
    if name.startswith(URLS):
        if not settings.model:
            raise ConfigError(f"say which model of {name} plays: {{player: {name}, model: NAME}}")
        EndpointModel(name, settings.model)
        return
    try:
        resolve_model(find_source(name).model)
    except ModelError as exc:
        known = nearest(name, {*LEARNING, *scripts})
        end = "" if known.endswith("?") else "."
        raise ConfigError(f"no player {name!r}: {known}{end} Nor is it a run, checkpoint or model: {exc}") from None


@contextmanager
def frozen(settings: PlayerSettings, env: EnvSettings, timeout: float) -> Iterator[Player]:
    """A player that learns nothing, as `settings` name it; `timeout` (seconds) bounds a call of an endpoint.

    Raises as `check_player` does.
    """
    check_player(settings, env)
    name = settings.player
    if name in scripts_of(env):
        yield Player(learns=False, script=name)
    elif name.startswith(URLS):
        renderer = MessageRenderer()
        endpoint = EndpointModel(name, settings.model, timeout=timeout)
        yield Player(learns=False, sampler=ChatSampler(endpoint, renderer), renderer=renderer)
    else:
        with Agent.load(find_source(name)) as agent:
            yield Player(learns=False, sampler=agent.engine, renderer=agent.renderer)


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


@contextmanager
def seated(
    rollouts: Rollouts,
    env: EnvSettings,
    roles: Mapping[str, PlayerSettings],
    opponent: PlayerSettings,
    timeout: float,
) -> Iterator[list[Rollouts]]:
    """The seatings of one policy that is measured by itself: it takes the roles that it was trained in, or beside.

    Raises as `check_player` does, and ConfigError where a role has a policy of its own.
    """
    with ExitStack() as stack:
        learning: dict[str, Player] = {}
        fixed: dict[str, Player] = {}
        for role in roles_of(env):
            settings = roles.get(role, PlayerSettings())
            if settings.player == OWN:
                raise ConfigError(f"role {role} has a policy of its own: say who plays it, such as roles.{role}=random")
            if settings.player in LEARNING:
                learning[role] = Player()
            else:
                fixed[role] = stack.enter_context(frozen(settings, env, timeout))
        other = None
        if learning and opponent.player != POLICY:
            other = stack.enter_context(frozen(opponent, env, timeout))
        yield seatings(rollouts, learning, fixed, other)
