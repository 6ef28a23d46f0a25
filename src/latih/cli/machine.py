"""The machine: what it offers, and how many threads are worth starting on it."""

import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from latih import __version__

CPUINFO = Path("/proc/cpuinfo")
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
PACKAGES = ("torch", "gymnasium", "pydantic", "pyarrow", "tokenizers", "safetensors")


def set_threads() -> None:
    """Let OpenMP, and so torch, use one thread per physical core, unless the user said otherwise.

    Threads spin only briefly for each other: where another process takes a core, a spinning thread holds the one that
    its partner needs, and a step takes ten times as long. It must be called before torch is imported: OpenMP reads its
    environment once.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(physical_cores()))
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")


def physical_cores() -> int:
    """Physical cores that this process may use; hyper-threads share one, and add nothing to matrix products."""
    allowed = _allowed()
    cores = set()
    for block in _read(CPUINFO).split("\n\n"):
        fields = dict(line.split(":", 1) for line in block.splitlines() if ":" in line)
        named = {name.strip(): value.strip() for name, value in fields.items()}
        if "core id" in named and int(named.get("processor", -1)) in allowed:
            cores.add((named.get("physical id"), named["core id"]))
    return max(1, min(len(cores) or len(allowed), _quota() or len(allowed)))


def memory() -> tuple[int, int] | None:
    """Total and available bytes, the container's limit taken into account; None where the system does not say."""
    fields = dict(line.split(":", 1) for line in _read(Path("/proc/meminfo")).splitlines() if ":" in line)
    try:
        total, available = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    except (KeyError, ValueError):
        return None
    limit = _read(MEMORY_LIMIT).strip()
    if limit.isdecimal():
        total, available = min(total, int(limit)), min(available, int(limit))
    return total, available


def describe() -> Iterator[tuple[str, str]]:
    """Lines about the machine: what is it, what it has. Imports torch."""
    import torch

    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}"
    yield "cores", f"{physical_cores()} physical, {len(_allowed())} logical; {torch.get_num_threads()} threads used"
    if size := memory():
        yield "memory", f"{size[0] / 2**30:.1f} GiB, {size[1] / 2**30:.1f} GiB available"
    flags = {flag for line in _read(CPUINFO).splitlines() if line.startswith("flags") for flag in line.split()}
    if flags:
        kinds = {"AVX2": "avx2", "AVX-512": "avx512f", "AVX-512 bf16": "avx512_bf16", "AMX bf16": "amx_bf16"}
        yield "cpu", ", ".join(f"{kind} {'yes' if flag in flags else 'no'}" for kind, flag in kinds.items())
    yield "cuda", ", ".join(_cuda_devices()) or "none"
    if torch.backends.mps.is_available():
        yield "mps", "yes"
    yield "versions", ", ".join([f"latih {__version__}", *(f"{name} {_version(name)}" for name in PACKAGES)])


def _cuda_devices() -> Iterator[str]:
    import torch

    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        about = torch.cuda.get_device_properties(index)
        yield f"{index}: {about.name} ({about.total_memory / 2**30:.0f} GiB)"


def _allowed() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _quota() -> int | None:
    """Whole cores that the container's CPU quota allows; None without one."""
    quota, _, period = _read(CPU_QUOTA).strip().partition(" ")
    if not quota.isdecimal() or not period.isdecimal():
        return None
    return max(1, int(quota) // int(period))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"
