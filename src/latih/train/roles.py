"""The roles of a game and the policies behind them: the one that is trained, those beside it, and its own past."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from latih.core.errors import LatihError
from latih.core.protocols import StepResult
from latih.core.trajectories import Group
from latih.evaluation.players import frozen, roles_of, seatings
from latih.inference.engine import Engine
from latih.models.checkpoint import load_checkpoint
from latih.models.policy import Policy
from latih.rollout import OWN, PAST, POLICY, Player, PlayerSettings, Rollouts
from latih.runs import Checkpoints, read_marker
from latih.train import checkpoint
from latih.train.config import Config
from latih.train.trainer import PolicyTrainer

MAIN = ""
"""The name of the policy that a run is about."""


@dataclass(frozen=True)
class Side:
    """A policy, what samples from it, and what trains it."""

    policy: Policy
    engine: Engine
    trainer: PolicyTrainer


@dataclass(frozen=True)
class Cast:
    """Who plays in training and on held-out episodes, and who learns from it."""

    rollouts: Rollouts
    held_out: list[Rollouts]
    sides: dict[str, Side]
    """The policies that learn: MAIN, and those that a role has of its own, by the role's name."""
    past: Side | None = None
    """Takes on earlier versions of the main policy."""

    @property
    def main(self) -> Side:
        """The policy that the run is about."""
        return self.sides[MAIN]

    def learn(self, groups: Sequence[Group]) -> StepResult:
        """One training step of every side, on the groups of its own roles. Raises LatihError where tokens are stale."""
        for name, side in self.sides.items():
            turns = [turn for group in self._of(name, groups) for each in group.trajectories for turn in each.turns]
            if stale := {turn.policy_version for turn in turns} - {side.policy.version}:
                raise LatihError(f"the sampler served policy version {min(stale)} while {side.policy.version} was due")
        return self._all(lambda name, side: side.trainer.step(self._of(name, groups)))

    def imitate(self, groups: Sequence[Group], lr: float) -> StepResult:
        """One supervised step of every side towards what was said in its own roles."""

        def step(name: str, side: Side) -> StepResult:
            played = [each for group in self._of(name, groups) for each in group.valid]
            return side.trainer.supervised_step([row for each in played for row in each.sequences], lr)

        return self._all(step)

    def restart(self) -> None:
        """A fresh optimizer for every side, as between the warm start and reinforcement learning."""
        for side in self.sides.values():
            side.trainer.restart()

    def recall(self, pool: Checkpoints, count: int, seed: int) -> None:
        """Let the past play as one of the latest `count` versions of `pool`, drawn by `seed`."""
        if self.past is None:
            return
        steps = pool.steps()[-count:]
        folder = pool.path(steps[seed % len(steps)])
        load_checkpoint(self.past.policy, folder)
        self.past.policy.refresh(int((read_marker(folder) or {})["info"]["version"]))

    def write(self, folder: Path, step: int) -> None:
        """All sides into a checkpoint's folder: the main one as any run, the others under `roles/`."""
        for name, side in self.sides.items():
            where = _folder(folder, name)
            where.mkdir(parents=True, exist_ok=True)
            checkpoint.write(where, side.trainer, step)

    def read(self, folder: Path) -> int:
        """Put all sides back; the step of the checkpoint. Raises ModelError where it is broken or of another model."""
        steps = [checkpoint.read(_folder(folder, name), side.trainer).step for name, side in self.sides.items()]
        return min(steps)

    def _of(self, name: str, groups: Sequence[Group]) -> list[Group]:
        own = self.sides.keys() - {MAIN}
        return [each for each in groups if (each.role if each.role in own else MAIN) == name]

    def _all(self, step: Callable[[str, Side], StepResult]) -> StepResult:
        """The main side's result, with the others' metrics as `<role>/<name>`.

        Keys and values of what was played go first: new weights make them worthless, and learning wants the memory.
        """
        for side in (*self.sides.values(), *filter(None, [self.past])):
            side.engine.forget()
        results = {name: step(name, side) for name, side in self.sides.items()}
        more = {f"{name}/{key}": value for name in results if name for key, value in results[name].metrics.items()}
        return StepResult(step=results[MAIN].step, metrics=results[MAIN].metrics | more)


def make_cast(config: Config, rollouts: Rollouts, main: Side, load: Callable[[str], Side], stack: ExitStack) -> Cast:
    """Seat the roles of the config's env; `load` makes another policy, by name. What is opened closes with `stack`.

    Raises ConfigError for a player that is not there, LatihError for one that is damaged.
    """
    held_out = replace(rollouts, make_env=config.env.make)
    sides = {MAIN: main}
    roles = roles_of(config.env)
    if not roles:
        return Cast(rollouts, [held_out], sides)

    def fixed(settings: PlayerSettings) -> Player:
        return stack.enter_context(frozen(settings, config.env, config.rollout.model_timeout))

    past: Side | None = None
    learning: dict[str, Player] = {}
    measured: dict[str, Player] = {}
    others: dict[str, Player] = {}
    for role in roles:
        settings = config.roles.get(role, PlayerSettings())
        if settings.player == POLICY:
            learning[role] = measured[role] = Player()
        elif settings.player == OWN:
            sides[role] = load(role)
            learning[role] = measured[role] = Player(sampler=sides[role].engine)
        elif settings.player == PAST:
            past = past or load(PAST)
            learning[role], measured[role] = Player(learns=False, sampler=past.engine), Player()
        else:
            others[role] = fixed(settings)
    opponent = config.evaluation.opponent
    return Cast(
        replace(rollouts, players=learning | others),
        seatings(held_out, measured, others, None if opponent.player == POLICY else fixed(opponent)),
        sides,
        past,
    )


def _folder(folder: Path, name: str) -> Path:
    return folder / "roles" / name if name else folder
