"""Writes the tables of baselines in the pages of the environments, by the commands that they name: `make docs`.

`python docs/baselines.py NAME…` rewrites the pages of these environments only. The list of environments gets the first
table of every page, in short.
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


def overview(index: str) -> str:
    """The list of environments with what each policy scores, as the pages of the environments have it."""
    policies = ["no-op", "random", "echo", "expert"]
    lines = ["| environment | " + " | ".join(policies) + " |", "|---" * 5 + "|"]
    for path in sorted(path for path in PAGES.glob("*.md") if path.name != "README.md"):
        tail = path.read_text(encoding="utf-8").partition("\n## Baselines\n")[2]
        found = TABLE.search(tail)
        if not found:
            raise ValueError(f"{path}: no table of baselines")
        scores = {row.split(" | ")[0][2:]: row.split(" | ")[1] for row in found[2].splitlines()[2:]}
        lines.append(" | ".join([f"| [{path.stem}]({path.name})", *(scores.get(each, "") for each in policies)]) + " |")
    head, _, rest = index.partition("\n| environment | no-op |")
    after = rest.partition("\n\n")[2]
    return head + "\n" + "\n".join(lines) + "\n" + (f"\n{after}" if after else "")


if __name__ == "__main__":
    pages = sorted(path for path in PAGES.glob("*.md") if path.name != "README.md")  # which is their list
    for path in [PAGES / f"{name}.md" for name in sys.argv[1:]] or pages:
        path.write_text(render(path.read_text(encoding="utf-8"))[0], encoding="utf-8")
    index = PAGES / "README.md"
    index.write_text(overview(index.read_text(encoding="utf-8")), encoding="utf-8")
