"""The first process inside: lays out the files, starts the program under its limits, and ends everything with it.

Its code and its order are handed to the interpreter inside in a file (see `process.py`), with four file descriptors as
arguments: that file, the pipe of the report, the channel, and where to save the files. The order holds nothing but what
the program may know. Nothing but the standard library is to be had here, and each import costs every run its time.

A tree of files is a dict of relative names to entries (kind, mode, time, data). It holds every folder, and before what
lies in it.
"""

from __future__ import annotations

import ctypes
import os
import select
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, BinaryIO
else:
    import _signal as signal  # `signal` builds enumerations for 9 ms, and `typing` takes 5

Entry = tuple[str, int, int, bytes]
"""Kind (`file`, `folder`, `link`), permissions, modification time in ns, and the content or the link's target."""

MOST_ENTRIES = 20_000
DEEPEST = 64
LONGEST_PART, LONGEST = 255, 1000
"""Bytes of a part of a name and of all of it, which with a short folder before it every system takes for a path."""
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
DUMPABLE = 4  # PR_SET_DUMPABLE
POLL_SECONDS = 0.1


def fits(name: str) -> bool:
    """Whether a tree may hold the relative `name`: any that a file system takes wherever it is laid out."""
    try:
        whole = name.encode()
    except UnicodeError:
        return False
    parts = whole.split(b"/")
    return len(parts) <= DEEPEST and len(whole) <= LONGEST and max(map(len, parts)) <= LONGEST_PART


