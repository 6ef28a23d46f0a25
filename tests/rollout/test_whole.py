"""The whole way with nothing faked: real envs, the real renderer and the embedded engine on a tiny random model."""

import pytest

from latih.core import StopReason
from latih.envs import make
from latih.harnesses import ChatLoop
from latih.inference.engine import Engine
from latih.inference.settings import EngineSettings
from latih.models.chat import Renderer
from latih.models.policy import Policy
from latih.rollout import Rollouts, RolloutSettings, plan, summarize
from tests.rollout.fakes import CountEnv
from tests.tiny import tiny_model

SETTINGS = {"max_turns": 3, "max_error_fraction": 0.0, "sampling": {"max_tokens": 6, "temperature": 1.0}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("tiny"), context=2048)


class Spy:
    """Passes calls on, and keeps what the sampler saw and said."""

    def __init__(self, sampler):
        self.sampler, self.log = sampler, []
        self.context_length = sampler.context_length
        self.policy_version = sampler.policy_version
        self.forget = sampler.forget

    async def sample(self, prompt_ids, params):
        sample = await self.sampler.sample(prompt_ids, params)
        self.log.append((list(prompt_ids), sample.ids))
        return sample


ENVS = {
    "tic_tac_toe": lambda: make("tic_tac_toe"),
    "arithmetic_tool": lambda: make("arithmetic_tool"),
    "count": lambda: CountEnv(length=5),  # a random model never gets past the first turn of the others
}


def played(folder, env, harness, context_length=None, **more):
    renderer = Renderer.from_folder(folder)
    policy = Policy.load(folder, train=False, dtype="float32", device="cpu")
    settings = RolloutSettings.model_validate(SETTINGS | more)
    with Engine(
        policy, renderer.tokenizer.decode, EngineSettings(kv_cache_gb=0.05, context_length=context_length)
    ) as engine:
        spy = Spy(engine)
        rollouts = Rollouts(settings, ENVS[env], harness, renderer, spy, env=env, deterministic=True)
        return rollouts.run(plan(0, "train", 0, groups=3, size=4)), spy.log


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("window", [None, 0])
def test_every_prompt_is_exact_and_the_same_seed_gives_the_same_run(folder, env, window):
    groups, log = played(folder, env, ChatLoop(window))
    assert summarize(groups)["errors/fraction"] == 0.0
    sequences = [seq for group in groups for each in group.trajectories for seq in each.sequences]
    seen = [(seq.prompt_ids(i), turn.ids) for seq in sequences for i, turn in enumerate(seq.turns)]
    assert sorted(seen) == sorted(log)
    again, _ = played(folder, env, ChatLoop(window), max_envs=5)
    once_more, _ = played(folder, env, ChatLoop(window), max_envs=5)
    assert [g.model_dump() for g in again] == [g.model_dump() for g in once_more]


def test_what_was_played_before_makes_no_difference_when_deterministic(folder):
    renderer = Renderer.from_folder(folder)
    policy = Policy.load(folder, train=False, dtype="bfloat16", device="cpu")
    settings = RolloutSettings.model_validate(SETTINGS)
    runs = []
    for first in (plan(0, "eval", 0, groups=5, size=3), []):
        with Engine(policy, renderer.tokenizer.decode, EngineSettings(kv_cache_gb=0.05)) as engine:
            rollouts = Rollouts(settings, ENVS["count"], ChatLoop(), renderer, engine, deterministic=True)
            rollouts.run(first)
            before = engine.stats()["reused_tokens"]
            groups = rollouts.run(plan(0, "train", 1, groups=3, size=4))
            runs.append(([group.model_dump() for group in groups], engine.stats()["reused_tokens"] - before))
    assert runs[0] == runs[1]


def test_a_full_context_truncates(folder):
    sampling = {"max_tokens": 200}
    groups, log = played(folder, "count", ChatLoop(), context_length=256, max_turns=50, sampling=sampling)
    everyone = [each for group in groups for each in group.trajectories]
    assert all(each.error is None for each in everyone)
    assert any(each.stop_reason is StopReason.CONTEXT for each in everyone)
    assert all(len(prompt) + len(ids) <= 256 for prompt, ids in log)
    cut = [
        len(seq.ids) for each in everyone for seq in each.sequences if seq.turns[-1].stop_reason is StopReason.CONTEXT
    ]
    assert cut
    assert set(cut) == {256}
