"""Writes the tables of baselines in the pages of the environments, by the commands that they name: `make docs`.

`python docs/baselines.py NAME…` rewrites the pages of these environments only.
"""

import re
import sys
from pathlib import Path

from latih.cli.baseline import Results, markdown, measure, rows
from latih.cli.main import parse

PAGES = Path(__file__).parent / "envs"
SECTION = re.compile(
    r"(## Baselines\n\n    latih (baseline [^\n]+)\n.*?\n)(\| policy \| reward .*?)(?=\n\n|\n?\Z)", re.DOTALL
)


def render(page: str) -> tuple[str, Results]:
    """The page with its table as the command now gives it, and what was measured.

    Raises ValueError where the page has no section `## Baselines` that begins with the command and holds a table.
    """
    found = SECTION.search(page)
    if found is None:
        raise ValueError("write `## Baselines`, then `    latih baseline NAME`, then a table | policy | reward | …")
    args = parse(found[2].split())
    _, results = measure(args.env, args.overrides, args.episodes, args.policy)
    return page[: found.start(3)] + markdown(rows(results)) + page[found.end(3) :], results


if __name__ == "__main__":
    for path in [PAGES / f"{name}.md" for name in sys.argv[1:]] or sorted(PAGES.glob("*.md")):
        path.write_text(render(path.read_text(encoding="utf-8"))[0], encoding="utf-8")
