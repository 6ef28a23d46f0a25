"""What an evaluation found, with the sampling that it found it under."""

import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from latih.core import LatihError, Message, SamplingParams, Trajectory, first_line
from latih.core.files import whole_file, writing
from latih.core.schema import Record
from latih.evaluation.intervals import Estimate, clustered, student
from latih.harnesses import HarnessSettings

RESULT = "eval.json"
EPISODES = "episodes.parquet"
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "stop_ids")
"""What of the sampling parameters changes the distribution of replies."""


class EvalResult(Record):
    """Means over the episodes that no error ended, each with its 95 % interval."""

    label: str
    """What was measured, in words: "after warm start"."""
    policy: str = ""
    """Where its weights come from."""
    policy_version: int = 0
    env: str
    env_args: dict[str, Any] = {}
    """The env's dials."""
    data: str = ""
    """The data set whose rows were played, where there is one."""
    seed: int
    """Of the held-out episodes."""
    harness: HarnessSettings | None = None
    """Who played, and with which dials; None where a harness played that no settings name."""
    sampling: SamplingParams
    unisolated: str = ""
    """What to say where the sandbox isolated nothing (`latih.sandbox.unisolated`)."""
    max_turns: int
    episodes: int
    """All that were played."""
    errors: dict[str, int] = {}
    """Episodes that a fault ended, by kind. They are in no mean."""
    reward: Estimate
    """Of the mean reward, by Student's t over the games."""
    rates: dict[str, Estimate] = {}
    """Of the metrics that are 0 or 1 in every episode, and of truncation, by Wilson (see `clustered`)."""
    means: dict[str, Estimate] = {}
    """Of the env's other metrics, and of turns and sampled tokens, by Student's t over the games."""
    example: list[Message] = []
    """The first episode's conversation (see `conversation`): not picked."""
    example_reward: float = 0.0
    seconds: float = 0.0
    time: float = Field(default_factory=time.time)
    """When it was made, in seconds since 1970."""

    @property
    def metrics(self) -> dict[str, float]:
        """The values alone, as `eval/<name>`, for the trackers."""
        estimates = {"reward": self.reward, **self.rates, **self.means}
        return {f"eval/{name}": each.value for name, each in estimates.items()}

    @property
    def conditions(self) -> dict[str, str]:
        """Under what the numbers came about, in words: two evaluations that differ here are not of one kind."""
        sampling = self.sampling.model_dump(exclude_defaults=True, include=set(SAMPLING))
        shown = {"temperature": self.sampling.temperature, "max_tokens": self.sampling.max_tokens, **sampling}
        return {
            "env": _call(self.env, self.env_args),
            "seed": str(self.seed),
            "harness": _call(self.harness.id, self.harness.args) if self.harness else "not recorded",
            "sampling": ", ".join(f"{name} {_short(value)}" for name, value in shown.items()),
            "max_turns": str(self.max_turns),
            "sandbox": self.unisolated or "isolated",
        }

    def save(self, folder: Path) -> None:
        """Write eval.json, whole or not at all. Raises LatihError."""
        with writing(RESULT, folder), whole_file(folder / RESULT) as temporary:
            temporary.write_text(self.model_dump_json(indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "EvalResult":
        """Read eval.json. Raises LatihError where it is missing or damaged."""
        try:
            return cls.model_validate_json((folder / RESULT).read_text(encoding="utf-8"))
        except (OSError, ValidationError) as exc:
            raise LatihError(f"cannot read {folder / RESULT}: {first_line(exc)}") from exc


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _call(name: str, args: dict[str, Any]) -> str:
    return name + (f"({', '.join(f'{key}={value!r}' for key, value in args.items())})" if args else "")


def estimate(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """The statistics of an EvalResult: `episodes`, `errors`, `reward`, `rates`, `means` and the example.

    Raises LatihError where an error ended every episode.
    """
    valid = [each for each in trajectories if each.error is None]
    errors: dict[str, int] = {}
    for each in trajectories:
        if each.error is not None:
            errors[each.error.kind] = errors.get(each.error.kind, 0) + 1
    if not valid:
        first = next((each.error.message for each in trajectories if each.error), "there were none")
        raise LatihError(f"no episode of {len(trajectories)} could be played to its end: {first}")
    rates: dict[str, Estimate] = {}
    means: dict[str, Estimate] = {}
    roles = dict.fromkeys(each.role for each in valid)
    named = [(each, each.metrics) for each in valid]
    if len(roles) > 1:  # pooled, and then for each role
        named += [(each, {f"{each.role}/{name}": value for name, value in each.metrics.items()}) for each in valid]
    for name in dict.fromkeys(name for _, metrics in named for name in metrics):
        games = _by_game((each, metrics[name]) for each, metrics in named if name in metrics)
        if all(value in (0.0, 1.0) for game in games for value in game):
            rates[name] = clustered(games)
        else:
            means[name] = _mean(games)
    rates["truncated"] = clustered(_by_game((each, float(each.truncated)) for each in valid))
    means["turns"] = _mean(_by_game((each, float(sum(1 for _ in each.turns))) for each in valid))
    means["tokens"] = _mean(_by_game((each, float(each.sampled_tokens)) for each in valid))
    return {
        "episodes": len(trajectories),
        "errors": errors,
        "reward": _mean(_by_game((each, each.reward) for each in valid)),
        "rates": rates,
        "means": means,
        "example": conversation(valid[0]),
        "example_reward": valid[0].reward,
    }


def _by_game(values: Iterable[tuple[Trajectory, float]]) -> list[list[float]]:
    """The values of each held-out episode: those of its roles, which played one game or began in the same place."""
    games: dict[tuple[int, int], list[float]] = {}
    for each, value in values:
        games.setdefault((each.seed, each.index), []).append(value)
    return list(games.values())


def _mean(games: Iterable[Sequence[float]]) -> Estimate:
    """Student's, over the games' means: the values of one are not independent."""
    return student([statistics.fmean(game) for game in games])


def conversation(trajectory: Trajectory) -> list[Message]:
    """What was said in an episode, its sequences joined.

    Of a sequence that shows again what came just before, as under a window, only what is new follows; and no system
    message twice.
    """
    said: list[Message] = []
    for sequence in trajectory.sequences:
        new = [each for each in sequence.messages if each.role != "system" or each not in said]
        replies = [i for i, each in enumerate(new) if each.role == "assistant"][-len(sequence.turns) :]  # its own
        past = min(len(said), replies[0] if replies else len(new))
        again = next(n for n in range(past, -1, -1) if said[len(said) - n :] == new[:n])
        said += new[again:]
    return said
