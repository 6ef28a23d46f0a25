"""Baselines: what trivial policies, an env's own scripts and endpoints score. Each is an evaluation as any other."""

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf

from latih.core import ChatModel, ConfigError, Message, SamplingParams, ToolSchema, nearest
from latih.envs import EnvSettings
from latih.evaluation.players import roles_of, scripts_of, seatings
from latih.harnesses import HarnessSettings
from latih.rollout import POLICY, ChatSampler, MessageRenderer, Player, PlayerSettings, Rollouts, RolloutSettings


class Trivial:
    """A chat model that looks at the last message at most."""

    def __init__(self, reply: Callable[[Message], str]) -> None:
        self.reply = reply

    async def chat(
        self,
        messages: SequenceOf[Message],
        *,
        tools: SequenceOf[ToolSchema] = (),
        params: SamplingParams | None = None,
    ) -> Message:
        """A reply to the last message."""
        return Message(role="assistant", content=self.reply(messages[-1]))


TRIVIAL: dict[str, Trivial] = {"no-op": Trivial(lambda _: ""), "echo": Trivial(lambda last: last.text)}
SCRIPTED = ("random", "expert")
"""Scripted policies that an env should have; it may have others."""
BASELINES = ("no-op", "random", "echo", "expert")


def baseline_seatings(
    policy: str | ChatModel,
    env: EnvSettings,
    harness: HarnessSettings,
    rollout: RolloutSettings,
    opponent: PlayerSettings | None = None,
) -> list[Rollouts] | None:
    """What plays a baseline by its name, or any chat model, for `evaluate`. No language model is loaded.

    In an env with several roles it plays each in turn, and the scripted `opponent` (by default `random`) the others; or
    all together, where the opponent is the policy itself. The bound on tokens does not bind scripts: their replies are
    whole messages. None where the env lacks a script that it should have. Raises ConfigError for an unknown name,
    and for an opponent that is no script.
    """
    script: str | None = None
    model: ChatModel = TRIVIAL["no-op"]  # where a script plays, it is never asked
    scripts = scripts_of(env)
    if not isinstance(policy, str):
        model = policy
    elif policy in TRIVIAL:
        model = TRIVIAL[policy]
    elif policy in scripts:
        script = policy
    elif policy in SCRIPTED:
        return None
    else:
        known = nearest(policy, {*BASELINES, *scripts})
        raise ConfigError(f"unknown policy {policy!r}: {known}. An endpoint is given by its URL, http://…")
    learning = {role: Player(script=script) for role in roles_of(env)}
    against = "random" if opponent is None else opponent.player
    if learning and against not in (POLICY, *scripts):
        raise ConfigError(
            f"evaluation.opponent={against}: a baseline plays against a scripted policy of the env, or `policy` plays "
            f"all roles: {nearest(against, {POLICY, *scripts})}"
        )
    renderer = MessageRenderer()
    rollouts = Rollouts(
        rollout,
        env.make,
        harness.make(),
        renderer,
        ChatSampler(model, renderer),
        env=env.id,
        script=None if learning else script,
    )
    return seatings(rollouts, learning, {}, None if against == POLICY else Player(learns=False, script=against))
