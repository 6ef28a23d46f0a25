"""The recorder: exact prompts, exact tokens, and each sampled token in exactly one turn."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latih.core import LatihError, Message, SamplingParams, StopReason, TextPart, ToolCall, ToolSchema
from latih.rollout.model import RecordedModel
from latih.rollout.recorder import Recorder
from tests.rollout.fakes import START, STOP, CharRenderer, ScriptedSampler, assistant, ids_of, says, user

SYSTEM = Message(role="system", content="s")


def recorder() -> Recorder:
    return Recorder(CharRenderer(), name="t")


def talk(record: Recorder, messages, reply, tools=()):
    return record.record(record.prompt(messages, tools), says(reply))


def check(record: Recorder, log) -> None:
    """The two invariants, against the sampler's own log."""
    seen = [
        (sequence.prompt_ids(i), turn.ids) for sequence in record.sequences for i, turn in enumerate(sequence.turns)
    ]
    assert sorted(seen) == sorted((call.prompt, call.ids) for call in log)
    for sequence in record.sequences:
        assert sum(sequence.sampled_mask) == sum(len(turn.ids) for turn in sequence.turns)


def test_a_conversation_that_goes_on_stays_one_sequence_with_hand_worked_tokens():
    record = recorder()
    reply, first = talk(record, [user("a")], "b")
    assert reply == assistant("b")
    opening = [START, *ids_of("user\na"), STOP, *ids_of("\n"), START, *ids_of("assistant\n")]
    assert first.new_ids == opening
    assert first.ids == [*ids_of("b"), STOP]
    assert (first.policy_version, first.stop_reason, first.completion_id) == (7, StopReason.STOP, "t#0")

    _, second = talk(record, [user("a"), reply, user("c")], "d")
    assert second.new_ids == [
        *ids_of("\n"), START, *ids_of("user\nc"), STOP, *ids_of("\n"), START, *ids_of("assistant\n")
    ]  # fmt: skip
    (sequence,) = record.sequences
    assert sequence.prompt_ids(1) == opening + first.ids + second.new_ids
    assert sequence.messages == [user("a"), reply, user("c"), assistant("d")]
    assert sequence.ids[:-1] == CharRenderer().render(sequence.messages, generate=False)[:-2]


def test_the_sampled_tokens_are_spliced_in_even_where_the_text_would_tokenize_otherwise():
    """Decode-then-encode drift: START inside a reply is lost in its text, but not in the next prompt."""
    record = recorder()
    odd = says("b").model_copy(update={"ids": [START, *ids_of("b")], "logprobs": [-1.0, -1.0]})
    prompt = record.prompt([user("a")])
    reply, turn = record.record(prompt, odd)
    following = record.prompt([user("a"), reply, user("c")])
    assert following.ids[: len(prompt.ids) + 2] == prompt.ids + turn.ids
    # The reply was cut before its stop token: one is added as prompt, and never trained.
    assert following.ids[following.start] == STOP


def test_an_edited_history_starts_a_new_sequence_at_the_last_reply_that_still_matches():
    record = recorder()
    one, _ = talk(record, [user("1")], "one")
    two, _ = talk(record, [user("1"), one, user("2")], "two")
    talk(record, [user("1"), one, user("2"), two, user("3")], "three")
    talk(record, [user("1"), one, user("2, edited")], "other")
    first, branch = record.sequences
    assert [len(first.turns), len(branch.turns)] == [3, 1]
    shared = first.prompt_ids(0) + first.turns[0].ids
    assert branch.turns[0].new_ids[: len(shared)] == shared
    talk(record, [user("1"), one, user("2, edited"), assistant("other"), user("x")], "y")
    assert len(branch.turns) == 2


def test_an_edited_reply_matches_nothing():
    record = recorder()
    talk(record, [user("1")], "one")
    _, turn = talk(record, [user("1"), assistant("ONE"), user("2")], "two")
    assert len(record.sequences) == 2
    assert turn.new_ids == CharRenderer().render([user("1"), assistant("ONE"), user("2")])


def test_other_tools_are_another_prompt():
    record = recorder()
    reply, _ = talk(record, [user("1")], "one")
    talk(record, [user("1"), reply, user("2")], "two", tools=[ToolSchema(name="f")])
    assert len(record.sequences) == 2


