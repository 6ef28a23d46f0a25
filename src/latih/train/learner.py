"""The learner: forward and backward over packed micro-batches, and the optimizer's update of the masters."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from latih.core.errors import ModelError
from latih.models.attention import PackedCausal
from latih.models.policy import Policy
from latih.train.batch import Row
from latih.train.packing import lay_out, pack
from latih.train.settings import OptimizerSettings


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Rows laid out together. N tokens, of which M are predictions to train or measure on."""

    ids_N: Tensor
    positions_N: Tensor
    lengths: list[int]
    """Of the segments in which the tokens lie."""
    parents: list[int]
    """The earlier segment that each continues, or -1."""
    at_M: Tensor
    targets_M: Tensor
    row_M: Tensor
    """The number of each prediction's row in the micro-batch."""
    sampler_M: Tensor
    """Sampler's logprobs, float32."""
    old_M: Tensor | None
    """Logprobs of the old policy, float32; None where it is the policy now at hand."""
    temperatures: list[float]
    """[M]"""
    advantages_M: Tensor
    weights_M: Tensor

    @classmethod
    def of(cls, rows: Sequence[Row], device: torch.device) -> "MicroBatch":
        """Lay `rows`, sorted as `pack` leaves them, out on `device`."""

        def tensor(values: list[int] | list[float], dtype: torch.dtype) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        layout = lay_out(rows)
        old = [p for row in rows for p in row.old_logprobs or ()]
        float32, int64 = torch.float32, torch.int64
        return cls(
            ids_N=tensor(layout.ids, int64),
            positions_N=tensor(layout.positions, int64),
            lengths=layout.lengths,
            parents=layout.parents,
            at_M=tensor([place for places in layout.at for place in places], int64),
            targets_M=tensor([token for row in rows for token in row.targets], int64),
            row_M=tensor([i for i, row in enumerate(rows) for _ in row.targets], int64),
            sampler_M=tensor([p for row in rows for p in row.sampler_logprobs], float32),
            old_M=tensor(old, float32) if old else None,
            temperatures=[t for row in rows for t in row.temperatures],
            advantages_M=tensor([a for row in rows for a in row.advantages], float32),
            weights_M=tensor([row.weight for row in rows for _ in row.targets], float32),
        )


Objective = Callable[[MicroBatch, Tensor, Tensor], tuple[Tensor, Mapping[str, Tensor]]]
"""(micro-batch, logprobs [M], entropies [M]) -> the summed loss, and detached per-token statistics [M] by name.

The logprobs carry a gradient, and the entropies where `accumulate` is asked for it.
"""


class Statistics:
    """Mean and maximum of per-token numbers, over however many micro-batches they come in."""

    def __init__(self) -> None:
        self.tokens = 0
        """That went forward and backward, a shared prefix counted once: what was really computed."""
        self._parts: dict[str, list[Tensor]] = {}

    def add(self, values: Mapping[str, Tensor]) -> None:
        """Take the numbers of one micro-batch."""
        for name, values_M in values.items():
            self._parts.setdefault(name, []).append(values_M.detach().float())

    def has(self, name: str) -> bool:
        """Whether any such numbers came."""
        return name in self._parts

    def _all(self, name: str) -> Tensor:
        return torch.cat(self._parts.get(name, [torch.zeros(1)]))

    def mean(self, name: str) -> float:
        """Over all tokens; 0 where there are none."""
        return float(self._all(name).double().mean())

    def max(self, name: str) -> float:
        """Over all tokens; 0 where there are none."""
        return float(self._all(name).max())

    def sum(self, name: str) -> float:
        """Over all tokens."""
        return float(self._all(name).double().sum())


