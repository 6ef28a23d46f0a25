"""The recorded model and its bounds."""

import asyncio

import pytest

from latih.core import ContextFull, HarnessError, ModelError, Sample, SamplerError, SamplingParams, StopReason
from latih.rollout.model import BoundedSampler, RecordedModel
from latih.rollout.recorder import Recorder
from tests.rollout.fakes import STOP, CharRenderer, ScriptedSampler, says, user


def model_of(sampler, **more) -> RecordedModel:
    return RecordedModel(Recorder(CharRenderer(), "t"), sampler, **more)


async def test_what_the_sampler_is_asked_for():
    sampler = ScriptedSampler(lambda call, prompt: "hi")
    model = model_of(sampler, params=SamplingParams(temperature=0.5, stop_ids=[99]), seed=lambda call: 100 + call)
    completion = await model.complete([user("a")])
    await model.chat([user("b")], params=SamplingParams(seed=5))
    first, second = (call.params for call in sampler.log)
    assert (first.temperature, first.seed, sorted(first.stop_ids)) == (0.5, 100, [STOP, 99])
    assert second.seed == 5
    assert completion.turn.temperature == 0.5
    assert completion.turn.completion_id == "t#0"


async def test_greedy_turns_are_recorded_at_the_temperature_of_their_logprobs():
    model = model_of(ScriptedSampler(lambda call, prompt: "hi"))
    completion = await model.complete([user("a")], params=SamplingParams(temperature=0.0))
    assert completion.turn.temperature == 1.0


async def test_max_tokens_is_cut_to_what_the_context_leaves_and_says_so():
    prompt = len(CharRenderer().render([user("a")]))
    sampler = ScriptedSampler(lambda call, prompt: "long reply", context_length=prompt + 3)
    completion = await model_of(sampler).complete([user("a")])
    assert sampler.log[0].params.max_tokens == 3
    assert completion.turn.stop_reason is StopReason.CONTEXT
    asked = await model_of(sampler).complete([user("a")], params=SamplingParams(max_tokens=3))
    assert asked.turn.stop_reason is StopReason.LENGTH


async def test_a_prompt_that_leaves_no_room_never_reaches_the_sampler():
    prompt = len(CharRenderer().render([user("a")]))
    sampler = ScriptedSampler(lambda call, prompt: "x", context_length=prompt)
    model = model_of(sampler)
    with pytest.raises(ContextFull, match=f"{prompt} tokens .* context of {prompt}"):
        await model.chat([user("a")])
    assert sampler.log == []
    assert isinstance(model.fault, ContextFull)


async def test_a_sampler_that_finds_the_context_full_means_the_same():
    full = Sample(ids=[], logprobs=[], stop_reason=StopReason.CONTEXT, policy_version=0)
    model = model_of(ScriptedSampler(lambda call, prompt: full))
    with pytest.raises(ContextFull):
        await model.chat([user("a")])
    assert model.recorder.sequences == []


async def test_faults_of_the_sampler_are_attributed_and_forgotten_after_a_success():
    script = [ValueError("boom"), "fine"]
    model = model_of(BoundedSampler(ScriptedSampler(lambda call, prompt: script[call]), 1, 5.0))
    with pytest.raises(SamplerError, match="the sampler failed: ValueError: boom") as caught:
        await model.chat([user("a")])
    assert isinstance(caught.value.__cause__, ValueError)
    assert isinstance(model.fault, SamplerError)
    await model.chat([user("a")])
    assert model.fault is None
    assert len(model.recorder.sequences) == 1


async def test_a_conversation_that_cannot_be_rendered_is_the_fault_of_who_wrote_it():
    class Picky(CharRenderer):
        def render(self, messages, tools=(), *, generate=True):
            raise ModelError("the model reads text only")

    model = RecordedModel(Recorder(Picky()), ScriptedSampler(lambda call, prompt: "x"))
    with pytest.raises(HarnessError, match="cannot be rendered: ModelError: the model reads text only"):
        await model.chat([user("a")])


async def test_a_hung_sampler_has_a_deadline_and_its_place_is_free_again():
    sampler = ScriptedSampler(lambda call, prompt: "x", delay=lambda call: 0 if call else 60)
    bounded = BoundedSampler(sampler, limit=1, timeout=0.05)
    with pytest.raises(SamplerError, match=r"did not answer a prompt of 2 tokens within 0\.05 s") as caught:
        await bounded.sample([1, 2], SamplingParams())
    assert caught.value.hung
    assert (await bounded.sample([1], SamplingParams())).ids == says("x").ids
    assert sampler.live == 0


async def test_a_cancelled_sample_is_an_error():
    gone = Sample(ids=[], logprobs=[], stop_reason=StopReason.CANCELLED, policy_version=0)
    with pytest.raises(SamplerError, match="cancelled"):
        await BoundedSampler(ScriptedSampler(lambda call, prompt: gone), 1, 5).sample([1], SamplingParams())


async def test_live_calls_are_bounded():
    sampler = ScriptedSampler(lambda call, prompt: "x", delay=0.005)
    bounded = BoundedSampler(sampler, limit=3, timeout=5)
    await asyncio.gather(*(bounded.sample([1], SamplingParams()) for _ in range(10)))
    assert sampler.most == 3


async def test_a_call_that_outlives_its_episode_is_not_recorded():
    model = model_of(ScriptedSampler(lambda call, prompt: "x", delay=0.02))
    late = asyncio.create_task(model.chat([user("a")]))
    await asyncio.sleep(0)
    model.closed = True
    with pytest.raises(HarnessError, match="outlived"):
        await late
    assert model.recorder.sequences == []
