"""The files of a run: on the disk for certain, and swept where a process died while it wrote."""

import os
import shutil
from pathlib import Path

from latih.core.files import TEMPORARY, fsync, whole_file


def fsync_tree(folder: Path) -> None:
    """Wait until all files below a folder are on the disk. Raises OSError."""
    for parent, _, names in os.walk(folder):
        for name in names:
            fsync(Path(parent) / name)
        fsync(Path(parent))


def write_text(path: Path, text: str) -> None:
    """Write a file that is seen either whole or as it was before. Raises OSError."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def sweep(folder: Path) -> None:
    """Remove what an earlier process left half-written in a folder."""
    for path in folder.glob(TEMPORARY + "*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
