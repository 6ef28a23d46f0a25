import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import ConfigError, Message, Task, ToolCall
from latih.envs import make
from latih.envs.arithmetic import SYSTEM, Arithmetic
from tests.envs.playing import episodes_in_other_processes, play
from tests.soak import examples


def asked(expression: str) -> Arithmetic:
    env = Arithmetic()
    env.reset(seed=0, options={"task": Task(prompt=expression)})
    return env


@pytest.mark.parametrize(
    ("text", "reward", "answered"),
    [
        ("Answer: 53", 1.0, 1.0),
        ("17 + 36 is 53.\nAnswer: 53\n", 1.0, 1.0),
        ("Answer: 053", 1.0, 1.0),
        ("Answer: 52", 0.0, 1.0),
        ("Answer: -53", 0.0, 1.0),
        ("53", 0.0, 0.0),
        ("Answer: 53.0", 0.0, 0.0),
        ("Answer: 17 + 36", 0.0, 0.0),
        ("Answer: 53 or 54", 0.0, 0.0),
        ("Answer: 53\nAnswer: 54", 0.0, 0.0),
        ("Answer: 53\nAnswer: 53", 0.0, 0.0),
        ("The answer is 53.\nAnswer: 53", 0.0, 0.0),
        ("answer: 53", 0.0, 0.0),
        ("\n".join(f"Answer: {i}" for i in range(200)), 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_what_counts_as_an_answer(text: str, reward: float, answered: float) -> None:
    env = asked("17 + 36")
    said, paid, terminated, truncated, info = env.step(text)
    assert (paid, terminated, truncated) == (reward, True, False)
    assert info == {"metrics": {"correct": reward, "answered": answered}}
    assert said == ("Right." if reward else "Wrong.")


def test_a_call_of_a_tool_is_no_answer() -> None:
    calls = [ToolCall(name="calculator", arguments={"expression": "17 + 36"})]
    assert asked("17 + 36").step(Message(role="assistant", tool_calls=calls))[1] == 0.0


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(2, 8), st.integers(1, 6), st.text("+-*", min_size=1, max_size=4), st.integers(0, 2**63 - 1))
def test_expressions_have_what_the_dials_say(terms: int, digits: int, operators: str, seed: int) -> None:
    env = Arithmetic(terms=terms, digits=digits, operators=operators)
    (system, question), info = env.reset(seed=seed)
    parts = question.text.split(" ")
    assert (system.role, system.text, info) == ("system", SYSTEM, {})
    assert len(parts) == 2 * terms - 1
    assert all(1 <= int(number) < 10**digits for number in parts[::2])
    assert set(parts[1::2]) <= set(operators)
    assert env.answer == eval(question.text)  # an independent reference; the text is digits and + - *
    assert env.step(f"Answer: {env.answer}")[1] == 1.0


def test_the_expert_is_always_right_and_random_play_answers() -> None:
    assert {play(Arithmetic(), "expert", seed).reward for seed in range(200)} == {1.0}
    games = [play(Arithmetic(), "random", seed) for seed in range(500)]
    assert all(game.metrics["answered"] for game in games)
    assert sum(game.reward for game in games) <= 10


@pytest.mark.parametrize("reply", ["", "echo", "expression"])
def test_doing_nothing_scores_nothing(reply: str) -> None:
    env = Arithmetic(digits=1)
    for seed in range(200):
        (_, question), _ = env.reset(seed=seed)
        said = {"": "", "echo": question.text, "expression": f"Answer: {question.text}"}[reply]
        assert env.step(said)[1] == 0.0


def test_tasks() -> None:
    env = Arithmetic()
    (_, question), _ = env.reset(options={"task": Task(prompt="Seven apples and five?", answer="12")})
    assert question.text == "Seven apples and five?"
    assert env.step("Answer: 12")[1] == 1.0
    with pytest.raises(ValueError, match="has no answer in 'How many\\?'"):
        env.reset(options={"task": Task(prompt="How many?")})


def test_seeds_dials_and_steps() -> None:
    assert len(episodes_in_other_processes("arithmetic", terms=3)) == 1
    with pytest.raises(ConfigError, match="less than or equal to 8"):
        make("arithmetic", terms=9)
    with pytest.raises(ConfigError, match="should match pattern"):
        make("arithmetic", operators="/")
    env = asked("1 + 1")
    env.step(env.scripted("random", random.Random(0)))
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("Answer: 2")
