"""pip, in a process of its own: how files come from the Python package index, so that pip's cache and mirrors serve."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

USUAL = ("--no-deps", "--disable-pip-version-check", "--no-input", "--retries=2", "--quiet")
EVERY = 0.5
"""Seconds between two calls of `waiting`."""


def extra(name: str) -> str:
    """How to install what the extra `name` of latih brings, for an error.

    >>> extra("hub")
    "pip install -c constraints.txt '.[hub]' in latih's clone"
    """
    return f"pip install -c constraints.txt '.[{name}]' in latih's clone"


def run_pip(
    words: Sequence[str], timeout: float, temporary: Path | None = None, waiting: Callable[[], None] = lambda: None
) -> str | None:
    """Run pip, without dependencies or questions, for `timeout` seconds at most.

    It keeps what it is fetching in the folder `temporary`; `waiting` is called now and then meanwhile.

    Why it failed, in one line; None where it did not.
    """
    command = [sys.executable, "-m", "pip", *words, *USUAL]
    environment = os.environ | ({"TMPDIR": str(temporary)} if temporary else {})
    end = time.monotonic() + timeout
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            while True:
                try:
                    _, said = process.communicate(timeout=max(0.0, min(EVERY, end - time.monotonic())))
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() >= end:
                        return f"no answer in {timeout:.0f} s"
                    waiting()
        finally:
            if process.poll() is None:
                process.kill()
    if process.returncode == 0:
        return None
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "pip said nothing")
    return reason.removeprefix("ERROR: ")
