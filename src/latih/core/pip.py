"""pip, in a process of its own: how files come from the Python package index, so that pip's cache and mirrors serve."""

import subprocess
import sys
from collections.abc import Sequence

USUAL = ("--no-deps", "--disable-pip-version-check", "--no-input", "--retries=2", "--quiet")


def run_pip(words: Sequence[str], timeout: float) -> str | None:
    """Run pip, without dependencies or questions, for `timeout` seconds at most.

    Why it failed, in one line; None where it did not.
    """
    command = [sys.executable, "-m", "pip", *words, *USUAL]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout:.0f} s"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "pip said nothing")
    return reason.removeprefix("ERROR: ")
