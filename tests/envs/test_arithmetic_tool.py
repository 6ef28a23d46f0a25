import json
import random

import pytest

from latih.core import Message, Task, ToolCall
from latih.envs.arithmetic_tool import ArithmeticTool
from latih.rewards.answer import read_answer
from tests.envs.playing import episodes_in_other_processes, play


def call(*expressions: object, name: str = "calculator") -> Message:
    calls = [
        ToolCall(id=f"c{i}", name=name, arguments={"expression": each} if not isinstance(each, dict) else each)
        for i, each in enumerate(expressions)
    ]
    return Message(role="assistant", tool_calls=calls)


def test_a_seed_is_the_same_problem_in_every_process() -> None:
    [episodes] = episodes_in_other_processes("arithmetic_tool")
    assert len(set(map(json.dumps, json.loads(episodes)))) == 10 * len(ArithmeticTool.policies)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: 42", 42),
        ("  Answer: -7\n", -7),
        ("2 + 2 is easy.\nAnswer: 4", 4),
        ("answer: 4", None),
        ("Answer: 4.", None),
        ("Answer: 4 or 5", None),
        ("Answer: 4\nAnswer: 5", None),
        ("Answer: 4\nAnswer: 4", None),
        ("The answer is 5.\nAnswer: 4", None),
        ("Answer: 2 + 2", None),
        ("Answer: 8/2", None),
        ("Answer: four", None),
        ("Answer: \u0664", None),
        ("Answer: " + "9" * 5000, None),
        ("4", None),
        ("", None),
    ],
)
def test_answer_has_one_strict_form(text: str, answer: int | None) -> None:
    assert read_answer(text) == answer


def test_an_episode_with_the_tool() -> None:
    env = ArithmeticTool()
    first, info = env.reset(seed=3)
    assert [each.role for each in first] == ["system", "user"]
    assert info == {}
    assert env.answer == eval(first[1].text)
    results, reward, terminated, truncated, info = env.step(call(first[1].text))
    assert [(each.role, each.text, each.tool_call_id) for each in results] == [("tool", str(env.answer), "c0")]
    assert (reward, terminated, truncated, info) == (0.0, False, False, {})
    observation, reward, terminated, truncated, info = env.step(f"Answer: {env.answer}")
    assert (observation, reward, terminated, truncated) == ("Right.", 1.0, True, False)
    assert info["metrics"] == {"correct": 1.0, "tool_calls": 1.0, "bad_calls": 0.0}
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("Answer: 1")


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (call("1 +"), "error: the expression cannot be parsed"),
        (call("1 / 0"), "error: division by zero"),
        (call(5), "error: expression: 5 is not of type 'string'"),
        (call({}), "error: 'expression' is a required property"),
        (call({"expr": "1"}), "error: 'expression' is a required property"),
        (call("1", name="calc"), "error: unknown tool 'calc': did you mean 'calculator'?"),
        (
            Message(role="assistant", tool_calls=[ToolCall(name="calculator", arguments="{broken")]),
            "error: the arguments are not a JSON object",
        ),
    ],
)
def test_a_bad_call_is_an_observation(action: Message, told: str) -> None:
    env = ArithmeticTool()
    env.reset(seed=0)
    results, reward, terminated, truncated, _ = env.step(action)
    assert [each.text for each in results] == [told]
    assert (reward, terminated, truncated) == (0.0, False, False)
    *_, info = env.step(f"Answer: {env.answer}")
    assert info["metrics"] == {"correct": 1.0, "tool_calls": 1.0, "bad_calls": 1.0}


def test_too_many_calls_truncate() -> None:
    env = ArithmeticTool(max_calls=3)
    env.reset(seed=0)
    assert [each.text for each in env.step(call("1", "2"))[0]] == ["1", "2"]
    results, reward, terminated, truncated, info = env.step(call(*["3"] * 1000))
    assert [each.text for each in results] == ["3"]
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["metrics"] == {"correct": 0.0, "tool_calls": 3.0, "bad_calls": 0.0}


def test_no_answer_is_no_right_one() -> None:
    env = ArithmeticTool()
    env.reset(seed=0)
    env.step(env.scripted("expert", random.Random(0)))
    metrics = {"correct": 0.0, "tool_calls": 1.0, "bad_calls": 0.0}
    assert env.truncate("turns") == (0.0, {"metrics": metrics})


def test_a_call_with_an_answer_beside_it_is_a_call() -> None:
    env = ArithmeticTool()
    env.reset(seed=0)
    action = call("1 + 1").model_copy(update={"content": f"Answer: {env.answer}"})
    assert env.step(action)[1:3] == (0.0, False)


def test_dials_shape_the_question() -> None:
    env = ArithmeticTool(terms=5, digits=1, operators="+")
    for seed in range(50):
        (_, question), _ = env.reset(seed=seed)
        numbers = question.text.split(" + ")
        assert len(numbers) == 5
        assert all(1 <= int(each) <= 9 for each in numbers)


def test_tasks_bring_question_and_truth() -> None:
    env = ArithmeticTool()
    (_, question), _ = env.reset(options={"task": Task(prompt="Tom has 2 apples and buys 3. How many?", answer=5)})
    assert question.text.startswith("Tom has")
    assert env.step("Answer: 5")[1] == 1.0
    env.reset(options={"task": Task(prompt="6 * 7")})
    assert env.step("Answer: 42")[1] == 1.0
    env.reset(options={"task": Task(prompt=[Message(role="user", content="6 * 7")], answer="42")})
    assert env.step("Answer: 42")[1] == 1.0
    with pytest.raises(ValueError, match="task 'a' has no answer in 'How many"):
        env.reset(options={"task": Task(id="a", prompt="How many?")})
    with pytest.raises(ValueError, match="no whole number"):
        env.reset(options={"task": Task(prompt="7 / 2")})


def test_baselines_score_what_they_should() -> None:
    env = ArithmeticTool()
    seeds = range(500)
    expert = [play(env, "expert", seed) for seed in seeds]
    assert all(each.reward == 1.0 and each.metrics["tool_calls"] == 1.0 for each in expert)
    aimless = [play(env, "random", seed) for seed in seeds]
    assert sum(each.reward for each in aimless) <= 10
    assert not any(each.truncated or each.metrics["bad_calls"] for each in aimless)
    assert all(play(ArithmeticTool(max_calls=0), policy, 0).metrics["tool_calls"] == 0 for policy in env.policies)


@pytest.mark.parametrize("policy", ["empty", "echo", "list"])
def test_do_nothing_policies_score_nothing(policy: str) -> None:
    env = ArithmeticTool(terms=2, digits=1, operators="+")
    for seed in range(100):
        (_, question), _ = env.reset(seed=seed)
        every = "\n".join(f"Answer: {n}" for n in range(19))
        reply = {"empty": "", "echo": f"Answer: {question.text}", "list": every}[policy]
        assert env.step(reply)[1] == 0.0
