"""Strategies that build arbitrary records of the vocabulary."""

from hypothesis import strategies as st

from latih.core import (
    ErrorRecord,
    ImagePart,
    Message,
    Sequence,
    StopReason,
    Task,
    TextPart,
    ToolCall,
    Trajectory,
    Turn,
)

# What UTF-8 can hold: everything but lone surrogates.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
parts = st.builds(TextPart, text=text) | st.builds(ImagePart, data=text, media_type=text)
calls = st.builds(ToolCall, id=text, name=text, arguments=text | st.dictionaries(text, json_values, max_size=3))
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=text | st.lists(parts, max_size=2),
    tool_calls=st.lists(calls, max_size=2),
    tool_call_id=st.none() | text,
    name=st.none() | text,
)
extra = st.dictionaries(st.sampled_from(["level", "été", "x y"]), json_values, max_size=2)
tasks = st.builds(
    lambda more, **known: Task(**known, **more),
    more=extra,
    id=text,
    prompt=text | st.lists(messages, max_size=2),
    answer=json_values,
)
ids = st.lists(st.integers(0, 2**31 - 1), max_size=5)
int64 = st.integers(-(2**63), 2**63 - 1)
reasons = st.sampled_from(StopReason)


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    sampled = draw(ids)
    logprobs = st.lists(finite, min_size=len(sampled), max_size=len(sampled))
    return Turn(
        new_ids=draw(ids),
        ids=sampled,
        logprobs=draw(logprobs),
        full_logprobs=draw(st.none() | logprobs),
        policy_version=draw(int64),
        stop_reason=draw(reasons),
        temperature=draw(finite),
        completion_id=draw(text),
        reward=draw(st.none() | finite),
    )


sequences = st.builds(Sequence, turns=st.lists(turns(), max_size=3), messages=st.lists(messages, max_size=3))
errors = st.builds(ErrorRecord, kind=text, message=text, traceback=text, hung=st.booleans())
trajectories = st.builds(
    Trajectory,
    env=text,
    seed=int64,
    index=int64,
    group=text,
    role=text,
    task=st.none() | tasks,
    sequences=st.lists(sequences, max_size=2),
    reward=finite,
    metrics=st.dictionaries(text, finite, max_size=3),
    stop_reason=reasons,
    error=st.none() | errors,
)
