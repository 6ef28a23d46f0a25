"""Batches: groups of trajectories become rows with advantages and weights.

What leaves the batch, and its baselines and denominators: trajectories that an error ended, those without a sampled
token, and overlong ones under `overlong: mask`. Groups without contrast (all rewards equal, or one trajectory left)
give no gradient; whether they count in the denominator is the dial `count_uniform_groups`.
"""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from latih.core.trajectories import Group, Trajectory
from latih.core.trajectories import Sequence as TokenSequence
from latih.train.advantages import Advantage, advantages
from latih.train.aggregations import aggregations
from latih.train.settings import AlgorithmSettings


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence as the learner sees it. Lists marked [M] have one entry per sampled token."""

    ids: list[int]
    """The tokens to forward: all before the last sampled one. [tokens]"""
    at: list[int]
    """Where in `ids` the hidden state lies that predicts each target. [M]"""
    targets: list[int]
    """The sampled token ids. [M]"""
    sampler_logprobs: list[float]
    """What the sampler said of them, comparable with the learner's full softmax at `temperatures`. [M]"""
    temperatures: list[float]
    """[M]"""
    advantages: list[float]
    """[M]"""
    trajectory: int
    """Its trajectory's number in the batch."""
    group: int = 0
    """Its group's number in the batch."""
    weight: float = 0.0
    """Of each of its tokens in the loss; set by the aggregation."""
    old_logprobs: list[float] | None = None
    """Of the old policy; None where the policy that is about to be updated is the old one. [M]"""

    @property
    def trains(self) -> bool:
        """Whether any token carries a gradient."""
        return any(self.advantages)


@dataclass
class Batch:
    """The rows that count, and the count of what was left out."""

    rows: list[Row] = field(default_factory=list)
    uniform: list[Row] = field(default_factory=list)
    """Rows of groups without contrast that do not count; kept to measure on when nothing trains."""
    groups: int = 0
    mixed: int = 0
    """Groups with contrast."""
    errors: int = 0
    masked: int = 0
    """Overlong trajectories left out by `overlong: mask`."""
    empty: int = 0
    """Trajectories in which nothing was sampled."""

    @property
    def metrics(self) -> dict[str, float]:
        """Counts for the step's metrics."""
        return {
            "groups": self.groups,
            "groups_mixed": self.mixed / self.groups if self.groups else 0.0,
            "left_out/errors": self.errors,
            "left_out/masked": self.masked,
            "left_out/empty": self.empty,
            "trained_tokens": sum(len(row.targets) for row in self.rows if row.trains),
            "row_tokens": sum(len(row.ids) for row in self.rows if row.trains),
        }


def token_rewards(trajectory: Trajectory, reward: float) -> list[float]:
    """The one canonical form of reward: one number per sampled token, their sum being `reward`. [sampled]

    What the env paid for a turn lies on the turn's last token; the rest lies on the trajectory's last token.
    """
    values: list[float] = []
    for turn in trajectory.turns:
        part = [0.0] * len(turn.ids)
        if part and turn.reward is not None:
            part[-1] = turn.reward
        values += part
    if values:
        values[-1] += reward - math.fsum(values)
    return values


def row(sequence: TokenSequence, advantages: Sequence[float], trajectory: int = 0, group: int = 0) -> Row:
    """The row of a sequence; `advantages` has one entry per sampled token.

    A turn whose sampling was cut (top-p and the like) is compared by its `full_logprobs`; greedy turns, whose logprobs
    are those of the plain softmax, at temperature 1. A token with nothing before it cannot be predicted: ValueError.
    """
    ids = sequence.ids
    places = [i for i, sampled in enumerate(sequence.sampled_mask) if sampled]
    if not places or places[0] == 0:
        raise ValueError("a sequence to train on needs a prompt and a sampled token")
    turns = sequence.turns
    return Row(
        ids=ids[: places[-1]],
        at=[place - 1 for place in places],
        targets=[ids[place] for place in places],
        sampler_logprobs=[p for turn in turns for p in (turn.full_logprobs or turn.logprobs)],
        temperatures=[turn.temperature or 1.0 for turn in turns for _ in turn.ids],
        advantages=list(advantages),
        trajectory=trajectory,
        group=group,
    )


