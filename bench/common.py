"""What the benchmarks share: the default model with an active adapter, its merged copy for the peer, and medians."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from latih.models.memory import keep_pages
from latih.models.policy import Policy
from latih.models.projection import LoraSettings
from latih.models.source import resolve_model


def policy(dtype: str = "auto", device: str = "cpu") -> Policy:
    """The default model with a rank-16 adapter that is not zero."""
    keep_pages()
    model = Policy.load(resolve_model("default"), lora=LoraSettings(), dtype=dtype, device=device)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, each in model.masters.items():
            if name.endswith("lora_B"):
                each.copy_(torch.randn(each.shape, generator=generator) * 1e-3)
    model.refresh(1)
    return model


def merged(model: Policy) -> Path:
    """A Hugging Face folder of the model with its adapter merged: `generate` on an unmerged one is far slower."""
    folder = Path(tempfile.mkdtemp(prefix="latih-bench-"))
    model.export(folder)
    return folder


def prompts(count: int, length: int) -> list[list[int]]:
    """Random token ids."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(100, 40000, (count, length), generator=generator).tolist()


def timed(work: Callable[[], int]) -> float:
    """Units of work per second."""
    start = time.perf_counter()
    done = work()
    return done / (time.perf_counter() - start)


def compare(title: str, unit: str, ours: Callable[[], int], peers: Callable[[], int], runs: int) -> float:
    """Run both in turn and print medians and the ratio of each pair. Returns the median ratio."""
    a, b = [], []
    for run in range(runs):
        a.append(timed(ours))
        b.append(timed(peers))
        print(f"  {title} run {run + 1}/{runs}: {a[-1]:.0f} and {b[-1]:.0f} {unit}", file=sys.stderr, flush=True)
    ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
    print(f"{title}: latih {statistics.median(a):.0f} {unit}, peer {statistics.median(b):.0f}, ratio {ratio:.2f}")
    return ratio
