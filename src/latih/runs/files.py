"""Files that are whole or absent: fsync, atomic rename, and one line where the disk is full."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from latih.core import LatihError

TEMPORARY = ".tmp-"
"""Prefix of names that are being written; whatever still carries it after a crash is rubbish."""


def is_full(exc: BaseException) -> bool:
    """Whether an exception, or one that caused it, says that the disk is full.

    Libraries written in other languages (safetensors, torch) wrap the system's error in their own types, so its text
    is looked at too.
    """
    seen: BaseException | None = exc
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if any(sign in str(seen) for sign in ("No space left on device", "os error 28", "Disk quota exceeded")):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


@contextlib.contextmanager
def writing(what: str, where: Path) -> Iterator[None]:
    """Turn a full disk or a folder that may not be written into a LatihError that says so in one line."""
    try:
        yield
    except LatihError:
        raise
    except Exception as exc:
        if is_full(exc):
            raise LatihError(f"the disk is full: cannot write {what} to {where}; free some space there") from exc
        if isinstance(exc, OSError):
            raise LatihError(f"cannot write {what} to {where}: {exc.strerror or exc}") from exc
        raise


def fsync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fsync_tree(folder: Path) -> None:
    """Wait until all files below a folder are on the disk. Raises OSError."""
    for parent, _, names in os.walk(folder):
        for name in names:
            fsync(Path(parent) / name)
        fsync(Path(parent))


def write_text(path: Path, text: str) -> None:
    """Write a file that is seen either whole or as it was before. Raises OSError."""
    temporary = path.with_name(TEMPORARY + path.name)
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync(path.parent)


def sweep(folder: Path) -> None:
    """Remove what an earlier process left half-written in a folder."""
    for path in [*folder.glob(TEMPORARY + "*"), *folder.glob(".*.tmp")]:  # the latter by other writers in the folder
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
