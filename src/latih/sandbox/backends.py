"""What runs a program: the interface, and which one this machine has."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from latih.core.errors import SandboxError
from latih.core.registry import Registry, nearest
from latih.sandbox.launcher import Entry
from latih.sandbox.limits import Limits, Result


@dataclass(frozen=True)
class Job:
    """One run, as a backend gets it."""

    program: Sequence[str] | str
    """A command and its arguments, or Python source."""
    stdin: bytes
    tree: dict[str, Entry]
    """What lies in the working directory. It holds every folder, and before what lies in it."""
    room: int
    """Bytes that the file system of the working directory has to have: `limits.disk`, or more for a larger tree."""
    keep: int
    """Bytes of files, at most, that the working directory is to give back; 0 where it is not asked for them."""
    read_only: tuple[Path, ...]
    limits: Limits


class Backend(Protocol):
    """A way to run programs. docs/sandbox.md shows how one is written."""

    name: str
    """What LATIH_SANDBOX calls it."""
    isolates: bool
    """Where it does not, every report says so."""

    def run(self, job: Job) -> tuple[Result, dict[str, Entry] | None]:
        """Run the program of a job to its end, and end whatever it started. Called from many threads at once.

        Returns what came of it, and the files that it left, of which no more than `keep` bytes come back and
        `Result.cut` says so; None where they are lost. Raises SandboxError where the machine is at fault and the
        program did not start. Nothing that a program does may raise, or it could end an episode that it is losing.
        """
        ...


backends = Registry[type[Backend]]("sandbox")
"""By the names that LATIH_SANDBOX takes. A class is made without arguments, and raises SandboxError where it cannot."""


def backend() -> Backend:
    """The backend of this machine. Raises SandboxError where there is none, and says how to get one."""
    name = _chosen()
    if name not in backends:
        raise SandboxError(f"LATIH_SANDBOX={name} is no sandbox: {nearest(name, backends)}")
    return backends.get(name)()


def unisolated() -> str:
    """What every report says where programs are not isolated here; else empty.

    It asks for the setting and not for what an env does, so that no env has to declare that it runs code.

    >>> unisolated()
    ''
    """
    name = _chosen()
    isolated = name not in backends or backends.get(name).isolates
    return "" if isolated else f"LATIH_SANDBOX={name}: code that an environment runs is not isolated"


def _chosen() -> str:
    return os.environ.get("LATIH_SANDBOX", "bubblewrap")
