"""Settings of evaluation."""

from collections.abc import Sized

from pydantic import Field

from latih.core.schema import Record
from latih.rollout import PlayerSettings


class EvaluationSettings(Record):
    """How a policy is measured on held-out episodes. All else is as in training: one code path."""

    episodes: int = Field(default=200, ge=1)
    """Episodes of an evaluation. The intervals shrink with the square root of their number. Of a data set every row is
    played once at most."""
    every: int = Field(default=0, ge=0)
    """Training steps between evaluations; 0 measures only before training, after a warm start, and at the end."""
    seed: int = 0
    """Of the held-out episodes. It is not the run's seed, so that runs are measured on the same episodes."""
    temperature: float | None = Field(default=None, ge=0.0)
    """None samples as training does; 0 is greedy."""

    opponent: PlayerSettings = PlayerSettings(player="random")
    """In an env with several roles the policy plays each role in turn, and this plays the others;
    a role that `roles` gives to a player that learns nothing keeps that one. `policy`: it plays them all together, as
    in a game that is won by helping each other. `own` and `past` change and are refused here. `latih baseline` knows
    scripted policies and `policy` only."""

    def count(self, tasks: Sized = ()) -> int:
        """How many episodes there will be, of each role that is measured."""
        return min(self.episodes, len(tasks)) if tasks else self.episodes
