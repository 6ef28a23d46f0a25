"""One run on Linux seen from outside: its pipes, its deadline, its end."""

import contextlib
import dataclasses
import functools
import io
import json
import marshal
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from latih.core.errors import SandboxError
from latih.sandbox.backends import Job
from latih.sandbox.launcher import Entry
from latih.sandbox.limits import Result
from latih.sandbox.seccomp import rules
from latih.sandbox.workspace import load

ESCAPE = "LATIH_SANDBOX=unsafe runs programs without isolation, for code that you trust"
ELSEWHERE = (
    "programs are run on Linux only, isolated or not: use a container or a virtual machine with Linux, or write a "
    "backend (docs/sandbox.md)"
)
HINT = f"where the kernel or a container refuses namespaces, docs/sandbox.md says what helps. {ESCAPE}"

START_SECONDS = 120.0
"""A sandbox that has not started its program by then is a fault of the machine."""

SAVE_SECONDS = 30.0
"""After the program's time, the launcher gets that long to end everything and to save the files."""

CHUNK = 1 << 16
BOOT = "import marshal, sys; file = open(int(sys.argv[1]), 'rb'); code, order = marshal.load(file); exec(code)"


class ProcessBackend:
    """A backend whose programs are processes of this machine. Another kind may say how they are started."""

    name: str
    isolates: bool

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise SandboxError(ELSEWHERE)

    def command(self, argv: Sequence[str], job: Job, info: int, refused: int) -> list[str]:
        """The command that runs `argv` isolated.

        `info` is a descriptor that gets `{"child-pid": ...}` of the first process inside, with which all others die.
        Where it stays silent, that is the command itself. `refused` is a file with rules for seccomp.
        """
        raise NotImplementedError

    def environment(self, folder: str | None) -> dict[str, str]:
        """The whole environment of that command, whose working directory is `folder`."""
        raise NotImplementedError

    @contextlib.contextmanager
    def folder(self) -> Iterator[str | None]:
        """A working directory on the host, for a kind that has none of its own."""
        yield None

    def run(self, job: Job) -> tuple[Result, dict[str, Entry] | None]:
        """Run the program under the launcher, which lays out the files, keeps the limits and collects the files."""
        try:
            with contextlib.ExitStack() as stack:
                process = Process(self, job, stack.enter_context(self.folder()), stack)
                result = process.result()
                if not job.keep:
                    return result, None
                tree, whole = load(process.saved())
                return dataclasses.replace(result, cut=result.cut or not whole), tree
        except OSError as exc:  # what the machine lacks is no fault of the program
            raise SandboxError(f"the sandbox does not start: {exc}; {HINT}") from exc


