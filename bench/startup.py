"""How long a user waits: for `latih --help`, and from starting `latih eval` to its first sampled token."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from latih.models.source import resolve_model

LATIH = [sys.executable, "-m", "latih.cli"]


def help_seconds() -> float:
    """Of one `latih --help`, the interpreter's own start included."""
    start = time.perf_counter()
    subprocess.run([*LATIH, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def first_token_seconds() -> float:
    """From starting `latih eval default tic_tac_toe --episodes 1` to the end of a first reply of one token.

    The episode is cut to one turn of one token, and `eval.json` says when it was over.
    """
    with tempfile.TemporaryDirectory(prefix="latih-bench-") as folder:
        shortest = ["rollout.sampling.max_tokens=1", "rollout.max_turns=1", f"run.folder={folder}"]
        start = time.time()
        command = [*LATIH, "eval", "default", "tic_tac_toe", "--episodes", "1", *shortest]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        [result] = Path(folder).glob("*/eval.json")
        return float(json.loads(result.read_text())["time"]) - start


def main() -> None:
    """Print the median of five runs of each."""
    resolve_model("default")  # fetched and converted before, as the figure says
    for what, measure in (("latih --help", help_seconds), ("latih eval to its first token", first_token_seconds)):
        measure()  # fills the page cache
        seconds = [measure() for _ in range(5)]
        print(f"{what}: {statistics.median(seconds):.2f} s (of {', '.join(f'{each:.2f}' for each in seconds)})")


if __name__ == "__main__":
    main()
