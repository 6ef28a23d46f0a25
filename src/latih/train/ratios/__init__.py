"""Ratio levels: over what the ratio of the new to the old policy is taken. One file per level."""

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from latih.core.plugins import import_all
from latih.core.registry import Registry

RatioLevel: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(new - old logprob of each token [M] float32, its row's number in the micro-batch [M] int64) -> log ratio [M]."""

ratios = Registry[RatioLevel]("ratio")

import_all(__name__)