def overlong(trajectory: Trajectory) -> bool:
    """Whether turns, context or the env cut it short, or `max_tokens` its last reply."""
    *_, last = trajectory.turns
    return trajectory.truncated or last.stop_reason.is_truncation


def make_batch(groups: Iterable[Group], algorithm: AlgorithmSettings) -> Batch:
    """Rows with advantages, without weights: `weigh` sets those for each update."""
    estimate = advantages.get(algorithm.advantage)
    batch = Batch()
    number = 0
    for group in groups:
        batch.groups += 1
        batch.errors += len(group.trajectories) - len(group.valid)
        playing = [each for each in group.valid if each.sampled_tokens]
        batch.empty += len(group.valid) - len(playing)
        if algorithm.overlong == "mask":
            batch.masked += sum(map(overlong, playing))
            playing = [each for each in playing if not overlong(each)]
        penalty = algorithm.overlong_penalty if algorithm.overlong == "penalize" else 0.0
        rewards = [each.reward - penalty * overlong(each) for each in playing]
        mixed = len(set(rewards)) > 1
        batch.mixed += mixed
        rows = _group_rows(playing, rewards, estimate if mixed else None, number, batch.groups - 1)
        (batch.rows if mixed or algorithm.count_uniform_groups else batch.uniform).extend(rows)
        number += len(playing)
    return batch


def _group_rows(
    trajectories: list[Trajectory], rewards: list[float], estimate: Advantage | None, number: int, group: int
) -> list[Row]:
    values = [token_rewards(*pair) for pair in zip(trajectories, rewards, strict=True)]
    # Without contrast the advantage is 0 by definition; the estimators would leave rounding dust, or divide by 0.
    scores = estimate(values, trajectories) if estimate else [[0.0] * len(each) for each in values]
    rows = []
    for i, trajectory in enumerate(trajectories):
        start = 0
        for sequence in trajectory.sequences:
            count = sum(len(turn.ids) for turn in sequence.turns)
            if count:
                rows.append(row(sequence, scores[i][start : start + count], number + i, group))
            start += count
    return rows


def weigh(rows: Sequence[Row], aggregation: str, constant: int = 1) -> list[Row]:
    """The rows of one update, each with the weight of its tokens; the denominator is the whole update's."""
    if not rows:
        return []
    weights = aggregations.get(aggregation)(
        [len(each.targets) for each in rows], len({each.trajectory for each in rows}), constant
    )
    return [replace(each, weight=weight) for each, weight in zip(rows, weights, strict=True)]


def split(rows: Sequence[Row], minibatches: int, seed: int) -> list[list[Row]]:
    """Deal the groups, shuffled by `seed`, to at most `minibatches` updates; none is without a gradient.

    A group stays whole, so that its baseline is right in each update, and what its trajectories share is computed once.
    Where fewer groups than `minibatches` have a gradient, trajectories are dealt instead.
    """
    whole = len({each.group for each in rows if each.trains}) >= minibatches

    def unit(each: Row) -> int:
        return each.group if whole else each.trajectory

    training = sorted({unit(each) for each in rows if each.trains})
    idle = sorted({unit(each) for each in rows} - set(training))
    rng = random.Random(seed)
    rng.shuffle(training)
    rng.shuffle(idle)
    count = min(minibatches, len(training))
    share = {number: i % count for i, number in enumerate(training + idle)} if count else {}
    shares: list[list[Row]] = [[] for _ in range(count)]
    for each in rows:
        if count:
            shares[share[unit(each)]].append(each)
    return shares
