"""Files and folders that are whole or absent, and one line where the disk is full."""

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from latih.core.errors import LatihError

TEMPORARY = ".tmp-"
"""Prefix of names that are being written; whatever still carries it after a crash is rubbish."""
UNLOCKED = 60.0
"""Seconds that the folder of `scratch` has from being made to being locked, at most."""


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
def writing(what: str, where: Path, hint: str = "") -> Iterator[None]:
    """Turn a full disk or a folder that may not be written into a LatihError that says so in one line.

    `hint` says what else than mending the place may be done.
    """
    hint = hint and f"; {hint}"
    try:
        yield
    except LatihError:
        raise
    except Exception as exc:
        if is_full(exc):
            raise LatihError(f"the disk is full: cannot write {what} to {where}; free some space there{hint}") from exc
        if isinstance(exc, OSError):
            raise LatihError(f"cannot write {what} to {where}: {exc.strerror or exc}{hint}") from exc
        raise


def need_writable(folder: Path) -> None:
    """Make `folder` where there is none, and see that a file can be written there. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path on the same disk: its file takes the place of `path` when the block ends.

    Where the block raises, `path` is as it was. Several may write the same one at a time; the last stays. Raises
    OSError.
    """
    with _beside(path) as temporary:
        yield temporary
        fsync(temporary)
        temporary.replace(path)
    fsync(path.parent)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give an empty temporary folder, renamed to `path` when the block ends: for what is made once.

    Where another has made `path` meanwhile, that one stays. Raises OSError.
    """
    with _beside(path) as temporary:
        temporary.mkdir()
        yield temporary
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """Give an empty temporary folder, and remove those of that prefix whose process was killed. Not for Windows."""
    import fcntl  # not there on Windows, where this module is imported all the same

    for each in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # in use, another user's, or removed by another sweep
            if time.time() - each.stat(follow_symlinks=False).st_mtime > UNLOCKED:
                with _opened(each) as handle:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(each)
    with tempfile.TemporaryDirectory(prefix=prefix) as made, _opened(Path(made)) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # goes with our process, however that ends
        yield Path(made)


def fsync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk. Raises OSError."""
    with _opened(path) as handle:
        os.fsync(handle)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=path.parent, ignore_cleanup_errors=True) as home:
        yield Path(home) / path.name
