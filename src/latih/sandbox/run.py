"""Run one program isolated, and read what it says without trusting it."""

import contextlib
import fcntl
import functools
import json
import marshal
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from latih.core.errors import SandboxError
from latih.sandbox.backends import Backend, Place, backend, fresh_uid
from latih.sandbox.limits import Limits, Result
from latih.sandbox.workspace import Workspace, check_name

DEFAULTS = Limits()

START_SECONDS = 60.0
"""A sandbox that has not started its program by then is a fault of the machine."""


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
    order: dict[str, object] = {
        "argv": None if isinstance(program, str) else [os.fspath(each) for each in program],
        "source": program if isinstance(program, str) else None,
        "files": {check_name(name): data.encode() if isinstance(data, str) else data for name, data in files.items()},
        "limits": _rlimits(limits),
    }
    where = backend()
    with contextlib.ExitStack() as stack:
        folder = workspace.folder if workspace else None
        if folder is None and where.name == "unsafe":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="latih-work-")))
        uid = workspace.uid if workspace else fresh_uid()
        process = _Process(where, order, stdin, Place(folder, uid, tuple(read_only), limits), stack)
        return process.result()


def _rlimits(limits: Limits) -> dict[str, int]:
    return {
        "RLIMIT_CPU": math.ceil(limits.cpu),
        "RLIMIT_DATA": limits.memory << 20,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.disk << 20,
        "RLIMIT_CORE": 0,
    }


@functools.cache
def _launcher() -> str:
    return Path(__file__).with_name("launcher.py").read_text(encoding="utf-8")


class _Process:
    """One run: its pipes, its process, its end."""

    def __init__(
        self, where: Backend, order: dict[str, object], stdin: bytes, place: Place, stack: contextlib.ExitStack
    ) -> None:
        self.limits = place.limits
        self.said = {name: bytearray() for name in ("stdout", "stderr", "channel", "report", "info")}
        self.cut = False
        self.started: float | None = None
        self.first: int | None = None
        self.stack = stack
        self.pipes: dict[str, int] = {}
        with contextlib.ExitStack() as given:  # what the child holds, and we shall not
            ends = {name: self._pipe(name, given) for name in self.said}
            inside = [_sealed(marshal.dumps(order), given), ends["report"], ends["channel"]]
            python = [sys.executable, "-I", "-B", "-c", _launcher(), *map(str, inside)]
            try:
                self.process = subprocess.Popen(
                    where.command(python, place, ends["info"]),
                    stdin=_sealed(stdin, given) if stdin else subprocess.DEVNULL,
                    stdout=ends["stdout"],
                    stderr=ends["stderr"],
                    pass_fds=(*inside, ends["info"]),
                    env=where.environment(),
                    cwd=place.folder if where.name == "unsafe" else "/",
                    start_new_session=True,
                )
            except OSError as exc:
                raise SandboxError(f"the sandbox does not start: {exc}") from exc
            stack.callback(self._end)

    def _pipe(self, name: str, given: contextlib.ExitStack) -> int:
        """Make the pipe `name`, keep its end for reading, and return the other one."""
        read, write = os.pipe()
        self.stack.callback(os.close, read)
        given.callback(os.close, write)
        os.set_blocking(read, False)
        self.pipes[name] = read
        return write

    def result(self) -> Result:
        """Read until everything inside has ended, or the time is up."""
        begun = time.monotonic()
        timed_out = False
        with selectors.DefaultSelector() as selector:
            for name, fd in self.pipes.items():
                selector.register(fd, selectors.EVENT_READ, name)
            while selector.get_map():
                until = self.started + self.limits.wall if self.started else begun + START_SECONDS
                left = until - time.monotonic()
                if left <= 0:
                    timed_out = True
                    break
                for key, _ in selector.select(left):
                    if not self._read(key.data, key.fd):
                        selector.unregister(key.fd)
        ended = time.monotonic()
        self._end()
        for name, fd in self.pipes.items():
            while self._read(name, fd):
                pass
        started, *code = self.said["report"].split() or [bytearray()]
        if not started or self.started is None:
            why = self.said["stderr"].decode(errors="replace").strip().splitlines()
            raise SandboxError("the sandbox did not start its program: " + (why[-1] if why else "it said nothing"))
        return Result(
            code=int(code[0]) if code and not timed_out else None if timed_out else -signal.SIGKILL,
            stdout=bytes(self.said["stdout"]),
            stderr=bytes(self.said["stderr"]),
            channel=bytes(self.said["channel"]),
            timed_out=timed_out,
            cut=self.cut,
            seconds=ended - self.started,
        )

    def _read(self, name: str, fd: int) -> bool:
        """Take what the pipe holds, and keep what the limit allows. False at its end, or where nothing is left."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return False
        kept = self.said[name]
        room = self.limits.output - len(kept) if name in ("stdout", "stderr", "channel") else 1024 - len(kept)
        self.cut |= len(data) > room
        kept += data[: max(room, 0)]
        if name == "report" and self.started is None and data:
            self.started = time.monotonic()
        if name == "info" and self.first is None and kept.rstrip().endswith(b"}"):
            with contextlib.suppress(ProcessLookupError):
                self.first = os.pidfd_open(json.loads(kept)["child-pid"])
                self.stack.callback(os.close, self.first)
        return bool(data)

    def _end(self) -> None:
        """Kill the first process inside, and with it all others; wait until they are gone."""
        if self.process.poll() is not None:
            return
        if self.first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.first, signal.SIGKILL)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _sealed(data: bytes, stack: contextlib.ExitStack) -> int:
    """A file without a name that holds `data` and cannot be written."""
    fd = os.memfd_create("latih", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, fd)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return fd
