"""Isolated execution of programs that nobody vouches for: `run`, and `Workspace` for several runs in one folder."""

from latih.core.errors import SandboxError
from latih.sandbox.backends import Backend, Job, backend, backends, unisolated
from latih.sandbox.limits import Limits, Result
from latih.sandbox.linux import Bubblewrap, Unsafe
from latih.sandbox.run import run
from latih.sandbox.workspace import Workspace

__all__ = [
    "Backend",
    "Bubblewrap",
    "Job",
    "Limits",
    "Result",
    "SandboxError",
    "Unsafe",
    "Workspace",
    "backend",
    "backends",
    "run",
    "unisolated",
]
