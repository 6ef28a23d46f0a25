"""Short ways to play episodes over the doubles."""

from latih.harnesses import ChatLoop
from latih.rollout import Rollouts, RolloutSettings, plan
from tests.rollout.fakes import CharRenderer, CountEnv, ScriptedSampler


def rollouts(make_env, sampler=None, harness=None, deterministic=False, **settings) -> Rollouts:
    settings = {"step_timeout": 5.0, "model_timeout": 5.0, "max_error_fraction": 1.0} | settings
    sampler = sampler or ScriptedSampler(lambda call, prompt: "go")
    return Rollouts(
        RolloutSettings(**settings),
        make_env,
        harness or ChatLoop(),
        CharRenderer(),
        sampler,
        env="test/Env-v0",
        deterministic=deterministic,
    )


def one(roll: Rollouts, task=None):
    """The only trajectory of a group of one."""
    (group,) = roll.run(plan(0, "train", 1, groups=1, tasks=[task] if task else []))
    (trajectory,) = group.trajectories
    return trajectory


def fresh(base=CountEnv, **methods):
    """A subclass with a list of its own of the instances made."""
    return type("Fresh", (base,), methods)


class Raising(CountEnv):
    def step(self, action):
        raise ZeroDivisionError("deep inside")
