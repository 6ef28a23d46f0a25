"""Draws the README's picture of a terminal: a run's folder, replayed through the code of the screen.

`python docs/picture.py runs/<run>` writes docs/images/quickstart.svg.
"""

import argparse
import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from latih.cli.report import evaluations, games, table
from latih.cli.screen import Screen
from latih.runs import Run

IMAGE = Path(__file__).parent / "images" / "quickstart.svg"
WIDTH = 134
"""Columns: what a row of tic-tac-toe's steps takes."""


def draw(run: Run, command: str) -> str:
    """The SVG of what was on screen at the end: a row for each step, the table, and the last episode shown."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    screen = Screen(console)  # not entered: no bars, which a run that is over does not show
    screen.note(f"$ {command}")
    steps = run.config["trainer"]["steps"]
    for row in run.metrics():
        if "reward" in row:
            screen.step(int(row["step"]), steps, {name: value for name, value in row.items() if name != "step"})
    results, _ = evaluations(run)
    if results:
        console.print(table(results))
        console.print(games(results[-1:]))
    svg = console.export_svg(title="latih", theme=MONOKAI, unique_id="latih")
    return re.sub(r"@font-face {.*?}\s*", "", svg, flags=re.DOTALL)  # a picture fetches nothing: the next font serves


def main() -> None:
    """Draw the picture of one run."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("run", type=Path, help="the run's folder")
    ask.add_argument("--command", default="latih train tic_tac_toe", help="what was typed")
    ask.add_argument("--image", type=Path, default=IMAGE)
    args = ask.parse_args()
    args.image.write_text(draw(Run.open(args.run), args.command), encoding="utf-8")
    print(f"wrote {args.image}")


if __name__ == "__main__":
    main()