class Learner:
    """Gradients and updates of one policy."""

    def __init__(self, policy: Policy, settings: OptimizerSettings, micro_batch_tokens: int) -> None:
        self.policy = policy
        self.settings = settings
        self.micro_batch_tokens = micro_batch_tokens
        self.restart()

    def restart(self) -> None:
        """A fresh optimizer."""
        self.optimizer = torch.optim.AdamW(
            list(self.policy.masters.values()),
            lr=self.settings.lr,
            betas=self.settings.betas,
            weight_decay=self.settings.weight_decay,
            fused=True,
        )

    def _logprobs(self, micro: MicroBatch, entropy_gradient: bool = False) -> tuple[Tensor, Tensor]:
        attention = PackedCausal(micro.lengths, micro.parents, self.policy.device)
        hidden_ND = self.policy.forward(micro.ids_N, micro.positions_N, attention)
        # index_select adds its gradients up in a fixed order; indexing does not
        hidden_MD = hidden_ND.index_select(0, micro.at_M)
        logprobs_of = partial(self.policy.token_logprobs, entropy_gradient=entropy_gradient)
        first = micro.temperatures[0]
        if all(each == first for each in micro.temperatures):
            return logprobs_of(hidden_MD, micro.targets_M, first)
        temperatures_M = torch.tensor(micro.temperatures, device=hidden_MD.device)
        logprobs_M, entropy_M = (torch.empty(len(temperatures_M), device=hidden_MD.device) for _ in range(2))
        for temperature in sorted(set(micro.temperatures)):
            here = (temperatures_M == temperatures_M.new_tensor(temperature)).nonzero().squeeze(1)
            logprobs, entropy = logprobs_of(hidden_MD[here], micro.targets_M[here], temperature)
            logprobs_M = logprobs_M.index_put((here,), logprobs)
            entropy_M = entropy_M.index_put((here,), entropy)
        return logprobs_M, entropy_M

    def logprobs(self, rows: Sequence[Row]) -> list[list[float]]:
        """Of every target under the policy as it is now, without gradient. [rows][M]"""
        found: dict[int, list[float]] = {}
        with torch.no_grad():
            for part in pack(rows, self.micro_batch_tokens):
                micro = MicroBatch.of(part, self.policy.device)
                values = self._logprobs(micro)[0].tolist()
                for row in part:
                    found[id(row)], values = values[: len(row.targets)], values[len(row.targets) :]
        return [found[id(row)] for row in rows]

    def accumulate(self, rows: Sequence[Row], objective: Objective, entropy_gradient: bool = False) -> Statistics:
        """Add the gradient of the objective over `rows` to the masters' `.grad`, micro-batch by micro-batch."""
        statistics = Statistics()
        for part in pack(rows, self.micro_batch_tokens):
            micro = MicroBatch.of(part, self.policy.device)
            logprobs_M, entropy_M = self._logprobs(micro, entropy_gradient)
            loss, values = objective(micro, logprobs_M, entropy_M)
            loss.backward()
            statistics.tokens += len(micro.ids_N)
            statistics.add({**values, "loss": loss.detach().reshape(1), "entropy": entropy_M})
        return statistics

    def update(self, lr: float) -> float:
        """Clip the gradient, step the optimizer, serve the new version. Returns the gradient's norm before clipping.

        A gradient that is not finite changes nothing but is thrown away with a warning; the version stays.
        """
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.masters.values(), self.settings.max_grad_norm))
        if math.isfinite(norm):
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            self.optimizer.step()
            self.policy.refresh(self.policy.version + 1)
        else:
            warnings.warn(
                f"update {self.policy.version + 1} skipped: its gradient is not finite; "
                "if this repeats, lower trainer.optimizer.lr",
                RuntimeWarning,
                stacklevel=2,
            )
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def state(self) -> dict[str, Tensor]:
        """The optimizer's tensors, named `<master>/<what>`."""
        return {
            f"{name}/{what}": value
            for name, master in self.policy.masters.items()
            for what, value in self.optimizer.state.get(master, {}).items()
        }

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave. Raises ModelError where the tensors are another model's."""
        self.restart()
        known = {f"{name}/{what}" for name in self.policy.masters for what in ("step", "exp_avg", "exp_avg_sq")}
        if strangers := sorted(set(tensors) - known):
            raise ModelError(f"the optimizer state belongs to another model: it holds {strangers[0]!r}")
        for name, master in self.policy.masters.items():
            mine = {
                what: tensors[f"{name}/{what}"]
                for what in ("step", "exp_avg", "exp_avg_sq")
                if f"{name}/{what}" in tensors
            }
            if mine:
                if mine["exp_avg"].shape != master.shape:
                    raise ModelError(f"the optimizer state belongs to another model: {name!r} has another shape")
                self.optimizer.state[master] = {what: value.clone().to(master.device) for what, value in mine.items()}
