"""`latih train --dry-run`: everything that can be known before training, and nothing trained."""

from collections.abc import Sequence

import yaml
from rich.console import Console
from rich.text import Text

from latih.cli.machine import describe
from latih.cli.preflight import preflight
from latih.cli.screen import Screen, stdout
from latih.cli.settings import resumed_config, runs_folder
from latih.runs import Run
from latih.train.config import resolve
from latih.train.loop import check_resume


def dry_run(target: str | None, overrides: Sequence[str], *, resume: str | None, long: bool) -> int:
    """Print the resolved config, the machine, and the first rendered prompt. Raises LatihError."""
    if resume is None:
        config = resolve(target or "", overrides, long=long)
    else:
        run = Run.open(resume or None, runs_folder(overrides))
        config = resumed_config(run, overrides)
        check_resume(config, run)
    with Screen() as screen:
        found = preflight(config, screen)
    console = stdout()
    _heading(console, "config")
    _text(console, yaml.safe_dump(config.as_dict(), sort_keys=False, allow_unicode=True).rstrip())
    _heading(console, "machine")
    for name, value in describe():
        _text(console, f"{name}: {value}")
    _heading(console, "model")
    _text(console, f"{found.model}\n{found.computes}, context of {found.context_length} tokens")
    _heading(console, f"first prompt ({found.prompt_tokens} tokens)")
    _text(console, found.prompt)
    _text(console, "\ndry run: nothing was trained")
    return 0


def _heading(console: Console, name: str) -> None:
    console.print(Text(f"\n{name}", style="bold cyan"))


def _text(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)
