"""Rollouts: groups, bounds, and the containment of each kind of failure."""

import asyncio
import os
import threading
import time

import gymnasium
import pytest
from gymnasium.wrappers import TransformReward

from latih.core import (
    ContextFull,
    LatihError,
    Message,
    ModelError,
    SamplerError,
    SamplingParams,
    StopReason,
    Task,
    ToolError,
    ToolSchema,
    derive_seed,
)
from latih.envs import MessageSpace
from latih.rollout import TooManyErrors, env_seed, plan
from tests.rollout.fakes import CountEnv, ScriptedSampler
from tests.rollout.playing import Raising, fresh, one, rollouts
from tests.soak import forms


def test_a_group_shares_task_and_seed_and_is_the_whole_record():
    env, tasks = fresh(), [Task(id="x"), Task(id="y")]
    sampler = ScriptedSampler(lambda call, prompt: "go")
    seen = []
    specs = plan(3, "train", 5, groups=2, size=3, tasks=tasks)
    groups = rollouts(env, sampler, sampling=SamplingParams(max_tokens=9)).run(specs, on_done=seen.extend)
    assert [group.id for group in groups] == ["train/5/0", "train/5/1"]
    everyone = [each for group in groups for each in group.trajectories]
    assert [each.index for each in everyone] == [0, 1, 2, 3, 4, 5]
    assert sorted(each.index for each in seen) == [0, 1, 2, 3, 4, 5]
    for i, group in enumerate(groups):
        assert {each.seed for each in group.trajectories} == {env_seed(3, "train", 5, i)}
        assert {each.task.id for each in group.trajectories} == {specs[i].task.id}
    assert {made.options["task"].id for made in env.made} == {"x", "y"}
    first = everyone[0]
    assert (first.env, first.group, first.reward, first.metrics) == ("test/Env-v0", "train/5/0", 2.0, {"steps": 2.0})
    assert (first.stop_reason, first.error) == (StopReason.TERMINATED, None)
    assert [turn.reward for turn in first.turns] == [1.0, 1.0]
    assert [turn.completion_id for turn in first.turns] == ["train/5/0/0#0", "train/5/0/0#1"]
    assert all(each.closed == 1 for each in env.made)
    assert {action for each in env.made for action in each.actions} == {"go"}
    # Sampling seeds: one per trajectory and call, from the run's seed and the step.
    expected = {
        derive_seed(derive_seed(derive_seed(3, "train", 5, "sampling"), i), call) for i in range(6) for call in (0, 1)
    }
    assert {call.params.seed for call in sampler.log} == expected
    assert {call.params.max_tokens for call in sampler.log} == {9}


def test_envs_with_tools_get_the_message():
    env = fresh(tools=[ToolSchema(name="add")])
    sampler = ScriptedSampler(lambda call, prompt: 'CALL add {"a": 1}')
    trajectory = one(rollouts(env, sampler))
    (action, _) = env.made[0].actions
    assert isinstance(action, Message)
    assert action.tool_calls[0].arguments == {"a": 1}
    assert trajectory.error is None


def test_turns_and_the_env_itself_cut_an_episode():
    trajectory = one(rollouts(lambda: CountEnv(length=99), max_turns=3))
    assert (trajectory.stop_reason, trajectory.reward, trajectory.truncated) == (StopReason.TURNS, 3.0, True)

    class Cutting(CountEnv):
        def step(self, action):
            return "enough", 0.25, False, True, {}

    trajectory = one(rollouts(Cutting))
    assert (trajectory.stop_reason, trajectory.reward, trajectory.truncated) == (StopReason.TRUNCATED, 0.25, True)


def test_a_reply_cut_by_max_tokens_goes_to_the_env():
    env = fresh()
    sampler = ScriptedSampler(lambda call, prompt: "a long reply")
    trajectory = one(rollouts(env, sampler, sampling=SamplingParams(max_tokens=3)))
    assert env.made[0].actions == ["a l", "a l"]
    assert {turn.stop_reason for turn in trajectory.turns} == {StopReason.LENGTH}
    assert trajectory.error is None


# --- failures ---------------------------------------------------------------------------------------------------------


class Nonsense(CountEnv):
    def step(self, action):
        return "only an observation"


class Hanging(CountEnv):
    go = threading.Event()

    def step(self, action):
        self.go.wait(30)
        return super().step(action)


class Verbose(CountEnv):
    def step(self, action):
        return "x" * 500, *super().step(action)[1:]


def test_an_env_that_raises_is_contained_and_closed():
    env = fresh(Raising)
    trajectory = one(rollouts(env))
    error = trajectory.error
    assert (error.kind, error.hung, trajectory.stop_reason) == ("env", False, StopReason.ERROR)
    assert error.message == "step() of test/Env-v0 raised ZeroDivisionError: deep inside"
    assert 'raise ZeroDivisionError("deep inside")' in error.traceback
    assert env.made[0].closed == 1


def test_an_env_that_returns_nonsense_is_contained_and_closed():
    env = fresh(Nonsense)
    trajectory = one(rollouts(env))
    assert trajectory.error.message.startswith("step() of test/Env-v0 returned str 'only an observation'; expected (")
    assert env.made[0].closed == 1


