"""`latih baseline`: what doing nothing, aimless play, an expert or an endpoint scores."""

import asyncio
from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from latih.cli.screen import Screen
from latih.cli.settings import with_episodes
from latih.core import ChatModel, ConfigError, LatihError, Task
from latih.envs.registry import builtin_names
from latih.evaluation import BASELINES, URLS, EvalResult, baseline_seatings, evaluate
from latih.models.endpoint import EndpointModel
from latih.rollout import Rollouts, held_out
from latih.sandbox import unisolated
from latih.tracking import Events, Silent
from latih.train.config import Config, resolve

Results = Mapping[str, EvalResult | None]
"""By policy; None where the env lacks it."""
ABSENT = "absent"


def baseline_command(
    env: str | None, overrides: Sequence[str], episodes: int | None, policies: Sequence[str] | None, model: str
) -> int:
    """Measure and print the table of one environment, or of all that come with latih. Raises LatihError."""
    with Screen() as screen:
        if env is not None:
            config, results = measure(env, overrides, episodes, policies, model, screen)
            title = f"{config.env.id}: {config.evaluation.episodes} held-out episodes, 95 % intervals"
            made = _table(title, rows(results))
        else:
            made = _table("held-out episodes, 95 % intervals", _every(overrides, episodes, policies, model, screen))
    screen.console.print(made, crop=False)
    return 0


def measure(
    target: str,
    overrides: Sequence[str] = (),
    episodes: int | None = None,
    policies: Sequence[str] | None = None,
    model: str = "",
    events: Events | None = None,
) -> tuple[Config, Results]:
    """Play the policies on held-out episodes of an environment, as its recipe plays it. Raises LatihError."""
    config = _checked(target, overrides, episodes, policies, model)
    tasks = held_out(config.data, config.env, config.evaluation.seed)
    results = {}
    for policy in policies or BASELINES:
        result = _play(policy, config, tasks, model, events or Silent())
        results[policy if result is None else result.label] = result
    return config, results


def rows(results: Results) -> list[list[str]]:
    """A header, then a row for each policy: the reward with its interval, and the metrics."""
    found = [each for each in results.values() if each is not None]
    metrics = [name for each in found for name in [*each.rates, *each.means]]
    never = {"truncated"} if not any(each.rates["truncated"].value for each in found) else set()
    # The tokens of a baseline are whole messages, as many as turns.
    shown = [name for name in dict.fromkeys(metrics) if name not in {"tokens", "turns", *never}] + ["turns"]
    made = [["policy", "reward", *shown]]
    for policy, result in results.items():
        if result is None:
            made.append([policy, ABSENT, *["" for _ in shown]])
            continue
        numbers = result.rates | result.means
        text = [f"{numbers[name].value:.3f}" if name in numbers else "" for name in shown]
        made.append([policy, str(result.reward), *text])
    return made


def markdown(made: Sequence[Sequence[str]]) -> str:
    """The rows as the docs hold them."""
    lines = ["| " + " | ".join(row) + " |" for row in made]
    return "\n".join([lines[0], "|---" * len(made[0]) + "|", *lines[1:]])


def _checked(
    target: str, overrides: Sequence[str], episodes: int | None, policies: Sequence[str] | None, model: str
) -> Config:
    """The config, where all policies can play; nothing is played yet. Raises LatihError."""
    config = resolve(target, with_episodes(overrides, episodes))
    for policy in policies or ():
        if not policy.startswith(URLS):
            _seatings(policy, config)
        elif not model:
            raise ConfigError(f"say which model of {policy}: --model NAME")
    return config


def _seatings(policy: str | ChatModel, config: Config) -> list[Rollouts] | None:
    return baseline_seatings(policy, config.env, config.harness, config.rollout, config.evaluation.opponent)


def _play(policy: str, config: Config, tasks: Sequence[Task], model: str, events: Events) -> EvalResult | None:
    endpoint = None
    if policy.startswith(URLS):
        endpoint = EndpointModel(policy, model, timeout=config.rollout.model_timeout)
    seatings = _seatings(endpoint or policy, config)
    if seatings is None:
        return None
    label = model if endpoint else policy
    episodes = config.evaluation.count(tasks) * len(seatings)
    with events.progress(f"{config.env.id}: {label}", episodes) as advance:

        async def play() -> EvalResult:
            try:
                return await evaluate(
                    seatings,
                    config.evaluation,
                    label=label,
                    tasks=tasks,
                    data=config.data.eval or "",
                    policy=policy,
                    on_done=lambda _: advance(1),
                )
            finally:
                if endpoint is not None:
                    await endpoint.close()

        return asyncio.run(play())


def _every(
    overrides: Sequence[str], episodes: int | None, policies: Sequence[str] | None, model: str, screen: Screen
) -> list[list[str]]:
    made = [["environment", "policy", "reward", "metrics"]]
    faults = []
    for name in builtin_names():
        try:
            _checked(name, overrides, episodes, policies, model)
        except LatihError as exc:
            faults.append(exc)
    if len(faults) == len(builtin_names()):  # of what was asked, and of no environment: told once
        raise faults[0]
    for name in builtin_names():
        try:
            _, results = measure(name, overrides, episodes, policies, model, screen)
        except LatihError as exc:  # for instance an extra that is not installed, a sandbox or an sdist not to be had
            screen.warn(f"{name} is left out: {str(exc).splitlines()[0]}")  # a traceback may follow
            continue
        header, *body = rows(results)
        for policy, reward, *values in body:
            told = [f"{metric} {value}" for metric, value in zip(header[2:], values, strict=True) if value]
            made.append([name, policy, reward, ", ".join(told)])
    if len(made) == 1:
        raise LatihError("no environment could be measured: the warnings say why")
    return made


def _table(title: str, made: Sequence[Sequence[str]]) -> Table:
    title = "\n".join(filter(None, [title, unisolated()]))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for i, name in enumerate(made[0]):
        words = i == 0 or name in ("policy", "metrics")
        # On a narrow terminal intervals and words are folded; a number is never cut.
        whole = 0 if name in ("reward", "metrics") else max(len(row[i]) for row in made)
        table.add_column(name, justify="left" if words else "right", min_width=whole)
    for row in made[1:]:
        table.add_row(*row)
    return table
