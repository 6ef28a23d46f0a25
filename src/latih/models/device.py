"""Devices and number types: what is there, and what it computes well in."""

import torch

from latih.core.errors import ConfigError
from latih.core.registry import nearest

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def pick_device(name: str) -> torch.device:
    """`auto` takes CUDA, then MPS, then the CPU. Raises ConfigError where the device asked for is not there."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(each for each in ("cuda", "mps", "cpu") if there[each]))
    kind = name.split(":")[0]
    if kind not in there:
        raise ConfigError(f"unknown device {name!r}: {nearest(name, [*there, 'auto'])}")
    if not there[kind]:
        raise ConfigError(f"device {name!r} is not on this machine: set trainer.policy.model.device=auto or cpu")
    if kind == "cuda" and (torch.device(name).index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device {name!r} is not on this machine: it has {torch.cuda.device_count()} CUDA device(s), from cuda:0 on"
        )
    return torch.device(name)


def pick_dtype(name: str, device: torch.device) -> torch.dtype:
    """`auto` takes bfloat16 where the device multiplies it natively, else float32."""
    if name == "auto":
        native = device.type == "cuda" and torch.cuda.is_bf16_supported()
        native = native or (device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported())
        return torch.bfloat16 if native else torch.float32
    if name not in DTYPES:
        raise ConfigError(f"unknown dtype {name!r}: {nearest(name, [*DTYPES, 'auto'])}")
    return DTYPES[name]
