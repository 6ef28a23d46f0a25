"""The screen: what a run in progress looks like on a terminal, and as plain lines anywhere else."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from latih.cli.columns import Cell, duration, step_cells

HEADER_EVERY = 20
"""Rows after which the table's header is shown again."""
PLAIN_EVERY = 15.0
"""Seconds between two plain lines about the same part."""
PIPED = 1000
"""Columns of what is no terminal."""


def stdout() -> Console:
    """Standard output, where a terminal folds a table to its width; a file or a pipe gets whole lines."""
    made = Console(highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPED
    return made


def printable(text: str) -> str:
    r"""Text that a terminal only shows: what a policy samples may hold escape sequences.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)


class Pace:
    """How long the rest of a part will take, at its mean speed so far."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic, elapsed: float = 0.0) -> None:
        """`elapsed`: seconds that it has been going on already."""
        self.total = total
        self.done = 0
        self._clock = clock
        self._start = self._last = clock() - elapsed

    def advance(self, count: int) -> None:
        """So many more pieces are done."""
        self.done += count
        self._last = self._clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    @property
    def left(self) -> float | None:
        """Seconds to the end; None before the first piece is done. It counts down between pieces."""
        if self.done <= 0 or self.total <= 0:
            return None
        expected = (self._last - self._start) / self.done * max(0, self.total - self.done)
        return max(0.0, expected - (self._clock() - self._last))

    def __str__(self) -> str:
        left = "" if self.left is None else f", {duration(self.left)} left"
        return f"{self.done}/{self.total or '?'} in {duration(self.elapsed)}{left}"


class _LeftColumn(ProgressColumn):
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left = task.fields["pace"].left
        return Text("" if left is None else f"{duration(left)} left", style="cyan")


class _ElapsedColumn(ProgressColumn):
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        return Text(duration(task.fields["pace"].elapsed), style="dim")


class Screen:
    """A watcher of a run (`latih.tracking.Events`). Use it as a context, so that the terminal is left clean."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or stdout()
        self._rows = 0
        self._labels: list[str] = []
        self._widths: list[int] = []
        self._whole: tuple[TaskID, Pace] | None = None
        self._bars: Progress | None = None
        if self.console.is_terminal:
            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=32),
                MofNCompleteColumn(),
                _ElapsedColumn(),
                _LeftColumn(),
                console=self.console,
                transient=True,
            )

    def __enter__(self) -> "Screen":
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def note(self, text: str) -> None:
        """Print a line."""
        self.console.print(Text(printable(text)), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a line that stands out."""
        self.console.print(Text.assemble(("warning: ", "bold yellow"), printable(text)), soft_wrap=True)

    @contextlib.contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar while the block runs; on a plain stream a line now and then, and one at the end.

        Of a part whose length nobody knows there is nothing to tell now and then: a plain stream has its name first.
        """
        pace = Pace(total)
        if self._bars is None:
            if not total:
                self.note(f"{what} …")
            yield self._plain(what, pace)
            if pace.elapsed >= PLAIN_EVERY:
                self.note(f"{what}: {pace.done} done in {duration(pace.elapsed)}")
            return
        bars = self._bars
        bar: TaskID = bars.add_task(what, total=total or None, pace=pace)

        def advance(count: int) -> None:
            pace.advance(count)
            bars.advance(bar, count)

        try:
            yield advance
        finally:
            bars.remove_task(bar)

    def step(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        """A row of the table of steps; where the table does not fit, its cells with their labels."""
        self._count(step, steps, metrics.get("seconds/step", 0.0))
        cells = list(step_cells(step, steps, metrics))
        widths = [max(len(label), len(text), 5) for label, text in cells]
        if self._labels != [label for label, _ in cells]:
            self._labels, self._widths, self._rows = [label for label, _ in cells], widths, 0
        self._widths = [max(pair) for pair in zip(self._widths, widths, strict=True)]
        if sum(self._widths) + 2 * len(cells) > self.console.width and self.console.is_terminal:
            self._labelled(cells)
            return
        if self._rows % HEADER_EVERY == 0:
            header = "  ".join(label.rjust(width) for label, width in zip(self._labels, self._widths, strict=True))
            self.console.print(Text(header, style="bold dim"), soft_wrap=True)
        self._rows += 1
        row = Text("  ").join(
            Text(text.rjust(width), style=_style(label))
            for (label, text), width in zip(cells, self._widths, strict=True)
        )
        self.console.print(row, soft_wrap=True)

    def _count(self, step: int, steps: int, seconds: float) -> None:
        """Move the bar of the whole training, which appears with the first step that is over."""
        if self._bars is None:
            return
        if self._whole is None:
            # A resumed run starts in the middle: only the steps made here tell how long one takes.
            pace = Pace(steps - step + 1, elapsed=seconds)
            self._whole = self._bars.add_task("training", total=steps, pace=pace), pace
        bar, pace = self._whole
        pace.advance(1)
        self._bars.update(bar, completed=step)
        if step >= steps:
            self._bars.remove_task(bar)
            self._whole = None

    def _labelled(self, cells: list[Cell]) -> None:
        line, used = Text(), 0
        for label, text in cells:
            width = len(label) + len(text) + 3
            if used + width > self.console.width and used:
                line.append("\n      ")
                used = 6
            line.append(f"{label} ", style="dim").append(f"{text}  ", style=_style(label))
            used += width
        self.console.print(line, soft_wrap=True)

    def _plain(self, what: str, pace: Pace) -> Callable[[int], None]:
        said = time.monotonic()

        def advance(count: int) -> None:
            nonlocal said
            pace.advance(count)
            if time.monotonic() - said >= PLAIN_EVERY and pace.done < pace.total:
                said = time.monotonic()
                self.note(f"{what}: {pace}")

        return advance


def _style(label: str) -> str:
    if label == "reward":
        return "bold"
    return {"step": "cyan", "win": "green", "invalid": "red"}.get(label, "")
