"""Where a program runs: in bubblewrap's namespaces, or, spelled out, in nothing at all."""

import functools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from latih.core.errors import SandboxError
from latih.core.registry import Registry, nearest
from latih.sandbox.limits import Limits
from latih.sandbox.seccomp import rules

INSTALL = "install it (Debian, Ubuntu: `apt install bubblewrap`; Fedora: `dnf install bubblewrap`)"
ESCAPE = "LATIH_SANDBOX=unsafe runs programs without isolation, for code that you trust"
ELSEWHERE = "programs are run on Linux only, isolated or not: use a container or a virtual machine with Linux"

HINT = f"where the kernel or a container refuses namespaces, docs/sandbox.md says what helps. {ESCAPE}"


SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/etc/ld.so.cache")

OURS = str(Path(__file__).resolve().parent.parent)
"""latih itself is not for the programs inside: it can play its environments."""


@dataclass(frozen=True)
class Place:
    """Where one run takes place."""

    folder: str | None
    """A working directory on the host, for a backend that has none of its own."""
    read_only: tuple[Path, ...]
    limits: Limits


class Backend(Protocol):
    """A way to isolate."""

    name: str
    """What LATIH_SANDBOX calls it."""
    isolates: bool
    """Where it does not, every report says so."""

    def command(self, argv: Sequence[str], place: Place, info: int, refused: int) -> list[str]:
        """The command that runs `argv` isolated.

        `info` is a descriptor that gets `{"child-pid": ...}` of the first process inside, with which all others die.
        Where it stays silent, that is the command itself. `refused` is a file with rules for seccomp.
        """
        ...

    def environment(self, place: Place) -> dict[str, str]:
        """The whole environment of that command."""
        ...


backends = Registry[type[Backend]]("sandbox")
"""By the names that LATIH_SANDBOX takes. A class is made without arguments, and raises SandboxError where it cannot."""


def backend() -> Backend:
    """The backend of this machine. Raises SandboxError where there is none, and says how to get one."""
    name = _chosen()
    if name not in backends:
        raise SandboxError(f"LATIH_SANDBOX={name} is no sandbox: {nearest(name, backends)}")
    if not sys.platform.startswith("linux"):
        raise SandboxError(ELSEWHERE)
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


@functools.cache
def _probed(path: str) -> str:
    try:
        told = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise SandboxError(f"the sandbox needs bubblewrap, and {path} does not run: {exc}. {ESCAPE}") from exc
    if "--disable-userns" not in told:
        raise SandboxError(f"the sandbox needs bubblewrap 0.8 or newer, and {path} is older: {INSTALL}. {ESCAPE}")
    return os.path.realpath(path)