def weight(entry: Entry) -> int:
    """Bytes that an entry takes in a file system, at most: those of its content, in whole pages."""
    return -(-len(entry[3]) // PAGE) * PAGE


def lay_out(tree: dict[str, Entry], top: str = ".") -> None:
    """Make the files of `tree` in the empty folder `top`."""
    for name, (kind, mode, when, data) in tree.items():
        path = f"{top}/{name}"
        if kind == "folder":
            os.mkdir(path, 0o700)
        elif kind == "link":
            os.symlink(os.fsdecode(data), path)
        else:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.write(data)
            os.utime(path, ns=(when, when))
            os.chmod(path, mode)
    for name, (kind, mode, _, _) in reversed(tree.items()):
        if kind == "folder":
            os.chmod(f"{top}/{name}", mode)


def collect(top: str, most: int) -> tuple[dict[str, Entry], bool]:
    """The tree below `top`, at most `most` bytes of it, and whether it is whole. Nothing may be writing meanwhile.

    Links are kept as links. What is neither file, folder nor link is not kept. Nothing that a program left there makes
    this raise, and what comes back can be laid out again in a file system of `most` bytes.
    """
    tree: dict[str, Entry] = {}
    whole = True
    seen = 0
    try:  # noqa: SIM105
        os.chmod(top, 0o700)
    except OSError:  # not ours, so the program could not close it either
        pass
    todo = [""]
    while todo:
        folder = todo.pop()
        try:
            with os.scandir(f"{top}/{folder}") as found:
                for each in found:
                    seen += 1
                    if seen > MOST_ENTRIES:
                        return tree, False
                    name = f"{folder}/{each.name}" if folder else each.name
                    try:
                        entry = take(f"{top}/{name}", most) if fits(name) else None
                    except OSError:
                        entry = None
                    if entry is None:
                        whole = False
                        continue
                    most -= weight(entry)
                    if most < 0:
                        return tree, False
                    if entry[0] == "folder":
                        todo.append(name)
                    if entry[0]:
                        tree[name] = entry
        except OSError:
            whole = False
    return tree, whole


def take(path: str, most: int) -> Entry:
    """What lies at `path`, of a file at most a byte more than `most`. Its kind is empty where it is none of ours."""
    found = os.lstat(path)
    mode, when = stat.S_IMODE(found.st_mode) & 0o777, found.st_mtime_ns
    if stat.S_ISDIR(found.st_mode):
        if mode & 0o700 != 0o700:
            os.chmod(path, 0o700)
        return "folder", mode, when, b""
    if stat.S_ISLNK(found.st_mode):
        return "link", mode, when, os.fsencode(os.readlink(path))
    if not stat.S_ISREG(found.st_mode):
        return "", mode, when, b""
    if not mode & 0o400:
        os.chmod(path, 0o600)
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return "file", mode, when, file.read(min(found.st_size, most + 1))


def save(tree: dict[str, Entry], whole: bool, file: BinaryIO) -> None:
    """Write a tree as a line of JSON and the contents behind it: whoever reads it need not trust it."""
    import json

    rows = [(name, *entry[:3], len(entry[3])) for name, entry in tree.items()]
    file.write(json.dumps({"whole": whole, "rows": rows}).encode() + b"\n")
    for entry in tree.values():
        file.write(entry[3])


def resident(limit: int) -> int:
    """Bytes of memory that all processes but this one hold; shared pages are shared out where the sum is over limit."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = exact = 0
    held = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        if pid != str(os.getpid()):
            try:
                with open(f"/proc/{pid}/statm") as file:
                    held[pid] = int(file.read().split()[1]) * page
                    total += held[pid]
            except (OSError, IndexError):
                continue
    if total <= limit:
        return total
    for pid, most in held.items():
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                exact += next((int(line.split()[1]) << 10 for line in file if line.startswith("Pss:")), most)
        except OSError:  # gone, or it hides
            exact += most if os.path.exists(f"/proc/{pid}") else 0
    return exact


def main(order: dict[str, Any]) -> None:
    """Carry out the order. Returns in the child, where Python source is still to be run."""
    report, channel, saved = (int(each) for each in sys.argv[2:5])
    lay_out(order["tree"])
    top = os.getcwd()  # by its path: a program may close "." to us
    signals = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    prctl = ctypes.CDLL(None).prctl
    prctl(DUMPABLE, 0, 0, 0, 0)  # the program has our uid: it shall neither trace us nor see our descriptors
    child = os.fork()
    if child:
        os.write(report, b"started\n")
        watch(child, order, report, saved, top)
    os.closerange(3, channel)
    os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))
    prctl(DUMPABLE, 1, 0, 0, 0)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    os.set_inheritable(channel, True)
    os.environ["LATIH_CHANNEL"] = str(channel)
    import resource  # not there on Windows, where this module is imported all the same

    for name, value in order["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if order["argv"]:
        become(order["argv"])


def watch(child: int, order: dict[str, Any], report: int, saved: int, top: str) -> None:
    """Wait until the program ends, its memory is used up, our parent dies or SIGTERM comes; end all, and report."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    alone = os.getpid() == 1
    reader = select.poll()
    reader.register(report, 0)  # tells when nobody reads the report any more: our parent is dead
    code = None
    look = time.monotonic() + POLL_SECONDS
    while code is None:
        signalled = signal.sigtimedwait({signal.SIGCHLD, signal.SIGTERM}, POLL_SECONDS)
        if signalled and signalled.si_signo == signal.SIGTERM:
            break
        if time.monotonic() >= look:
            if reader.poll(0) or (alone and resident(order["memory"]) > order["memory"]):
                break
            look = time.monotonic() + POLL_SECONDS
        code = reap(child, os.WNOHANG)
    for pid in (-1,) if alone else (child, -child):  # all but ourselves; or the program and its group
        try:  # noqa: SIM105
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    ended = reap(child, 0)
    code = ended if code is None else code
    if order["save"]:
        with open(saved, "wb") as file:
            save(*collect(top, order["save"]), file)
    os.write(report, f"{code}\n".encode())
    os._exit(0)


def reap(child: int, flags: int) -> int | None:
    """Reap whoever has ended (without WNOHANG: everybody). Returns the exit code of `child` if it was among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, flags)
        except ChildProcessError:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
        if pid == 0:
            return code


def become(argv: list[str]) -> None:
    """Replace this process by the program."""
    try:
        os.execvp(argv[0], argv)
    except OSError as exc:
        os.write(2, f"{argv[0]}: {exc.strerror}\n".encode())
        os._exit(127)


if __name__ == "__main__":
    todo: dict[str, Any] = globals()["order"]
    main(todo)
    here = sys.modules["__main__"] = type(sys)("__main__")
    sys.argv[:] = ["program"]
    exec(compile(todo["source"], "<program>", "exec", dont_inherit=True), here.__dict__)
