"""Run one program isolated, or several in one workspace."""

import contextlib
import dataclasses
import math
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from latih.core.errors import SandboxError
from latih.sandbox.backends import HINT, Place, backend
from latih.sandbox.limits import Limits, Result
from latih.sandbox.process import Process
from latih.sandbox.workspace import Workspace, load, put

DEFAULTS = Limits()
AT_ONCE = 4 * (os.cpu_count() or 1)
"""Sandboxes that run at a time; more wait before their clocks start, so that load alone makes no program too slow."""
_slots = threading.BoundedSemaphore(AT_ONCE)


def run(
    program: Sequence[str] | str,
    *,
    files: Mapping[str, bytes | str] = {},
    stdin: bytes = b"",
    limits: Limits = DEFAULTS,
    workspace: Workspace | None = None,
    read_only: Sequence[Path] = (),
) -> Result:
    """Run `program` isolated and wait for its end; everything that it started dies with it.

    A list is a command and its arguments, a string is Python source for this interpreter. `files` (relative name to
    content) are put into the working directory, which is empty otherwise, or that of `workspace`. `read_only` folders
    of the host are readable inside at the same path. May be called from many threads at once.

    Raises SandboxError where isolation is not to be had or broke, never for what the program does; ValueError for a
    file name that is not relative.
    """
    where = backend()
    with contextlib.ExitStack() as stack:
        tree = stack.enter_context(workspace.turn()) if workspace else {}
        stack.enter_context(_slot())
        for name, data in files.items():
            put(tree, name, data)
        order: dict[str, Any] = {
            "argv": None if isinstance(program, str) else [os.fspath(each) for each in program],
            "source": program if isinstance(program, str) else None,
            "tree": tree,
            "limits": _rlimits(limits),
            "memory": limits.memory << 20,
            "save": limits.disk << 20 if workspace else 0,
        }
        folder = None
        if not where.isolates:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="latih-sandbox-"))
            del order["limits"]["RLIMIT_NPROC"]  # it would count all processes of the user
        process = Process(where, order, stdin, Place(folder, tuple(read_only), limits), stack)
        result = process.result()
        if workspace:
            workspace.tree, whole = load(process.saved())
            result = dataclasses.replace(result, cut=result.cut or not whole)
        return result


@contextlib.contextmanager
def _slot() -> Iterator[None]:
    """Wait until few enough others run. What the machine lacks then is no fault of the program."""
    with _slots:
        try:
            yield
        except OSError as exc:
            raise SandboxError(f"the sandbox does not start: {exc}; {HINT}") from exc


def _rlimits(limits: Limits) -> dict[str, int]:
    return {
        "RLIMIT_CPU": math.ceil(limits.cpu),
        "RLIMIT_DATA": limits.memory << 20,
        "RLIMIT_NPROC": limits.processes + 1,  # the launcher counts as well
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.disk << 20,
        "RLIMIT_CORE": 0,
        "RLIMIT_MSGQUEUE": 0,
    }
