"""Surrogates: the loss of a token, given its ratio and advantage. One file per surrogate."""

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from latih.core.plugins import import_all
from latih.core.registry import Registry

Surrogate: TypeAlias = Callable[[Tensor, Tensor, Tensor, float, float], tuple[Tensor, Tensor]]
"""(log ratio [M], new logprob [M], advantage [M], clip_low, clip_high) -> (loss [M], whether it was clipped [M] bool).

Gradients reach the policy through the log ratio or the logprob. The clipping range is [1 - clip_low, 1 + clip_high].
"""

surrogates = Registry[Surrogate]("surrogate")

import_all(__name__)
