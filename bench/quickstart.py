"""What `latih train tic_tac_toe` reaches and how long it takes, over several seeds."""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from latih.cli.report import evaluations
from latih.evaluation import EvalResult
from latih.models.source import resolve_model
from latih.runs import Run

LATIH = [sys.executable, "-m", "latih.cli"]
OUTCOMES = ("win", "draw", "loss", "invalid")


def train(seed: int, runs: Path, more: list[str]) -> tuple[Path, float]:
    """Train in a process of its own, its output on ours; the run's folder, and minutes of all of it."""
    start = time.perf_counter()
    words = [f"seed={seed}", f"run.folder={runs}", f"run.name=seed-{seed}", *more]
    subprocess.run([*LATIH, "train", "tic_tac_toe", *words], check=True, stdout=sys.stderr)
    return runs / f"seed-{seed}", (time.perf_counter() - start) / 60


def evaluate(run: Path, episodes: int) -> EvalResult:
    """`latih eval` of a run's last checkpoint on held-out games, sampled at temperature 1."""
    words = ["--episodes", str(episodes), f"run.folder={run.parent}"]
    subprocess.run([*LATIH, "eval", str(run), "tic_tac_toe", *words], check=True, stdout=sys.stderr)
    [made] = (run / "evaluations" / "by-hand").iterdir()
    return EvalResult.load(made)


def row(name: str, result: EvalResult, rest: str = "") -> str:
    """A line of the table: outcomes in percent with 95 % intervals."""
    found = [result.rates[each] for each in OUTCOMES]
    cells = [f"{100 * each.value:5.1f} [{100 * each.low:5.1f}, {100 * each.high:5.1f}]" for each in found]
    return f"{name:>20}  " + "  ".join(cells) + rest


def main() -> None:
    """Train and evaluate each seed, then print the table."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0 on")
    ask.add_argument("--long", action="store_true", help="the recipe's long form")
    ask.add_argument("--episodes", type=int, default=500)
    ask.add_argument("overrides", nargs="*", metavar="key=value", help="settings of the training")
    args = ask.parse_args()
    resolve_model("default")  # the package cache is warm, as the figure says
    runs = Path(tempfile.mkdtemp(prefix="latih-bench-"))
    lines, wins, minutes = [], [], []
    for seed in range(args.seeds):
        run, total = train(seed, runs, ["--long"] * args.long + args.overrides)
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        training = sum(each.get("seconds/step", 0.0) + each.get("warm_start/seconds", 0.0) for each in rows) / 60
        entropy = ([math.nan] + [each["entropy"] for each in rows if "entropy" in each])[-1]  # a step may train nothing
        for result in evaluations(Run.open(run))[0]:
            lines.append(row(f"{seed} {result.label}", result))
        result = evaluate(run, args.episodes)
        lines.append(row(f"{seed} {args.episodes} games", result, f"  {entropy:7.3f}  {training:8.1f}  {total:5.1f}"))
        wins.append(100 * result.rates["win"].value)
        minutes.append(total)
    print(f"runs: {runs}\n\nlatih train tic_tac_toe{' --long' * args.long} {' '.join(args.overrides)}")
    print("Held-out games in percent with 95 % intervals; entropy of the last step in nats; minutes of the training")
    print("(warm start and steps, without evaluations) and of the whole command.\n")
    print(f"{'seed':>20}  " + "  ".join(f"{each:>20}" for each in OUTCOMES) + "  entropy  training  total")
    print("\n".join(lines))
    print(f"\nmedian of {args.seeds}: {statistics.median(wins):.1f} % won, {statistics.median(minutes):.1f} minutes")


if __name__ == "__main__":
    main()
