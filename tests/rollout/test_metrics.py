"""Summaries, against hand-worked numbers."""

import pytest

from latih.core import ErrorRecord, Group, Sequence, StopReason, Trajectory, Turn
from latih.rollout import constant_reward, summarize
from tests.rollout.fakes import assistant, user


def trajectory(reward=0.0, *, tokens=(), error=None, stop=StopReason.TERMINATED, **metrics):
    turns = [
        Turn(new_ids=[1], ids=[2] * n, logprobs=[-1.0] * n, policy_version=0, stop_reason=StopReason.STOP)
        for n in tokens
    ]
    return Trajectory(
        env="e",
        seed=0,
        reward=reward,
        metrics=metrics,
        stop_reason=stop,
        sequences=[Sequence(turns=turns, messages=[user("a"), assistant("I say so")])] if turns else [],
        error=ErrorRecord(kind=error, message="m", hung=error == "env") if error else None,
    )


def test_a_batch_by_hand():
    mixed = Group(id="a", trajectories=[trajectory(1.0, tokens=[3, 2], win=1.0), trajectory(0.0, tokens=[1], win=0.0)])
    broken = Group(
        id="b",
        trajectories=[
            trajectory(0.5, tokens=[4], stop=StopReason.CONTEXT, win=1.0),
            trajectory(9.0, error="env", win=5.0),
            trajectory(9.0, error="sampler"),
        ],
    )
    found = summarize([mixed, broken])
    assert found == pytest.approx(
        {
            "reward/mean": 0.5,
            "reward/std": (0.5 / 3) ** 0.5,
            "reward/min": 0.0,
            "reward/max": 1.0,
            "env/win": 2 / 3,
            "rollout/contrast": 0.5,
            "rollout/truncated": 1 / 3,
            "rollout/turns": 4 / 3,
            "rollout/tokens": 10 / 3,
            "rollout/sequences": 1.0,
            "errors/fraction": 2 / 5,
            "errors/hung": 1.0,
            "errors/env": 1.0,
            "errors/sampler": 1.0,
        }
    )


def test_metrics_keep_the_order_of_the_env():
    group = Group(id="a", trajectories=[trajectory(win=1.0, draw=0.0), trajectory(win=0.0, bad=1.0, draw=0.0)])
    assert [name for name in summarize([group]) if name.startswith("env/")] == ["env/win", "env/draw", "env/bad"]


def test_nothing_valid_invents_no_reward():
    assert summarize([Group(id="a", trajectories=[trajectory(error="env")])]) == {
        "errors/fraction": 1.0,
        "errors/hung": 1.0,
        "errors/env": 1.0,
        "rollout/contrast": 0.0,
    }
    assert summarize([]) == {"errors/fraction": 0.0, "errors/hung": 0.0}


def test_a_constant_reward_is_warned_of_with_what_the_policy_said():
    same = Group(id="a", trajectories=[trajectory(-1.0, tokens=[1]), trajectory(-1.0, tokens=[1])])
    assert constant_reward([same]) == (
        "all 2 rewards are -1: there is nothing to learn from. The policy said, for instance: 'I say so'"
    )
    assert constant_reward([same, Group(id="b", trajectories=[trajectory(1.0)])]) is None
    assert constant_reward([]) is None
