"""Where a program runs on Linux: in bubblewrap's namespaces, or, spelled out, in nothing at all."""

import contextlib
import functools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from latih.core.errors import SandboxError
from latih.sandbox.backends import Job, backends
from latih.sandbox.process import ESCAPE, ProcessBackend
from latih.sandbox.seccomp import rules

INSTALL = "install it (Debian, Ubuntu: `apt install bubblewrap`; Fedora: `dnf install bubblewrap`)"

SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/etc/ld.so.cache")

PARTS = ("bin", "include", "lib*", "pyvenv.cfg")

OURS = str(Path(__file__).resolve().parent.parent)
"""latih itself is not for the programs inside: it can play its environments."""


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
class Bubblewrap(ProcessBackend):
    """Own user, pid, network, mount, ipc, uts and cgroup namespaces."""

    name = "bubblewrap"
    isolates = True

    def __init__(self) -> None:
        super().__init__()
        path = shutil.which("bwrap")
        if path is None:
            raise SandboxError(f"the sandbox needs bubblewrap: {INSTALL}. {ESCAPE}")
        self.path = _probed(path)

    def environment(self, folder: str | None) -> dict[str, str]:
        """Nothing of ours."""
        return {
            "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
            "HOME": "/work",
            "TMPDIR": "/tmp",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def command(self, argv: Sequence[str], job: Job, info: int, refused: int) -> list[str]:
        """As root, two stages: the first lays out what is seen, the second leaves root and then isolates.

        One stage would do but for the paths that only root can reach (an interpreter under /root for instance).
        """
        inner = ["--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
        inner += ["--die-with-parent", "--as-pid-1", "--info-fd", str(info)]
        inner += ["--seccomp", str(refused)] if rules() else []
        rest = ["--proc", "/proc", "--remount-ro", "/", "--chdir", "/work", "--", *argv]
        uid = _fresh_uid()
        if uid is None:
            return [self.path, *inner, *_view(job), *rest]
        user = str(uid)
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise SandboxError("the sandbox needs setpriv to leave root: install the package util-linux")
        setpriv = os.path.realpath(setpriv)
        view = _view(job, self.path, setpriv)
        drop = [setpriv, "--reuid", user, "--regid", user, "--clear-groups", "--", self.path]
        return [
            *(self.path, "--die-with-parent", *view, "--dev-bind", "/proc", "/proc", "--", *drop),
            *(*inner, "--dev-bind", "/", "/", *rest),
        ]


@backends.register("unsafe")
class Unsafe(ProcessBackend):
    """A plain subprocess, with rlimits: it sees and may do whatever we may."""

    name = "unsafe"
    isolates = False

    def environment(self, folder: str | None) -> dict[str, str]:
        """Of ours, the search path."""
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": folder or "/",
            "TMPDIR": folder or "/",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def command(self, argv: Sequence[str], job: Job, info: int, refused: int) -> list[str]:
        """The program itself."""
        return list(argv)

    @contextlib.contextmanager
    def folder(self) -> Iterator[str]:
        """A temporary folder, gone afterwards whatever the program made of it."""
        made = tempfile.mkdtemp(prefix="latih-sandbox-")
        try:
            yield made
        finally:
            try:
                shutil.rmtree(made)
            except (OSError, RecursionError):  # folders that are closed, or too deep for Python
                for words in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
                    subprocess.run([*words, made], stderr=subprocess.DEVNULL, check=False)


def _view(job: Job, *programs: str) -> list[str]:
    """What is seen inside, but for /proc."""
    temporary, work = (
        ["--perms", "1777", "--size", str(size), "--tmpfs"] for size in (job.limits.disk << 20, job.room)
    )
    ours = {path for path in SYSTEM if os.path.exists(path)} | {*programs}
    links = []
    for path in ("/bin", "/lib", "/lib32", "/lib64", *_parts()):
        if os.path.islink(path):
            links.append(path)
        elif os.path.exists(path):
            ours.add(path)
    made = {"/", "/tmp", "/work"}
    view = [*_folders("/dev/x", made), *_folders("/proc/x", made)]
    for device in ("null", "full", "random", "urandom"):
        view += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    view += ["--dev-bind", "/dev/full", "/dev/zero"]  # reads as zeros too, but cannot be mapped as memory of nobody's
    view += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/tmp", "/dev/shm"]
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        view += ["--symlink", f"/proc/self/fd/{fd}", f"/dev/{name}"]
    view += [*temporary, "/tmp", *work, "/work"]
    for path in sorted(ours):
        if not any(path.startswith(each + "/") for each in ours):
            view += [*_folders(path, made), "--ro-bind", path, path]
    for path in links:
        if any(path.startswith(each + "/") for each in ours):
            continue  # it comes with the folder
        view += [*_folders(path, made), "--symlink", os.readlink(path), path]
    masked = _masked(ours)
    for path in masked:
        view += ["--tmpfs", path]
    for path in sorted(_readable(job.read_only)):
        view += [*_folders(path, made), "--ro-bind", path, path]
    for path in masked:
        view += ["--remount-ro", path]
    return view


def _masked(seen: set[str]) -> list[str]:
    """What lies in the folders that are `seen` and is hidden: latih, and the packages that lie beside a Python.

    An installed package may be the very answer to a task; what a task may use comes in by `read_only`.
    """
    found = {OURS} if os.path.isdir(OURS) else set()
    for prefix in ("/usr", "/usr/local", *interpreter()):
        for packages in ("site-packages", "dist-packages", "ensurepip/_bundled"):  # the last holds wheels
            found |= {os.path.realpath(each) for each in Path(prefix).glob(f"lib*/python3*/{packages}")}
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


def _parts() -> list[str]:
    """Of each prefix what an interpreter needs: that of conda holds packages and other environments beside it."""
    return [str(each) for prefix in interpreter() for name in PARTS for each in Path(prefix).glob(name)]


@functools.cache
def interpreter() -> tuple[str, ...]:
    """The folders of this Python, outside of the system's own."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    found |= {os.path.realpath(each) for each in found} | {str(Path(os.path.realpath(sys.executable)).parent.parent)}
    return tuple(sorted(found - {"/", "/usr"}))
