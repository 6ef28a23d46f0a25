"""Run one program isolated, or several in one workspace."""

import contextlib
import dataclasses
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from latih.core.turns import waiting
from latih.sandbox.backends import Job, backend
from latih.sandbox.limits import Limits, Result
from latih.sandbox.workspace import Workspace, put, total

DEFAULTS = Limits()
AT_ONCE = 4 * (os.cpu_count() or 1)
"""Sandboxes that run at a time; more wait before their clocks start, so that load alone makes no program too slow.

Nor an env's step: what waits says so (`core.turns`)."""
SPARE = 1 << 20
"""Bytes left free in a working directory however full it is, so that what a program left there does not matter."""
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

    A workspace may hold more than `limits.disk` by then: the program finds all of it, and next to no space.

    Raises SandboxError where isolation is not to be had or broke, never for what the program does; ValueError for a
    file name that is not relative or too long.
    """
    where = backend()
    with contextlib.ExitStack() as stack:
        tree = stack.enter_context(workspace.turn()) if workspace else {}
        with waiting():
            stack.enter_context(_slots)
        for name, data in files.items():
            put(tree, name, data)
        disk, held = limits.disk << 20, total(tree)
        room = max(disk, held + SPARE)
        job = Job(
            program,
            stdin,
            tree,
            room=room,
            keep=room if workspace else 0,  # all that fits: files that the program left alone must not be lost
            read_only=tuple(read_only),
            limits=limits,
        )
        result, left = where.run(job)
        if workspace and left is None:  # whatever ended it before it could save; the files are those of before
            return dataclasses.replace(result, cut=True)
        if workspace and left is not None:
            workspace.tree = left
        return result
