"""Writes the tables of baselines in the pages of the environments, by the commands that they name: `make docs`.

`python docs/baselines.py NAME…` rewrites the pages of these environments only.
"""

import re
import shlex
import sys
from pathlib import Path

from latih.cli.baseline import Results, markdown, measure, rows
from latih.cli.main import parse

PAGES = Path(__file__).parent / "envs"
TABLE = re.compile(
    r"\n    latih (baseline (?:[^\n]*\\\n)*[^\n]+)\n(?:(?!\n    latih ).)*?\n(\| policy \| reward .*?)(?=\n\n|\n?\Z)",
    re.DOTALL,
)


def render(page: str) -> tuple[str, list[Results]]:
    """The page with its tables as the commands above them now give them, and what was measured.

    Raises ValueError where the section `## Baselines` has no command that is followed by a table.
    """
    head, _, tail = page.partition("\n## Baselines\n")
    measured: list[Results] = []
    for found in reversed(list(TABLE.finditer(tail))):
        args = parse(shlex.split(found[1].replace("\\\n", " ")))
        _, results = measure(args.env, args.overrides, args.episodes, args.policy)
        measured.insert(0, results)
        tail = tail[: found.start(2)] + markdown(rows(results)) + tail[found.end(2) :]
    if not measured:
        raise ValueError("write `## Baselines`, then `    latih baseline NAME`, then a table | policy | reward | …")
    return f"{head}\n## Baselines\n{tail}", measured


if __name__ == "__main__":
    pages = sorted(path for path in PAGES.glob("*.md") if path.name != "README.md")  # which is their list
    for path in [PAGES / f"{name}.md" for name in sys.argv[1:]] or pages:
        path.write_text(render(path.read_text(encoding="utf-8"))[0], encoding="utf-8")