@forms("groups", 10, 2500)
def test_however_many_episodes_leave_nothing_behind(groups):
    """Every fifth raises."""

    class Moody(CountEnv):
        def step(self, action):
            if type(self).made.index(self) % 5 == 4:
                raise ZeroDivisionError("deep inside")
            return super().step(action)

    roll = rollouts(Moody, max_error_fraction=1.0)
    threads, descriptors = set(threading.enumerate()), len(os.listdir("/dev/fd"))
    played = roll.run(plan(0, "train", 1, groups=groups, size=4))
    episodes = [each for group in played for each in group.trajectories]
    assert [len(episodes), sum(each.error is not None for each in episodes)] == [groups * 4, groups * 4 // 5]
    assert all(env.closed == 1 for env in Moody.made)
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
    assert set(threading.enumerate()) <= threads
    assert len(os.listdir("/dev/fd")) <= descriptors


def test_an_env_that_hangs_is_abandoned_closed_counted_and_its_late_result_ignored():
    env = fresh(Hanging, go=threading.Event())
    roll = rollouts(env, step_timeout=0.1)
    start = time.monotonic()
    trajectory = one(roll)
    assert time.monotonic() - start < 10
    error = trajectory.error
    assert (error.kind, error.hung) == ("env", True)
    assert error.message == "step() of test/Env-v0 did not return within 0.1 s"
    assert "self.go.wait(30)" in error.traceback  # where it hangs
    assert env.made[0].closed == 1
    assert (roll.threads.abandoned, roll.threads.late) == (1, 0)
    env.go.set()
    for _ in range(100):
        if roll.threads.late:
            break
        time.sleep(0.02)
    assert roll.threads.late == 1
    assert one(rollouts(fresh())).error is None  # the next is not troubled


def test_a_context_that_overflows_ends_the_trajectory_truncated_with_its_reward():
    env = fresh(Verbose)
    sampler = ScriptedSampler(lambda call, prompt: "go", context_length=200)
    trajectory = one(rollouts(lambda: env(length=5), sampler))
    assert (trajectory.stop_reason, trajectory.truncated, trajectory.error) == (StopReason.CONTEXT, True, None)
    assert (trajectory.reward, len(list(trajectory.turns))) == (1.0, 1)
    assert env.made[0].closed == 1


class Scoring(CountEnv):
    """Pays half a point less where it was cut."""

    def truncate(self, reason):
        self.reasons = [*getattr(self, "reasons", []), reason]
        return -0.5, {"metrics": {f"cut_by_{reason}": 1}}


class Passing(gymnasium.Env):
    """The doubles are no gymnasium envs: this one is, and passes everything on."""

    observation_space = action_space = MessageSpace()

    def __init__(self, inner):
        self.inner, self.tools = inner, ()
        self.reset, self.step, self.close = inner.reset, inner.step, inner.close
        if hasattr(inner, "truncate"):
            self.truncate = inner.truncate


@pytest.mark.parametrize(
    "wrap", [lambda env: env, lambda env: TransformReward(Passing(env), lambda reward: 2 * reward)]
)
def test_the_env_scores_an_episode_that_turns_or_context_cut(wrap):
    per_step = wrap(CountEnv()).step("go")[1]
    env = fresh(Scoring)
    trajectory = one(rollouts(lambda: wrap(env(length=99)), max_turns=3))
    assert (trajectory.stop_reason, trajectory.reward) == (StopReason.TURNS, 3 * per_step - 0.5)
    assert trajectory.metrics == {"steps": 3.0, "cut_by_turns": 1.0}
    sampler = ScriptedSampler(lambda call, prompt: "go", context_length=80)
    trajectory = one(rollouts(lambda: wrap(env(length=99)), sampler))
    assert trajectory.stop_reason is StopReason.CONTEXT
    assert trajectory.reward == len(list(trajectory.turns)) * per_step - 0.5
    assert trajectory.metrics["cut_by_context"] == 1.0
    assert [(each.reasons, each.closed) for each in env.made] == [(["turns"], 1), (["context"], 1)]
    # whose end is its own is not asked, nor one that has nothing to say
    assert one(rollouts(lambda: wrap(env(length=2)))).reward == 2 * per_step
    assert not hasattr(env.made[2], "reasons")
    assert one(rollouts(lambda: wrap(CountEnv(length=99)), max_turns=3)).reward == 3 * per_step


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (lambda self, reason: 1 / 0, "truncate() of test/Env-v0 raised ZeroDivisionError"),
        (lambda self, reason: -1.0, "truncate() of test/Env-v0 returned float -1.0; expected (reward, info)"),
        (lambda self, reason: (float("nan"), {}), "truncate() of test/Env-v0 returned float nan as the reward"),
        (lambda self, reason: time.sleep(1.0), "truncate() of test/Env-v0 did not return within 0.1 s"),
    ],
)
def test_faults_in_truncate_are_contained(score, said):
    env = fresh(truncate=score)
    trajectory = one(rollouts(lambda: env(length=99), max_turns=1, step_timeout=0.1))
    assert trajectory.error.kind == "env"
    assert said in trajectory.error.message
    assert env.made[0].closed == 1