def test_two_calls_from_one_prefix_at_once_do_not_share_a_row():
    record = recorder()
    reply, _ = talk(record, [user("1")], "one")
    left = record.prompt([user("1"), reply, user("left")])
    right = record.prompt([user("1"), reply, user("right")])
    _, r = record.record(right, says("R"))
    _, l = record.record(left, says("L"))  # noqa: E741
    first, second = record.sequences
    assert first.turns[1] is r
    assert second.turns == [l]
    assert l.new_ids == left.ids


def test_equal_branches_each_go_on_at_their_own_end():
    record = recorder()
    for _ in range(2):
        talk(record, [user("1")], "same")
    for reply in ("x", "y"):
        talk(record, [user("1"), assistant("same"), user("2")], reply)
    assert [len(each.turns) for each in record.sequences] == [2, 2]


def test_tool_arguments_are_compared_as_values_and_call_ids_by_what_they_refer_to():
    record = recorder()
    talk(record, [user("1")], 'CALL add {"a": 1, "b": 2}')
    sent = Message(role="assistant", tool_calls=[ToolCall(id="client-9", name="add", arguments='{"b":2,  "a":1}')])
    result = Message(role="tool", content="3", tool_call_id="client-9")
    following = record.prompt([user("1"), sent, result])
    assert following.row is not None
    more, _ = record.record(following, says("ok"))
    again = Message(role="assistant", tool_calls=[ToolCall(id="z", name="add", arguments={"a": 1, "b": 2})])
    tool = Message(role="tool", content="3", tool_call_id="z")
    assert record.prompt([user("1"), again, tool, more, user("2")]).row is following.row
    other = Message(role="assistant", tool_calls=[ToolCall(name="add", arguments={"a": 1, "b": 3})])
    assert record.prompt([user("1"), other, result]).start == 0


def test_text_parts_equal_their_text():
    record = recorder()
    reply, _ = talk(record, [user("ab")], "c")
    parts = Message(role="user", content=[TextPart(text="a"), TextPart(text="b")])
    assert record.prompt([parts, reply, user("d")]).row is not None


def test_completions_are_found_by_id_and_unknown_ones_refused():
    record = recorder()
    _, turn = talk(record, [user("1")], "one")
    assert record.find(turn.completion_id) == (record.sequences[0], turn)
    with pytest.raises(LatihError, match=r"unknown completion 'nope'"):
        record.find("nope")


def test_rewards_go_to_the_turn_that_said_the_action():
    record = recorder()
    first, one = talk(record, [user("1")], "one")
    _, two = talk(record, [user("sub-agent")], "two")
    record.reward(first, 0.5)
    record.reward(assistant("never said"), 2.0)
    assert (one.reward, two.reward) == (0.5, 2.0)


MESSAGES = st.lists(st.tuples(st.sampled_from(["user", "system", "assistant"]), st.sampled_from("ab")), max_size=3)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["go on", "window", "edit", "fork", "again", "fresh", "together"]),
        st.integers(0, 5),
        MESSAGES,
        st.sampled_from(["", "a", "b", "ab"]),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=12,
)


@given(EDITS)
def test_whatever_a_harness_does_each_sampled_token_is_in_one_turn_with_its_exact_prompt(edits):
    replies = iter(())
    sampler = ScriptedSampler(lambda call, prompt: next(replies))
    model = RecordedModel(Recorder(CharRenderer()), sampler, SamplingParams(max_tokens=3))

    async def play():
        nonlocal replies
        history = [user("start")]
        for how, where, made, said, tokens in edits:
            new = [Message(role=role, content=text) for role, text in made]
            at = where % (len(history) + 1)
            if how == "go on":
                history = history + new
            elif how == "window":
                history = history[at:] + new
            elif how == "edit":
                history = history[:at] + new + history[at + 1 :]
            elif how == "fork":
                history = history[:at] + new
            elif how == "fresh":
                history = new
            calls = 3 if how == "together" else 1
            replies = iter([said, said + "c", said][:calls])
            params = SamplingParams(max_tokens=tokens)
            answers = await asyncio.gather(*(model.chat(history, params=params) for _ in range(calls)))
            history = [*history, answers[where % calls]]

    asyncio.run(play())
    check(model.recorder, sampler.log)


@given(st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=6))
def test_a_plain_conversation_is_one_row_that_renders_its_messages(replies):
    record, history = recorder(), [SYSTEM, user("start")]
    for reply in replies:
        message, _ = talk(record, history, reply)
        history = [*history, message, user("next")]
    (sequence,) = record.sequences
    assert [*sequence.ids, *ids_of("\n")] == CharRenderer().render(sequence.messages, generate=False)
