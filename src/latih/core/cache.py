"""Where latih keeps what it fetched or made once and can make again."""

import os
from pathlib import Path

CACHE_HINT = "LATIH_CACHE names another place"
"""What to do where the cache folder cannot be written."""


def cache_folder() -> Path:
    """$LATIH_CACHE, else $XDG_CACHE_HOME/latih, else ~/.cache/latih. It need not exist yet."""
    if folder := os.environ.get("LATIH_CACHE"):
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "latih"
