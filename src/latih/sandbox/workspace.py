"""A working directory that stays over several runs, and whose content nobody trusts."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from latih.core.errors import SandboxError
from latih.sandbox.backends import fresh_uid

FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
MOST_BYTES = 64 << 20
MOST_FILES = 10_000


class Workspace:
    """A folder for `run(workspace=...)`, made of `files` or a copy of the folder `base`. Close it, or use `with`.

    Programs may have put anything there: links are never followed, and only regular files are read.
    """

    def __init__(self, files: Mapping[str, bytes | str] = {}, base: Path | None = None) -> None:
        self.uid = fresh_uid()
        self.folder = Path(tempfile.mkdtemp(prefix="latih-work-"))
        if base is not None:
            shutil.copytree(base, self.folder, symlinks=True, dirs_exist_ok=True)
        for name, data in files.items():
            self.write(name, data)
        if self.uid is not None:
            for folder, folders, names in os.walk(self.folder):
                for each in (".", *folders, *names):
                    os.chown(os.path.join(folder, each), self.uid, self.uid, follow_symlinks=False)

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """A regular file's content. Raises FileNotFoundError for what is none, OSError for one above `most` bytes."""
        parent = self._open_parent(name, make=False)
        try:
            return _read(parent, name.rsplit("/", 1)[-1], most)
        finally:
            os.close(parent)

    def write(self, name: str, data: bytes | str) -> None:
        """Put a file there, in place of whatever has its name. Folders above it are made."""
        parent = self._open_parent(name, make=True)
        last = name.rsplit("/", 1)[-1]
        try:
            if os.path.lexists(f"/proc/self/fd/{parent}/{last}"):
                os.unlink(last, dir_fd=parent)
            fd = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS, 0o644, dir_fd=parent)
            with open(fd, "wb") as file:
                file.write(data.encode() if isinstance(data, str) else data)
                if self.uid is not None:
                    os.fchown(fd, self.uid, self.uid)
        finally:
            os.close(parent)

    def files(self, most: int = MOST_BYTES) -> dict[str, bytes]:
        """All regular files by relative name, up to `most` bytes in all and 10,000 entries; links are left out."""
        root = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | FLAGS)
        try:
            found = {}
            for name, fd, last in _walk(root):
                data = _read(fd, last, most)
                most -= len(data)
                found[name] = data
            return dict(sorted(found.items()))
        finally:
            os.close(root)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _open_parent(self, name: str, make: bool) -> int:
        parts = check_name(name).split("/")
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | FLAGS)
        for part in parts[:-1]:
            try:
                if make:
                    try:
                        os.mkdir(part, 0o755, dir_fd=fd)
                        if self.uid is not None:
                            os.chown(part, self.uid, self.uid, dir_fd=fd, follow_symlinks=False)
                    except FileExistsError:
                        pass
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | FLAGS, dir_fd=fd)
            except OSError as exc:
                raise FileNotFoundError(f"{name}: {part} is no folder of the workspace") from exc
            finally:
                os.close(fd)
            fd = below
        return fd


def check_name(name: str) -> str:
    """A relative name without `.` and `..`. Raises ValueError for any other."""
    if not name or "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"{name!r} is no relative name of a file: write it like folder/file.py")
    return name


def _read(parent: int, name: str, most: int) -> bytes:
    """The content of the regular file `name` in the folder `parent`."""
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileNotFoundError(f"{name} is no regular file")
        with open(f"/proc/self/fd/{handle}", "rb") as file:
            data = file.read(most + 1)
    finally:
        os.close(handle)
    if len(data) > most:
        raise OSError(f"{name} has more than {most} bytes")
    return data


def _walk(root: int) -> Iterator[tuple[str, int, str]]:
    """Every regular file below: its relative name, the descriptor of its folder, its last name."""
    left = MOST_FILES
    todo = [(os.dup(root), "")]
    try:
        while todo:
            fd, above = todo.pop()
            try:
                with os.scandir(fd) as entries:
                    for entry in entries:
                        left -= 1
                        if left < 0:
                            raise SandboxError(f"the workspace holds more than {MOST_FILES} entries")
                        if entry.is_dir(follow_symlinks=False):
                            flags = os.O_RDONLY | os.O_DIRECTORY | FLAGS
                            todo.append((os.open(entry.name, flags, dir_fd=fd), f"{above}{entry.name}/"))
                        elif entry.is_file(follow_symlinks=False):
                            yield above + entry.name, fd, entry.name
            finally:
                os.close(fd)
    finally:
        for fd, _ in todo:
            os.close(fd)
