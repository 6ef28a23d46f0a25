"""A working directory that stays over several runs, and whose content nobody trusts.

It is never a folder of the host. Between runs its files are plain data in memory; each run gets them in a fresh file
system of limited size, and what it leaves there is collected from inside, once everything else inside is dead. So
there is no link to follow and no device to open, and nothing stays behind.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import BinaryIO, Self

from latih.sandbox.launcher import DEEPEST, LONGEST, LONGEST_PART, MOST_ENTRIES, Entry, fits, weight

MOST_BYTES = 64 << 20


class Workspace:
    """The working directory of `run(workspace=...)`, made of `files`. Runs in one workspace take turns.

    >>> with Workspace({"folder/a.txt": "text"}) as workspace:
    ...     workspace.write("b.txt", b"more")
    ...     workspace.files()
    {'b.txt': b'more', 'folder/a.txt': b'text'}
    """

    def __init__(self, files: Mapping[str, bytes | str] = {}, disk: int = 64) -> None:
        """Hold `files`. `disk`: MiB that `write` may fill, as `Limits.disk` is for a run. Raises what `write` does."""
        self.tree: dict[str, Entry] = {}
        self.disk = disk
        self._turn = threading.Lock()
        self._put(files)

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """A regular file's content. Raises FileNotFoundError where there is none, ValueError above `most` bytes."""
        kind, _, _, data = self.tree.get(check_name(name), ("", 0, 0, b""))
        if kind != "file":
            raise FileNotFoundError(f"{name} is no regular file of the workspace")
        if len(data) > most:
            raise ValueError(f"{name} has {len(data)} bytes, more than {most}")
        return data

    def write(self, name: str, data: bytes | str) -> None:
        """Put a file there, in place of whatever stands in its way, links among the folders above it included.

        Raises ValueError where it does not fit.
        """
        self._put({name: data})

    def _put(self, files: Mapping[str, bytes | str]) -> None:
        tree = dict(self.tree)
        for name, data in files.items():
            put(tree, name, data)
        held = total(tree)
        if (held > self.disk << 20 and held > total(self.tree)) or len(tree) > max(MOST_ENTRIES, len(self.tree)):
            raise ValueError(
                f"{', '.join(files)[:100]}: the workspace is full, with {self.disk} MiB or {MOST_ENTRIES} entries: "
                "remove files in it first"
            )
        self.tree = tree

    def files(self) -> dict[str, bytes]:
        """All regular files by relative name, sorted; no links."""
        return {name: data for name, (kind, _, _, data) in sorted(self.tree.items()) if kind == "file"}

    def close(self) -> None:
        """Forget the files."""
        self.tree = {}

    @contextmanager
    def turn(self) -> Iterator[dict[str, Entry]]:
        """The files for one run, which nobody else changes meanwhile."""
        with self._turn:
            yield dict(self.tree)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def check_name(name: str) -> str:
    """A relative name without `.` and `..` that every file system takes. Raises ValueError for any other."""
    if not name or "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"{name!r} is no relative name of a file: write it like folder/file.py")
    if not fits(name):
        raise ValueError(
            f"{name[:40]!r}… is no name of a file here: UTF-8, at most {DEEPEST} parts of {LONGEST_PART} bytes, and "
            f"{LONGEST} bytes in all"
        )
    return name


def put(tree: dict[str, Entry], name: str, data: bytes | str) -> None:
    """Put a file and the folders above it into `tree`, in place of whatever stands in its way."""
    parts = check_name(name).split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        if tree.get(above, ("",))[0] != "folder":
            tree.pop(above, None)  # a folder comes before what it holds, and after what was there before
            tree[above] = ("folder", 0o755, time.time_ns(), b"")
    kind, mode, _, _ = tree.get(name, ("", 0o644, 0, b""))
    if kind != "file":
        mode = 0o644
    if kind == "folder":
        for each in [each for each in tree if each.startswith(name + "/")]:
            del tree[each]
    tree[name] = ("file", mode | 0o600, time.time_ns(), data.encode() if isinstance(data, str) else bytes(data))


def total(tree: Mapping[str, Entry]) -> int:
    """Bytes of a file system that `tree` takes."""
    return sum(map(weight, tree.values()))


def load(file: BinaryIO) -> tuple[dict[str, Entry] | None, bool]:
    """What the launcher saved, and whether it is whole. None where it did not come to that, or not to the end."""
    try:
        head = json.loads(file.readline())
        tree: dict[str, Entry] = {}
        for name, kind, mode, when, size in head["rows"]:
            data = file.read(size)
            if kind not in ("file", "folder", "link") or len(data) != size:
                raise ValueError(name)
            tree[check_name(name)] = (kind, int(mode) & 0o777, int(when), data)
        return tree, bool(head["whole"])
    except (ValueError, KeyError, TypeError):
        return None, False