def _fresh_uid() -> int | None:
    """A uid of nobody else's for one run, where we are root: RLIMIT_NPROC does not bind root."""
    if os.getuid() != 0:
        return None
    first, _, count = (int(each) for each in Path("/proc/self/uid_map").read_text().split()[-3:])
    if first == 0 and count > 0x7FFFFFFF:
        return 0x70000000 + random.SystemRandom().randrange(1 << 27)  # a range that no distribution gives out
    return first + count - 2 - random.SystemRandom().randrange(max(1, min(count // 8, 1 << 16)))


@backends.register("bubblewrap")
class Bubblewrap:
    """Own user, pid, network, mount, ipc, uts and cgroup namespaces."""

    name = "bubblewrap"
    isolates = True

    def __init__(self) -> None:
        path = shutil.which("bwrap")
        if path is None:
            raise SandboxError(f"the sandbox needs bubblewrap: {INSTALL}. {ESCAPE}")
        self.path = _probed(path)

    def environment(self, place: Place) -> dict[str, str]:
        """Nothing of ours."""
        return {
            "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
            "HOME": "/work",
            "TMPDIR": "/tmp",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def command(self, argv: Sequence[str], place: Place, info: int, refused: int) -> list[str]:
        """As root, two stages: the first lays out what is seen, the second leaves root and then isolates.

        One stage would do but for the paths that only root can reach (an interpreter under /root for instance).
        """
        inner = ["--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
        inner += ["--die-with-parent", "--as-pid-1", "--info-fd", str(info)]
        inner += ["--seccomp", str(refused)] if rules() else []
        rest = ["--proc", "/proc", "--remount-ro", "/", "--chdir", "/work", "--", *argv]
        uid = _fresh_uid()
        if uid is None:
            return [self.path, *inner, *_view(place), *rest]
        user = str(uid)
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise SandboxError("the sandbox needs setpriv to leave root: install the package util-linux")
        setpriv = os.path.realpath(setpriv)
        view = _view(place, self.path, setpriv)
        drop = [setpriv, "--reuid", user, "--regid", user, "--clear-groups", "--", self.path]
        return [
            *(self.path, "--die-with-parent", *view, "--dev-bind", "/proc", "/proc", "--", *drop),
            *(*inner, "--dev-bind", "/", "/", *rest),
        ]


@backends.register("unsafe")
class Unsafe:
    """A plain subprocess, with rlimits: it sees and may do whatever we may."""

    name = "unsafe"
    isolates = False

    def environment(self, place: Place) -> dict[str, str]:
        """Of ours, the search path."""
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": place.folder or "/",
            "TMPDIR": place.folder or "/",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def command(self, argv: Sequence[str], place: Place, info: int, refused: int) -> list[str]:
        """The program itself."""
        return list(argv)


def _view(place: Place, *programs: str) -> list[str]:
    """What is seen inside, but for /proc."""
    size = ["--perms", "1777", "--size", str(place.limits.disk << 20)]
    ours = {path for path in SYSTEM if os.path.exists(path)} | {*interpreter(), *programs}
    links = []
    for path in ("/bin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(path):
            links += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            ours.add(path)
    made = {"/", "/tmp", "/work"}
    view = [*links, *_folders("/dev/x", made), *_folders("/proc/x", made)]
    for device in ("null", "zero", "full", "random", "urandom"):
        view += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    view += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/tmp", "/dev/shm"]
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        view += ["--symlink", f"/proc/self/fd/{fd}", f"/dev/{name}"]
    view += [*size, "--tmpfs", "/tmp", *size, "--tmpfs", "/work"]
    for path in sorted(ours):
        if not any(path.startswith(each + "/") for each in ours):
            view += [*_folders(path, made), "--ro-bind", path, path]
    masked = _masked(ours)
    for path in masked:
        view += ["--tmpfs", path]
    for path in sorted(_readable(place.read_only)):
        view += [*_folders(path, made), "--ro-bind", path, path]
    for path in masked:
        view += ["--remount-ro", path]
    return view


def _masked(seen: set[str]) -> list[str]:
    """What lies in the folders that are `seen` and is hidden: latih, and the packages installed beside a Python.

    An installed package may be the very answer to a task; what a task may use comes in by `read_only`.
    """
    found = {OURS} if os.path.isdir(OURS) else set()
    for prefix in ("/usr", "/usr/local", *interpreter()):
        for pattern in ("lib/python3*/site-packages", "lib/python3*/dist-packages", "lib64/python3*/site-packages"):
            found |= {str(each) for each in Path(prefix).glob(pattern) if not each.is_symlink()}
    inside = {path for path in found if any(path.startswith(each + "/") for each in seen)}
    return sorted(path for path in inside if not any(path.startswith(each + "/") for each in inside))


def _folders(path: str, made: set[str]) -> list[str]:
    """Options that make the folders above `path`, which bubblewrap by itself makes for its own uid only."""
    options = []
    for each in reversed(Path(path).parents):
        if str(each) not in made:
            made.add(str(each))
            options += ["--dir", str(each)]
    return options


def _readable(paths: Sequence[Path]) -> Iterator[str]:
    """The paths, and for a folder that is closed to other uids (as those of `tempfile` are) what it holds."""
    for path in map(Path.absolute, paths):
        if not path.exists():
            raise SandboxError(f"{path} does not exist: it was to be readable in the sandbox")
        if path.is_dir() and os.getuid() == 0 and path.stat().st_mode & 0o5 != 0o5:
            yield from (str(each) for each in path.iterdir())
        else:
            yield str(path)


@functools.cache
def interpreter() -> tuple[str, ...]:
    """The folders of this Python, outside of the system's own."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    found |= {os.path.realpath(each) for each in found} | {str(Path(os.path.realpath(sys.executable)).parent.parent)}
    return tuple(sorted(found - {"/", "/usr"}))
