"""`latih train`: check, train, report."""

import contextlib
from collections.abc import Sequence

from latih.cli.preflight import preflight
from latih.cli.report import show, write_report
from latih.cli.screen import Screen
from latih.cli.settings import resumed_config, runs_folder
from latih.models.memory import keep_pages
from latih.rollout import TaskSets
from latih.runs import Run
from latih.train.config import Config, resolve
from latih.train.loop import check_resume, train


def train_command(target: str | None, overrides: Sequence[str], *, resume: str | None, long: bool) -> int:
    """Train, with everything on screen; `resume` names a run, or is empty for the latest. Raises LatihError."""
    keep_pages()
    with Screen() as screen, contextlib.ExitStack() as stack:
        if resume is None:
            config = resolve(target or "", overrides, long=long)
            tasks = _checked(config, screen)
            run = stack.enter_context(Run.create(config.run, config.as_dict(), target or "run"))
        else:
            run = stack.enter_context(Run.open(resume or None, runs_folder(overrides), write=True))
            config = resumed_config(run, overrides)
            check_resume(config, run)
            tasks = _checked(config, screen)
            run.save_config(config.as_dict())
        screen.note(f"run folder: {run.folder}")
        try:
            train(config, run, screen, resume=resume is not None, tasks=tasks)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_interrupted(run)) from None
        results = write_report(run, screen.warn)
    show(results, screen.console, run.folder)
    return 0


def resume_command(run: Run) -> str:
    """The command that goes on with a run."""
    folder = "" if str(run.folder.parent) == "runs" else f" run.folder={run.folder.parent}"
    return f"latih train --resume {run.name}{folder}"


def _interrupted(run: Run) -> str:
    """How to go on, and where that will be: what came after the last checkpoint has to be made again."""
    saved = run.checkpoints().steps()
    made = max((int(row["step"]) for row in run.metrics()), default=0)
    if not saved:
        return f"interrupted before anything was saved; begin again with `{resume_command(run)}`"
    behind = f" behind step {saved[-1]}, the last that was saved," if made > saved[-1] else ""
    return f"interrupted; go on{behind} with `{resume_command(run)}`"


def _checked(config: Config, screen: Screen) -> TaskSets:
    """Check everything, say what will train, and give back the data that was read."""
    found = preflight(config, screen)
    lora = config.trainer.policy.lora
    trains = f"LoRA of rank {lora.rank}" if lora else "all weights"
    screen.note(f"model: {found.model}, {found.computes}, training {trains}")
    return found.tasks