def test_a_first_prompt_that_is_too_long_is_dropped_and_counted_by_name():
    sampler = ScriptedSampler(lambda call, prompt: "go", context_length=10)
    trajectory = one(rollouts(fresh(), sampler))
    assert trajectory.error.kind == ContextFull.kind == "context"
    assert "leaves no room in a context of 10" in trajectory.error.message


@pytest.mark.parametrize("where", ["__init__", "reset", "close"])
def test_faults_in_every_other_call_of_the_env_are_contained(where):
    def fail(self, *args, **more):
        raise KeyError(where)

    trajectory = one(rollouts(fresh(**{where: fail})))
    what = "the constructor" if where == "__init__" else f"{where}()"
    assert trajectory.error.message == f"{what} of test/Env-v0 raised KeyError: '{where}'"


def test_an_env_that_names_the_boundary_itself_is_believed():
    def fail(self, action):
        raise ToolError("the calculator is on fire")

    assert one(rollouts(fresh(step=fail))).error.kind == "tool"


def test_faults_of_the_sampler_end_their_own_trajectory_only():
    sampler = ScriptedSampler(lambda call, prompt: OSError("gone") if call == 0 else "go")
    (group,) = rollouts(fresh(), sampler).run(plan(0, "train", 0, groups=1, size=4))
    assert [each.error.kind for each in group.trajectories if each.error] == [SamplerError.kind]
    assert len(group.valid) == 3


def test_a_hung_sampler_has_a_deadline():
    sampler = ScriptedSampler(lambda call, prompt: "go", delay=60)
    trajectory = one(rollouts(fresh(), sampler, model_timeout=0.05))
    assert (trajectory.error.kind, trajectory.error.hung) == ("sampler", True)


def test_above_the_bound_the_run_stops_with_the_first_traceback_and_everything_closed():
    env = fresh(Raising)
    with pytest.raises(TooManyErrors) as caught:
        rollouts(env, max_error_fraction=0.25, max_envs=2).run(plan(0, "train", 0, groups=2, size=4))
    text = str(caught.value)
    assert text.startswith(
        "3 of 8 episodes failed (3 env), more than rollout.max_error_fraction=0.25 allows; the first, train/0/0 "
    )
    assert 'raise ZeroDivisionError("deep inside")' in text
    assert isinstance(caught.value, LatihError)
    assert len(env.made) <= 4  # it did not play on
    assert all(each.closed == 1 for each in env.made)


def test_at_the_bound_the_group_goes_on_with_the_rest():
    sampler = ScriptedSampler(lambda call, prompt: OSError("gone") if call == 0 else "go")
    (group,) = rollouts(fresh(), sampler, max_error_fraction=0.25).run(plan(0, "train", 0, groups=1, size=4))
    assert (len(group.trajectories), len(group.valid)) == (4, 3)


def test_what_the_user_can_mend_is_told_in_one_line():
    env = fresh()
    sampler = ScriptedSampler(lambda call, prompt: ModelError("the weights are of another model"))
    with pytest.raises(TooManyErrors, match="another model") as caught:
        rollouts(env, sampler, max_error_fraction=0.0).run(plan(0, "train", 0, groups=1, size=4))
    assert "\n" not in str(caught.value)
    assert all(each.closed == 1 for each in env.made)


async def test_a_cancellation_during_close_waits_until_the_env_is_closed():
    closing = threading.Event()

    def close(self):
        closing.set()
        time.sleep(0.2)
        CountEnv.close(self)

    env = fresh(close=close)
    task = asyncio.create_task(rollouts(env).play(plan(0, "train", 0, groups=1, size=1)))
    assert await asyncio.to_thread(closing.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [each.closed for each in env.made] == [1]


async def test_cancellation_closes_every_env_soon():
    env = fresh(Hanging, go=threading.Event())
    roll = rollouts(env, step_timeout=60)
    task = asyncio.create_task(roll.play(plan(0, "train", 0, groups=1, size=3)))
    while len(env.made) < 3:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    task.cancel()
    start = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start < 8
    assert all(each.closed == 1 for each in env.made)
    env.go.set()


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_live_envs_and_live_model_calls_are_bounded():
    live, most, lock = 0, 0, threading.Lock()

    class Counted(CountEnv):
        def reset(self, **more):
            nonlocal live, most
            with lock:
                live += 1
                most = max(most, live)
            return super().reset(**more)

        def close(self):
            nonlocal live
            with lock:
                live -= 1

    sampler = ScriptedSampler(lambda call, prompt: "go", delay=0.002)
    roll = rollouts(Counted, sampler, max_envs=4, max_model_calls=2)
    roll.run(plan(0, "train", 0, groups=3, size=4))
    assert most == 4
    assert sampler.most == 2
    assert live == 0


def test_nothing_to_play_is_fine():
    assert rollouts(fresh()).run([]) == []
