"""The CPU recipes: how many of the questions of their evaluation were asked before it, as their READMEs tell."""

from importlib import resources
from pathlib import Path

import pytest

from latih.envs.roles import RolesEnv
from latih.envs.spaces import messages_of
from latih.rollout import GroupSpec, plan
from latih.train.config import resolve

RECIPES = Path(str(resources.files("latih"))) / "recipes"
SEEN = {
    "arithmetic": 18,
    "arithmetic_tool": 0,
    "codewords": 0,
    "gsm8k": 1,
    "mail_search": 0,
    "reasoning_gym": 12,
    "temporal_clue": 0,
}
"""Of the held-out questions. Those of `code` are of 24 formulas, and tasks of `repo_repair` are apart by themselves;
games begin alike, and differ by what comes."""


def asked(env: object, specs: list[GroupSpec]) -> list[str]:
    """The first prompts of a phase; in an env with several roles of the one that begins."""
    prompts = []
    for spec in specs:
        first = env.reset(seed=spec.seed)  # type: ignore[attr-defined]
        shown = env.observe(env.agent_selection) if isinstance(env, RolesEnv) else messages_of(first[0])
        prompts.append("\n".join(message.text for message in shown))
    return prompts


@pytest.mark.parametrize(("name", "seen"), SEEN.items())
def test_what_the_evaluation_asks_was_seldom_asked_before(name: str, seen: int) -> None:
    config = resolve(name)
    trainer, warm_start, evaluation = config.trainer, config.trainer.warm_start, config.evaluation
    assert warm_start is not None
    world = config.env.make_training()
    before = {
        *(
            prompt
            for step in range(1, trainer.steps + 1)
            for prompt in asked(world, plan(config.seed, "train", step, groups=config.rollout.groups))
        ),
        *(
            prompt
            for step in range(1, warm_start.steps + 1)
            for prompt in asked(world, plan(config.seed, "warm_start", step, groups=warm_start.games))
        ),
    }
    held_out = asked(config.env.make(), plan(evaluation.seed, "eval", 0, groups=evaluation.episodes))
    assert sum(prompt in before for prompt in held_out) == seen
    assert seen <= 0.1 * evaluation.episodes
    readme = " ".join((RECIPES / name / "README.md").read_text(encoding="utf-8").split())
    assert (f"{seen} of the {evaluation.episodes} " if seen else "that neither phase has seen") in readme
