"""The return against those of the group that stood in the same place."""

import math
from array import array
from collections.abc import Sequence
from hashlib import blake2b

from latih.core.trajectories import Trajectory
from latih.train.advantages import TokenValues, advantages


@advantages.register("anchor")
def anchor(rewards: TokenValues, trajectories: Sequence[Trajectory]) -> TokenValues:
    """Return minus the mean return of the trajectories that met the same context, turn by turn.

    So a good move is told from a good position: what the others made of that position is the baseline. A turn alone
    in its context is measured against the whole group, as `mean` does. The contexts are the exact prompts: they meet
    where the harness shows the state and not the way to it (`window: 0`), else only while the ways are the same. These
    are the anchor states of GiGPO (Feng et al. 2025, arXiv:2505.10978), which adds both levels up.
    """
    returns = [math.fsum(each) for each in rewards]
    contexts = [_contexts(each) for each in trajectories]
    met: dict[bytes, set[int]] = {}
    for i, keys in enumerate(contexts):
        for key in keys:
            met.setdefault(key, set()).add(i)
    baseline = {key: _mean([returns[i] for i in who]) for key, who in met.items() if len(who) > 1}
    alone = _mean(returns)
    return [
        [
            returns[i] - baseline.get(key, alone)
            for key, turn in zip(contexts[i], trajectory.turns, strict=True)
            for _ in turn.ids
        ]
        for i, trajectory in enumerate(trajectories)
    ]


def _contexts(trajectory: Trajectory) -> list[bytes]:
    """A key of each turn's exact prompt."""
    keys = []
    for sequence in trajectory.sequences:
        tokens = blake2b()
        for turn in sequence.turns:
            tokens.update(array("q", turn.new_ids).tobytes())
            keys.append(tokens.digest())
            tokens.update(array("q", turn.ids).tobytes())
    return keys


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