class Process:
    """A sandbox that runs, from its start to `result`. `stack` closes whatever it holds."""

    def __init__(self, where: ProcessBackend, job: Job, folder: str | None, stack: contextlib.ExitStack) -> None:
        self.limits = job.limits
        self.said = {name: bytearray() for name in ("info", "report", "stdout", "stderr", "channel")}
        self.cut = False
        self.started: float | None = None
        self._first: int | None = None
        """A pidfd of the first process inside: with it die all."""
        self._stack = stack
        self._saved = _memory(b"", stack)
        self._selector = stack.enter_context(selectors.DefaultSelector())
        with contextlib.ExitStack() as given:  # what the child holds, and we shall not
            ends = {name: self._pipe(name, given) for name in self.said}
            orders = _memory(marshal.dumps((_launcher(), _order(job, where.isolates))), given, sealed=True)
            inside = (orders, ends["report"], ends["channel"], self._saved)
            refused = _memory(rules(), given, sealed=True)
            self.begun = time.monotonic()
            self._process = subprocess.Popen(
                where.command([sys.executable, "-I", "-B", "-c", BOOT, *map(str, inside)], job, ends["info"], refused),
                stdin=_memory(job.stdin, given, sealed=True),
                stdout=ends["stdout"],
                stderr=ends["stderr"],
                pass_fds=(*inside, ends["info"], refused),
                env=where.environment(folder),
                cwd=folder or "/",
                start_new_session=True,
            )
            stack.callback(self._let_go)  # undone in reverse: `_end` still has it, where an interruption ends this
            stack.callback(self._end)

    def _pipe(self, name: str, given: contextlib.ExitStack) -> int:
        """Make the pipe `name`, keep its end for reading, and return the other one."""
        read, write = os.pipe()
        self._stack.callback(os.close, read)
        given.callback(os.close, write)
        os.set_blocking(read, False)
        self._selector.register(read, selectors.EVENT_READ, name)
        return write

    def result(self) -> Result:
        """Read until the program has ended or its time is up; then end everything. Raises SandboxError."""
        self._listen(time.monotonic() + START_SECONDS, lambda: self.started is not None or self._closed("report"))
        if self.started is None:
            self._end()
            told = self.said["stderr"].decode(errors="replace").strip().splitlines()
            raise SandboxError(f"the sandbox did not start: {told[-1] if told else 'it said nothing'}; {HINT}")
        timed_out = not self._listen(self.started + self.limits.wall, lambda: self._closed("report"))
        seconds = time.monotonic() - self.begun
        if timed_out:
            self._signal(signal.SIGTERM)
            self._listen(time.monotonic() + SAVE_SECONDS, lambda: self._closed("report"))
        self._end()
        _, *code = self.said["report"].split()
        return Result(
            code=None if timed_out else int(code[0]) if code else -signal.SIGKILL,
            stdout=bytes(self.said["stdout"]),
            stderr=bytes(self.said["stderr"]),
            channel=bytes(self.said["channel"]),
            timed_out=timed_out,
            cut=self.cut,
            seconds=seconds,
        )

    def saved(self) -> io.BytesIO:
        """What the launcher saved of the working directory."""
        with open(f"/proc/self/fd/{self._saved}", "rb") as file:
            return io.BytesIO(file.read())

    def _closed(self, name: str) -> bool:
        return all(key.data != name for key in self._selector.get_map().values())

    def _silent(self) -> bool:
        return not self._selector.get_map()

    def _listen(self, until: float, done: Callable[[], bool]) -> bool:
        """Read from all pipes until `done`. False where `until` comes first."""
        while not done():
            left = until - time.monotonic()
            if left <= 0:
                return False
            for key, _ in self._selector.select(left):
                self._read(key)
        return True

    def _read(self, key: selectors.SelectorKey) -> bool:
        """Take a chunk of what a pipe holds, and keep what the limit allows. False where there was nothing."""
        try:
            data = os.read(key.fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(key.fd)
            return False
        kept = self.said[key.data]
        most = 1024 if key.data in ("info", "report") else self.limits.output
        room = max(0, most - len(kept))
        kept += data[:room]
        if key.data == "report" and self.started is None:
            self.started = time.monotonic()
        elif key.data == "info" and self._first is None and kept.rstrip().endswith(b"}"):
            with contextlib.suppress(ProcessLookupError):
                self._first = os.pidfd_open(json.loads(kept)["child-pid"])
        elif len(data) > room:
            self.cut = True
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._first is not None:
                signal.pidfd_send_signal(self._first, number)
            else:
                self._process.send_signal(number)

    def _let_go(self) -> None:
        if self._first is not None:
            os.close(self._first)

    def _end(self) -> None:
        """End everything inside, wait until it is gone, and read what is left in the pipes."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._signal(number)
                # Pipes close as the last process goes; `Popen.wait` with a time would poll.
                self._listen(time.monotonic() + 2.0, lambda: self._process.poll() is not None or self._silent())
                if self._silent():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(2.0)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for key in list(self._selector.get_map().values()):
            for _ in range(32):  # a pipe holds no more than that
                if not self._read(key):
                    break


def _order(job: Job, isolated: bool) -> dict[str, Any]:
    """What the launcher gets: nothing but what the program may know."""
    limits = job.limits
    rlimits = {
        "RLIMIT_CPU": math.ceil(limits.cpu),
        "RLIMIT_DATA": limits.memory << 20,
        "RLIMIT_NPROC": limits.processes + 1,  # the launcher counts as well
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.disk << 20,
        "RLIMIT_CORE": 0,
        "RLIMIT_MSGQUEUE": 0,
    }
    if not isolated:
        del rlimits["RLIMIT_NPROC"]  # it would count all processes of the user
    source = job.program if isinstance(job.program, str) else None
    return {
        "argv": None if source is not None else [os.fspath(each) for each in job.program],
        "source": source,
        "tree": job.tree,
        "limits": rlimits,
        "memory": limits.memory << 20,
        "save": job.keep,
    }


@functools.cache
def _launcher() -> CodeType:
    return compile(Path(__file__).with_name("launcher.py").read_text(encoding="utf-8"), "<launcher>", "exec")


def _memory(data: bytes, stack: contextlib.ExitStack, *, sealed: bool = False) -> int:
    """A file in memory, without a name, that holds `data`; sealed, nobody can write to it."""
    import fcntl  # not there on Windows, where latih is imported all the same

    fd = os.memfd_create("latih", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, fd)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    if sealed:
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd
