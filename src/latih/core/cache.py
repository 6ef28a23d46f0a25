"""The user's cache folder: what is made once and can be made again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where made things are kept: $LATIH_CACHE, else $XDG_CACHE_HOME/latih, else ~/.cache/latih."""
    if folder := os.environ.get("LATIH_CACHE"):
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "latih"
