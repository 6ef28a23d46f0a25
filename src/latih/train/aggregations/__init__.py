"""Aggregations: the weight of each token in the loss. One file per way to count.

The loss of an update is the sum over its tokens of weight x token loss. The weights are set for the whole update before
it is split into micro-batches, so the gradient does not depend on the split. Only tokens that count are given here:
what is masked has left the denominators.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from latih.core.plugins import import_all
from latih.core.registry import Registry

Aggregation: TypeAlias = Callable[[Sequence[int], int, int], list[float]]
"""(tokens that count in each row [rows], trajectories, constant) -> the weight of each token of a row [rows]."""

aggregations = Registry[Aggregation]("aggregation")

import_all(__name__)
