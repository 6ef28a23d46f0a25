"""Weights on disk: safetensors folders in the Hugging Face layout, read and written whole. Nothing is unpickled."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from latih.core.errors import ModelError


def read_weights(folder: Path, device: str | torch.device = "cpu") -> dict[str, Tensor]:
    """Every tensor of a model folder by name. Raises ModelError where a file is missing, truncated or corrupt."""
    files = weight_files(folder)
    if not files:
        raise ModelError(f"no *.safetensors in {folder}: only safetensors and GGUF weights are read")
    weights: dict[str, Tensor] = {}
    for file in files:
        weights |= read_tensors(file, device)
    return weights


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a model folder: those that its index names, where it has one.

    Raises ModelError where the index is damaged.
    """
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return sorted(folder.glob("*.safetensors"))
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        return [folder / name for name in sorted(names)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        fault = f"{type(exc).__name__}: {exc}"
        raise ModelError(f"{index} is no index of weights ({fault}): fetch the model again") from None


def read_tensors(path: Path, device: str | torch.device = "cpu") -> dict[str, Tensor]:
    """The tensors of one safetensors file. Raises ModelError where it is missing, truncated or corrupt."""
    try:
        return load_file(path, device=str(device))
    except FileNotFoundError:
        raise ModelError(f"{path} is missing: fetch the model again") from None
    except (SafetensorError, OSError, ValueError) as exc:
        raise ModelError(f"{path} is corrupt or truncated ({exc}): delete it and fetch the model again") from None


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write one safetensors file."""
    save_file(
        {name: each.detach().contiguous().cpu() for name, each in tensors.items()}, path, metadata={"format": "pt"}
    )
