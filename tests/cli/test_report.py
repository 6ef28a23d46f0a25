import json
from pathlib import Path

from rich.console import Console

from latih.cli.plot import plot_run
from latih.cli.report import evaluations, heads, markdown, rows, show, table, write_report
from latih.core import Message, SamplingParams, StopReason, Trajectory
from latih.evaluation import EvalResult, estimate
from latih.harnesses import HarnessSettings
from latih.runs import Run, RunSettings


def result(label: str, wins: int, moves: float, time: float) -> EvalResult:
    episodes = [
        Trajectory(env="e", seed=i, reward=float(i < wins), stop_reason=StopReason.TERMINATED,
                   metrics={"win": float(i < wins), "moves": moves})
        for i in range(10)
    ]  # fmt: skip
    found = estimate(episodes) | {"example": [Message(role="assistant", content="evil \x1b[2J")]}
    return EvalResult(label=label, env="e", seed=0, sampling=SamplingParams(), max_turns=3, time=time,
                      harness=HarnessSettings(), **found)  # fmt: skip


RESULTS = [result("before", 0, 0.0, 1.0), result("after RL", 5, 2.5, 2.0)]


def make_run(folder: Path) -> Run:
    run = Run.create(RunSettings(folder=str(folder), name="r"), {})
    lines = [{"step": s, "reward": 0.1 * s, "env/win": 0.1 * s, "env/moves": 2.0} for s in (1, 2, 3)]
    run.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for i, each in enumerate(reversed(RESULTS)):
        each.save(run.folder / "evaluations" / f"e{i}")
    (run.folder / "evaluations" / "damaged").mkdir()
    (run.folder / "evaluations" / "damaged" / "eval.json").write_text("{")
    return run


def test_rows_by_hand() -> None:
    table = {row[0]: row[1:] for row in rows(RESULTS)}
    assert table["win"] == ["0.0% [0.0, 27.8]", "50.0% [23.7, 76.3]"]
    assert table["reward"][1] == "0.50 [0.12, 0.88]"
    assert table["moves"] == ["0.00 [0.00, 0.28]", "2.50 [2.50, 2.50]"]  # a number in one is a number in all
    assert "errors (not counted above)" not in table
    assert "harness" not in table


def test_what_makes_evaluations_incomparable_is_shown() -> None:
    other = RESULTS[1].model_copy(
        update={"harness": HarnessSettings(args={"window": 2}), "sampling": SamplingParams(temperature=0.0)}
    )
    table = list(rows([RESULTS[0], other]))
    assert table[:3] == [
        ["harness", "chat_loop", "chat_loop(window=2)"],
        ["sampling", "temperature 1, max_tokens 128", "temperature 0, max_tokens 128"],
        ["reward", "0.00 [0.00, 0.00]", "0.50 [0.12, 0.88]"],
    ]


def test_the_report_is_written_from_the_folder_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    warned: list[str] = []
    assert [each.label for each in write_report(run, warned.append)] == ["before", "after RL"]
    text = (run.folder / "report.md").read_text()
    assert "`e`, 10 held-out episodes (seed 0), chat_loop, temperature 1, max_tokens 128, at most 3 turns." in text
    assert "| win | 0.0% [0.0, 27.8] | 50.0% [23.7, 76.3] |" in text
    assert "![Reward and rates of every training step](reward.png)" in text
    assert "\x1b" not in text
    assert (run.folder / "reward.png").read_bytes().startswith(b"\x89PNG")


def test_a_damaged_evaluation_is_told_of(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    warned: list[str] = []
    write_report(run, warned.append)
    [line] = warned
    assert line.startswith(f"an evaluation is left out of the report: cannot read {run.folder}/evaluations/damaged/")
    assert f"\n**Warning:** {line}\n" in (run.folder / "report.md").read_text()
    found, damaged = evaluations(run)
    assert [each.label for each in found] == ["before", "after RL"]
    assert damaged == warned


def test_nothing_to_draw_or_tell(tmp_path: Path) -> None:
    run = Run.create(RunSettings(folder=str(tmp_path), name="r"), {})
    assert plot_run([], [], tmp_path / "p.png") is None
    assert markdown(run, [], None).startswith("# r\n")


def test_a_run_that_was_lengthened_has_its_ends_told_apart() -> None:
    again = RESULTS[1].model_copy(update={"policy_version": 7})
    assert heads([*RESULTS, again]) == ["before", "after RL, version 0", "after RL, version 7"]


def test_the_screen_gets_table_games_and_folder(tmp_path: Path) -> None:
    console = Console(record=True, width=100, file=(tmp_path / "out").open("w"))
    show(RESULTS, console, tmp_path)
    shown = console.export_text()
    assert r"evil \x1b[2J" in shown
    assert "50.0% [23.7, 76.3]" in shown
    assert f"run folder: {tmp_path}" in shown


def test_every_report_says_that_programs_were_not_isolated(tmp_path: Path) -> None:
    said = "LATIH_SANDBOX=unsafe: code that an environment runs is not isolated"
    results = [RESULTS[0], RESULTS[1].model_copy(update={"unisolated": said})]
    assert [row for row in rows(results) if row[0] == "sandbox"] == [["sandbox", "isolated", said]]
    assert str(table(results).title).splitlines()[2:] == [said]
    run = Run.create(RunSettings(folder=str(tmp_path), name="r"), {})
    results[1].save(run.folder / "evaluations" / "after")
    write_report(run, print)
    assert f"\n**Warning:** {said}\n" in (run.folder / "report.md").read_text()
    assert "Warning" not in markdown(run, RESULTS, None)
