"""The report of a run: before and after on held-out episodes, an example game of each, and the curve."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from latih.cli.plot import plot_run
from latih.cli.screen import printable
from latih.core import LatihError, Message
from latih.evaluation import RESULT, Estimate, EvalResult
from latih.runs import Run

COLOURS = {"system": "dim", "user": "", "assistant": "bold cyan", "tool": "magenta"}


def write_report(run: Run, warn: Callable[[str], None]) -> list[EvalResult]:
    """Write report.md and reward.png of a run; its evaluations, the earliest first.

    `warn` hears of those that cannot be read, which the report names too. Raises LatihError.
    """
    results, damaged = evaluations(run)
    for each in damaged:
        warn(each)
    picture = plot_run(run.metrics(), results, run.folder / "reward.png", title=run.name)
    run.write("report.md", markdown(run, results, picture, damaged))
    return results


def evaluations(run: Run) -> tuple[list[EvalResult], list[str]]:
    """The evaluations kept in a run's folder, the earliest first, and a line about each that cannot be read."""
    found, damaged = [], []
    for path in sorted((run.folder / "evaluations").glob(f"*/{RESULT}")):
        try:
            found.append(EvalResult.load(path.parent))
        except LatihError as exc:
            damaged.append(f"an evaluation is left out of the report: {exc}")
    return sorted(found, key=lambda result: result.time), damaged


def show(results: Sequence[EvalResult], console: Console, folder: Path) -> None:
    """Print the table, an example game of each evaluation, and where everything is."""
    if results:
        console.print(table(results))
        console.print(games(results))
    console.print(Text.assemble("run folder: ", (str(folder), "bold")), soft_wrap=True)


def table(results: Sequence[EvalResult]) -> Table:
    """One column for each evaluation, one row for each number, with 95 % intervals."""
    first = results[-1]
    made = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title="\n".join(
            [
                f"{first.env}: {first.episodes} held-out episodes, 95 % intervals",
                played(first),
                *cautions(results),
            ]
        ),
        title_justify="left",
    )
    made.add_column("", no_wrap=True)
    for head in heads(results):
        made.add_column(head, justify="right", no_wrap=True)
    for row in rows(results):
        made.add_row(*row)
    return made


def heads(results: Sequence[EvalResult]) -> list[str]:
    """What was measured, with the version of the policy where a run that was lengthened has it twice."""
    labels = [result.label for result in results]
    return [
        f"{result.label}, version {result.policy_version}" if labels.count(result.label) > 1 else result.label
        for result in results
    ]


def played(result: EvalResult) -> str:
    """By whom the episodes were played, and how the policy was sampled."""
    return f"{result.conditions['harness']}, {result.conditions['sampling']}"


def cautions(results: Sequence[EvalResult]) -> list[str]:
    """What to know before the numbers are believed."""
    return list(dict.fromkeys(result.unisolated for result in results if result.unisolated))


def rows(results: Sequence[EvalResult]) -> Iterator[list[str]]:
    """The rows of the table: a name, then a text for each evaluation.

    A condition under which not all were made comes first, since then the numbers are not of one kind.
    """
    made = [result.conditions for result in results]
    for name in made[0] if made else ():
        if len({each[name] for each in made}) > 1:
            yield [name, *(each[name] for each in made)]
    yield ["reward", *(_number(result.reward) for result in results)]
    # A metric that is 0 or 1 in one evaluation only by chance is shown in the form that all of them can take.
    means = {name for result in results for name in result.means}
    for name in dict.fromkeys(name for result in results for name in result.rates if name not in means):
        yield [name, *(_percent(result.rates.get(name)) for result in results)]
    for name in dict.fromkeys(name for result in results for name in [*result.means, *result.rates] if name in means):
        yield [name, *(_number(result.means.get(name) or result.rates.get(name)) for result in results)]
    if any(result.errors for result in results):
        yield ["errors (not counted above)", *(str(sum(result.errors.values())) for result in results)]


def games(results: Sequence[EvalResult]) -> RenderableType:
    """The first episode of each evaluation: the same held-out seed, not picked."""
    return Group(
        *(
            Panel(_transcript(result.example), title=_title(result), title_align="left", width=60)
            for result in results
            if result.example
        )
    )


def markdown(run: Run, results: Sequence[EvalResult], picture: Path | None, damaged: Sequence[str] = ()) -> str:
    """The report as a file; `damaged` are the lines about evaluations that it lacks."""
    lines = [f"# {run.name}", ""]
    if results:
        last = results[-1]
        lines += [
            f"`{last.conditions['env']}`, {last.episodes} held-out episodes (seed {last.seed}), {played(last)}, "
            f"at most {last.max_turns} turns. Brackets hold 95 % intervals: Wilson's for rates, Student's t for means.",
            "",
            "| | " + " | ".join(heads(results)) + " |",
            "|---" * (len(results) + 1) + "|",
            *("| " + " | ".join(row) + " |" for row in rows(results)),
            "",
        ]
    lines += [line for each in [*cautions(results), *damaged] for line in (f"**Warning:** {each}", "")]
    if picture is not None:
        lines += [f"![Reward and rates of every training step]({picture.name})", ""]
    for result in results:
        if result.example:
            lines += [f"## {_title(result)}", "", "~~~~", _transcript(result.example).plain, "~~~~", ""]
    lines += ["The settings are in `config.yaml`, the numbers of every step in `metrics.jsonl`.", ""]
    return "\n".join(lines)


def _title(result: EvalResult) -> str:
    return f"an episode, {result.label}: reward {result.example_reward:g}"


def _transcript(messages: Sequence[Message]) -> Text:
    text = Text()
    for message in messages:
        if text:
            text.append("\n")
        calls = "".join(f" {call.name}({call.arguments})" for call in message.tool_calls)
        body = printable((message.text + calls).strip()) or "(nothing)"
        text.append(f"{message.role}: ", style="dim").append(body, style=COLOURS[message.role])
    return text


def _number(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _percent(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.1%} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
