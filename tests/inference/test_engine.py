"""The embedded engine against transformers, and its promises about batching, seeds, memory and cancellation."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from latih.core.errors import ConfigError, SamplerError
from latih.core.sampling import Sample, SamplingParams, StopReason
from latih.inference.engine import Engine
from latih.inference.settings import EngineSettings
from latih.models.attention import PackedCausal
from latih.models.policy import Policy
from latih.models.projection import LoraSettings
from tests.tiny import byte_tokenizer, tiny_model

GREEDY = SamplingParams(temperature=0.0, max_tokens=24)


def decode(ids: list[int]) -> str:
    return byte_tokenizer().decode(ids)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"), context=1024)


@pytest.fixture(scope="module")
def policy(folder: Path) -> Policy:
    return Policy.load(folder, train=False, dtype="float32", device="cpu")


@pytest.fixture
def engine(policy: Policy) -> Iterator[Engine]:
    with Engine(policy, decode, EngineSettings(kv_cache_gb=0.05)) as engine:
        yield engine


def prompts(count: int, seed: int = 0, shared: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    prefix = torch.randint(256, (shared,), generator=generator).tolist()
    sizes = torch.randint(1, 40, (count,), generator=generator).tolist()
    return [prefix + torch.randint(256, (n,), generator=generator).tolist() for n in sizes]


async def sample_all(engine: Engine, many: list[list[int]], params: SamplingParams) -> list[Sample]:
    return list(await asyncio.gather(*(engine.sample(each, params) for each in many)))


def expected(folder: Path, prompt: list[int], tokens: int) -> list[int]:
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.tensor([prompt])
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=256,
    )
    return out[0, len(prompt) :].tolist()


async def test_greedy_equals_transformers_alone_and_batched(folder: Path, engine: Engine) -> None:
    many = prompts(12)
    batched = await sample_all(engine, many, GREEDY)
    for prompt, sample in zip(many, batched, strict=True):
        alone = await engine.sample(prompt, GREEDY)
        assert sample.ids == alone.ids == expected(folder, prompt, 24)
        assert sample.stop_reason is StopReason.LENGTH


async def test_requests_join_and_leave_at_any_step(folder: Path, engine: Engine) -> None:
    many = prompts(10, seed=4)

    async def late(i: int) -> Sample:
        await asyncio.sleep(0.003 * i)
        return await engine.sample(many[i], SamplingParams(temperature=0.0, max_tokens=3 + 4 * i))

    samples = await asyncio.gather(*(late(i) for i in range(10)))
    for i, sample in enumerate(samples):
        assert sample.ids == expected(folder, many[i], 3 + 4 * i)


async def test_a_group_computes_its_prompt_once(policy: Policy) -> None:
    with Engine(policy, decode, EngineSettings(kv_cache_gb=0.05)) as engine:
        prompt = prompts(1, shared=60)[0]
        samples = await sample_all(engine, [prompt] * 8, GREEDY)
        assert len({tuple(each.ids) for each in samples}) == 1
        assert engine.stats()["reused_tokens"] == 7 * (len(prompt) - 1)


async def test_the_cache_is_kept_across_turns(folder: Path, policy: Policy) -> None:
    with Engine(policy, decode, EngineSettings(kv_cache_gb=0.05)) as engine:
        conversation = prompts(1)[0]
        for turn in range(3):
            before = engine.stats()
            sample = await engine.sample(conversation, GREEDY)
            assert sample.ids == expected(folder, conversation, 24)
            if turn:
                # all but the last sampled token and the five new ones were there already
                assert engine.stats()["reused_tokens"] - before["reused_tokens"] == len(conversation) - 6
            conversation = conversation + sample.ids + [1, 2, 3, 4, 5]


async def test_rows_outgrow_the_cache_and_are_started_again(folder: Path, policy: Policy) -> None:
    settings = EngineSettings(kv_cache_gb=1100 * 256 / 2**30)  # 1,100 tokens of 256 bytes each
    with Engine(policy, decode, settings) as engine:
        many = [(each * 300)[:250] for each in prompts(6, seed=2)]
        samples = await sample_all(engine, many, SamplingParams(temperature=0.0, max_tokens=20))
        for prompt, sample in zip(many, samples, strict=True):
            assert sample.ids == expected(folder, prompt, 20)


async def test_logprobs_are_the_learners(policy: Policy, engine: Engine) -> None:
    params = SamplingParams(temperature=0.8, max_tokens=20, seed=5)
    many = prompts(6, seed=9)
    for prompt, sample in zip(many, await sample_all(engine, many, params), strict=True):
        ids = torch.tensor(prompt + sample.ids)
        rows = torch.arange(len(prompt) - 1, len(ids) - 1)
        with torch.no_grad():
            hidden = policy.forward(ids, torch.arange(len(ids)), PackedCausal([len(ids)]))
            logprobs, _ = policy.token_logprobs(hidden[rows], ids[rows + 1], 0.8)
        assert (torch.tensor(sample.logprobs) - logprobs).abs().max() < 1e-4


async def test_a_seed_fixes_the_reply_whatever_runs_beside_it(engine: Engine) -> None:
    prompt, *others = prompts(5, seed=3)
    params = SamplingParams(max_tokens=16, seed=7)
    alone = await engine.sample(prompt, params)
    crowd = await asyncio.gather(
        engine.sample(prompt, params), *(engine.sample(each, SamplingParams(max_tokens=9)) for each in others)
    )
    assert crowd[0].ids == alone.ids
    other = await engine.sample(prompt, SamplingParams(max_tokens=16, seed=8))
    assert other.ids != alone.ids


async def test_truncated_sampling_reports_both_distributions(engine: Engine) -> None:
    prompt = prompts(1)[0]
    sample = await engine.sample(prompt, SamplingParams(max_tokens=12, top_k=1, seed=1))
    greedy = await engine.sample(prompt, SamplingParams(max_tokens=12, temperature=0.0))
    assert sample.ids == greedy.ids
    assert sample.logprobs == pytest.approx([0.0] * 12, abs=1e-12)
    assert sample.full_logprobs == pytest.approx(greedy.logprobs, abs=1e-5)
    untruncated = await engine.sample(prompt, SamplingParams(max_tokens=3, seed=1))
    assert untruncated.full_logprobs is None


async def test_stop_strings_and_ids_end_the_reply_and_are_kept(engine: Engine) -> None:
    prompt = prompts(1)[0]
    whole = (await engine.sample(prompt, GREEDY)).ids
    by_id = await engine.sample(prompt, GREEDY.model_copy(update={"stop_ids": [whole[5]]}))
    assert by_id.ids == whole[: whole.index(whole[5]) + 1]
    assert by_id.stop_reason is StopReason.STOP
    texts = [decode([each]) for each in whole]
    pairs = [
        i for i in range(len(whole) - 1) if all(each.isascii() and each.isprintable() for each in texts[i : i + 2])
    ]
    for stop, end in ((texts[pairs[0]], pairs[0] + 1), (texts[pairs[0]] + texts[pairs[0] + 1], pairs[0] + 2)):
        by_text = await engine.sample(prompt, GREEDY.model_copy(update={"stop": [stop]}))
        assert by_text.stop_reason is StopReason.STOP
        assert decode(by_text.ids).endswith(stop)
        assert len(by_text.ids) <= end


async def test_context_ends_the_reply_and_refuses_a_full_prompt(policy: Policy) -> None:
    with Engine(policy, decode, EngineSettings(kv_cache_gb=0.05, context_length=32)) as engine:
        sample = await engine.sample([1] * 30, SamplingParams(max_tokens=10))
        assert (len(sample.ids), sample.stop_reason) == (2, StopReason.CONTEXT)
        sample = await engine.sample([1] * 32, SamplingParams(max_tokens=10))
        assert (sample.ids, sample.stop_reason) == ([], StopReason.CONTEXT)


async def test_cancelling_frees_the_row(engine: Engine) -> None:
    task = asyncio.create_task(engine.sample([1, 2, 3], SamplingParams(max_tokens=1000)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await engine.sample([4, 5], SamplingParams(max_tokens=4))
    assert not engine._scheduler.active


async def test_new_weights_recompute_what_was_cached(folder: Path) -> None:
    policy = Policy.load(folder, lora=LoraSettings(rank=4), dtype="float32", device="cpu")
    with Engine(policy, decode, EngineSettings(kv_cache_gb=0.05)) as engine:
        prompt = prompts(1, shared=30)[0]
        old = await engine.sample(prompt, GREEDY)
        with torch.no_grad():
            for each in policy.masters.values():
                each.add_(torch.randn(each.shape, generator=torch.Generator().manual_seed(1)) * 0.3)
        policy.refresh(5)
        new = await engine.sample(prompt, GREEDY)
        assert (old.policy_version, new.policy_version) == (0, 5)
        ids = torch.tensor(prompt + new.ids)
        with torch.no_grad():
            hidden = policy.forward(ids, torch.arange(len(ids)), PackedCausal([len(ids)]))
        assert policy.decoder.logits(hidden.detach())[len(prompt) - 1 : -1].argmax(-1).tolist() == new.ids
        assert old.ids != new.ids


async def test_bad_input_is_refused_clearly(policy: Policy, engine: Engine) -> None:
    with pytest.raises(SamplerError, match="does not know"):
        await engine.sample([1, 99999], GREEDY)
    with pytest.raises(SamplerError, match="empty"):
        await engine.sample([], GREEDY)
    with pytest.raises(ConfigError, match=r"inference\.kv_cache_gb=.* holds .* tokens"):
        Engine(policy, decode, EngineSettings(kv_cache_gb=1e-5))
    with pytest.raises(ConfigError, match="past the model's own 1024"):
        Engine(policy, decode, EngineSettings(context_length=2048))


async def test_a_failure_is_everyones_answer_and_the_engine_lives_on(folder: Path) -> None:
    policy = Policy.load(folder, train=False, dtype="float32", device="cpu")
    good = policy.decoder.norm
    with Engine(policy, decode, EngineSettings(kv_cache_gb=0.05)) as engine:
        policy.decoder.norm = torch.full_like(good, float("nan"))
        with pytest.raises(SamplerError, match="diverged"):
            await engine.sample([1, 2], GREEDY)
        policy.decoder.norm = good
        assert len((await engine.sample([1, 2], GREEDY)).ids) == 24
    with pytest.raises(SamplerError, match="closed"):
        await engine.sample([1, 2], GREEDY)


async def test_back_pressure_calls_wait_for_room_in_the_cache(policy: Policy) -> None:
    settings = EngineSettings(kv_cache_gb=3 * 64 * 256 / 2**30, context_length=64)  # three rows of 64 tokens
    with Engine(policy, decode, settings) as engine:
        tasks = [asyncio.create_task(engine.sample(each, GREEDY)) for each in prompts(9)]
        most = 0
        while not all(task.done() for task in tasks):
            most = max(most, len(engine._scheduler.active))
            await asyncio.sleep(0)
        assert most == 3
        assert all(len(task.result().ids) == 24 for task in tasks)


async def test_what_was_played_before_bounds_the_rows_of_what_comes_next_no_more(policy: Policy) -> None:
    settings = EngineSettings(kv_cache_gb=1100 * 256 / 2**30)  # 1,100 tokens of 256 bytes each
    with Engine(policy, decode, settings) as engine:
        cache = engine._scheduler.cache
        before = await engine.sample(prompts(1)[0], GREEDY)
        await engine.sample([7] * 500, GREEDY)
        assert (cache.capacity, cache.max_rows) == (576, 1)  # 524 tokens, in steps of 64
        engine.forget()
        assert (cache.capacity, cache.rows, cache.max_rows) == (64, 0, 17)
        again = await engine.sample(prompts(1)[0], GREEDY)
        assert (again.ids, again.logprobs) == (before.ids, before.logprobs)


async def test_rows_that_run_keep_their_place_when_the_rest_is_forgotten(engine: Engine, folder: Path) -> None:
    task = asyncio.create_task(engine.sample(prompts(1)[0], GREEDY))
    while not engine._scheduler.active:
        await asyncio.sleep(0)
    engine.forget()
    assert len(engine._scheduler.active) == 1
    assert (await task).ids == expected(folder, prompts(1)[0], 24)
