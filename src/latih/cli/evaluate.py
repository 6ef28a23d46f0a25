"""`latih eval`: the training's own numbers, from a run, a checkpoint or a model."""

import asyncio
import datetime
import secrets
from collections.abc import Sequence
from pathlib import Path

from latih.cli.report import show
from latih.cli.screen import Screen
from latih.cli.settings import eval_config, runs_folder, with_episodes
from latih.evaluation import Agent, AgentSettings, Source, evaluate, find_source, seated
from latih.models.memory import keep_pages
from latih.rollout import held_out
from latih.runs.run import default_name
from latih.tracking import named_progress


def evaluate_command(policy: str, env: str, overrides: Sequence[str], episodes: int | None) -> int:
    """Evaluate, print the table and keep every episode. Raises LatihError."""
    keep_pages()
    runs = runs_folder(overrides)
    source = find_source(policy, runs)
    config = eval_config(source, env, with_episodes(overrides, episodes))
    folder = _folder(source, env, runs)
    label = source.checkpoint.name if source.checkpoint else Path(source.model).name
    with Screen() as screen:
        # wrong dials and data are told before the model is loaded
        tasks = held_out(config.data, config.env, config.evaluation.seed)
        with named_progress(screen) as told:
            agent = Agent.load(source, AgentSettings.of_run(config.as_dict()), told=told)
        alone, opponent = agent.rollouts(config.env.make, config.env.id), config.evaluation.opponent
        with (
            agent,
            seated(alone, config.env, config.roles, opponent, config.rollout.model_timeout) as seatings,
            screen.progress(f"evaluating {label}", config.evaluation.count(tasks) * len(seatings)) as advance,
        ):
            result = asyncio.run(
                evaluate(
                    seatings,
                    config.evaluation,
                    label=label,
                    tasks=tasks,
                    data=config.data.eval or "",
                    folder=folder,
                    policy=agent.name,
                    env=config.env,
                    harness=config.harness,
                    on_done=lambda _: advance(1),
                )
            )
    show([result], screen.console, folder)
    return 0


def _folder(source: Source, env: str, runs: Path) -> Path:
    """Where an evaluation asked for by hand is kept: apart from those that the training made."""
    if source.run is None:
        return runs / f"eval-{default_name(Path(source.model).name)}"
    day = f"{datetime.date.today():%Y%m%d}-{secrets.token_hex(2)}"
    step = source.checkpoint.name if source.checkpoint else "base"
    return source.run / "evaluations" / "by-hand" / f"{Path(env).stem}-{step}-{day}"
