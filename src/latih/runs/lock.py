"""A lock that keeps two processes from writing one run; it dies with its process."""

import contextlib
import os
from pathlib import Path
from typing import TextIO

from latih.core import LatihError
from latih.core.files import writing

try:
    import fcntl
except ImportError:  # not a Unix: runs are not locked there
    fcntl = None  # type: ignore[assignment]


class RunLock:
    """An advisory lock on `<run>/.lock`, which names its holder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".lock"
        self._file: TextIO | None = None

    def acquire(self) -> None:
        """Raises LatihError where another process holds the lock, or the file system has none to give."""
        hint = "choose another run.folder, on a disk where files can be locked"
        with contextlib.ExitStack() as stack, writing("the lock", self._path.parent, hint):
            file = stack.enter_context(self._path.open("a+", encoding="utf-8"))
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    file.seek(0)
                    holder = file.read().strip() or "?"
                    raise LatihError(
                        f"run {self._path.parent} is being written by process {holder}: wait for it to end, or stop it"
                    ) from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            stack.pop_all()
        self._file = file

    def release(self) -> None:
        """Let go; harmless when not held."""
        if self._file is not None:
            self._file.close()
            self._file = None
