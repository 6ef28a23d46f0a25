import json
import random
import warnings
from fractions import Fraction
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from latih.core import Task
from latih.envs import make
from latih.envs.calculator import calculation
from latih.envs.gsm8k import PROBLEMS, Gsm8k, made_up
from tests.envs.playing import episodes_in_other_processes, play

ROWS = Path("shared/data/gsm8k/test.jsonl")
GSM8K = next((each / ROWS for each in Path(__file__).parents if (each / ROWS).is_file()), None)
TASK = Task(
    question="Ann sold 48 clips in April and half as many in May. How many in all?",
    answer="In May it was 48/2 = <<48/2=24>>24.\nIn all 48+24 = <<48+24=72>>72.\n#### 72",
)


def started(task: Task = TASK, **dials: object) -> Gsm8k:
    env = make("gsm8k", **dials)
    assert isinstance(env, Gsm8k)
    env.reset(seed=0, options={"task": task})
    return env


@pytest.mark.parametrize("calculator", [False, True])
def test_is_sound(calculator: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make("gsm8k", calculator=calculator))


@pytest.mark.parametrize("calculator", [False, True])
def test_made_up_problems_are_the_same_in_every_process(calculator: bool) -> None:
    [episodes] = episodes_in_other_processes("gsm8k", calculator=calculator)
    assert len(set(map(json.dumps, json.loads(episodes)))) == 20  # ten seeds of two policies, all different


def test_shows_the_question_and_never_the_answer() -> None:
    system, question = Gsm8k().reset(options={"task": TASK})[0]
    assert system.text == "Solve the problem step by step. End with one line: #### N"
    assert question.text == TASK.model_extra["question"]


@pytest.mark.parametrize(
    ("reply", "reward", "answered"),
    [
        ("48/2 = 24 and 48+24 = 72.\n#### 72", 1, 1),
        ("Answer: 72 clips", 1, 1),
        ("72", 1, 1),
        ("#### 71", 0, 1),
        ("#### 72\n#### 71", 0, 0),
        ("#### 72 or 71", 0, 0),
        ("#### 48 + 24", 0, 0),
        ("She sold 72 clips", 0, 0),
        ("", 0, 0),
    ],
)
def test_only_the_one_right_number_is_paid(reply: str, reward: float, answered: float) -> None:
    env = started()
    _, paid, terminated, truncated, info = env.step(reply)
    assert (paid, terminated, truncated) == (reward, True, False)
    assert info["metrics"] == {"correct": reward, "answered": answered}
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step(reply)


def test_the_calculator() -> None:
    env = started(calculator=True, max_calls=2)
    results, *rest = env.step(calculation("48 / 2"))
    assert [each.text for each in results] == ["24"]
    assert rest == [0.0, False, False, {}]
    assert env.step(calculation("9**9"))[0][0].text.startswith("error: an expression has numbers")
    _, reward, _, _, info = env.step("#### 72")
    assert reward == 1.0
    assert info["metrics"] == {"correct": 1.0, "answered": 1.0, "tool_calls": 2.0, "bad_calls": 1.0}
    env = started(calculator=True, max_calls=1)
    env.step(calculation("1"))
    results, reward, terminated, truncated, info = env.step(calculation("2"))
    assert (results, reward, terminated, truncated, info["metrics"]["correct"]) == ([], 0.0, False, True, 0.0)


def test_the_expert_has_the_steps_calculated_and_says_the_solution() -> None:
    env, rng = started(calculator=True), random.Random(0)
    for expression in ("48/2", "48+24"):
        action = env.scripted("expert", rng)
        assert action == calculation(expression)
        env.step(action)
    last = env.scripted("expert", rng)
    assert last == "In May it was 48/2 = 24.\nIn all 48+24 = 72.\n#### 72"
    assert env.step(last)[1] == 1.0


@pytest.mark.parametrize(
    ("answer", "truth"), [(72, 72), ("72", 72), (0.5, Fraction(1, 2)), ("#### 1,200", 1200), ("$1.50", Fraction(3, 2))]
)
def test_a_task_may_have_the_number_alone(answer: object, truth: Fraction) -> None:
    env = started(Task(question="How many?", answer=answer))
    assert env.truth == truth
    assert play(env, "expert", 0)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "How many?", "answer": "seventy"}, "the answer has no final number"),
        ({"question": "How many?", "answer": True}, "the answer has no final number"),
        ({"question": "How many?", "answer": "#### 1\n#### 2"}, "the answer has no final number"),
        ({"question": " ", "answer": 1}, "the question is a text"),
        ({"question": 5, "answer": 1}, "the question is a text"),
    ],
)
def test_rows_without_question_or_number_are_refused(row: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Gsm8k().check_task(Task(**row))


@given(st.integers(0, 2**32))
def test_problems_made_up_have_whole_positive_answers_that_the_expert_knows(seed: int) -> None:
    env = Gsm8k()
    env.reset(seed=seed)
    assert env.truth.denominator == 1
    assert env.truth > 0
    assert play(env, "expert", seed).reward == 1.0


def test_every_kind_of_problem_is_made_up() -> None:
    env, starts = Gsm8k(), set()
    for seed in range(100):
        env.reset(seed=seed)
        starts.add(env.solution.split()[0] + env.solution.split()[1])
    assert len(starts) == len(PROBLEMS)
    assert made_up(env.np_random).model_extra


@pytest.mark.parametrize("calculator", [False, True])
def test_baselines(calculator: bool) -> None:
    env = Gsm8k(calculator=calculator)
    assert all(play(env, "expert", seed).reward == 1.0 for seed in range(300))
    aimless = [play(env, "random", seed) for seed in range(300)]
    assert sum(each.reward for each in aimless) <= 6
    assert all(each.metrics["answered"] or each.truncated for each in aimless)
    for seed in range(100):
        question = env.reset(seed=seed)[0][1].text
        every = "\n".join(f"#### {n}" for n in range(200))
        for reply in ("", question, f"#### {question}", every, " or ".join("12345")):
            env.reset(seed=seed)
            assert env.step(reply)[1] == 0.0


@pytest.mark.skipif(GSM8K is None, reason="the data set is not beside the repository (shared/data/gsm8k)")
@pytest.mark.parametrize("calculator", [False, True])
def test_the_expert_solves_the_test_set(calculator: bool) -> None:
    assert GSM8K is not None
    env = Gsm8k(calculator=calculator)
    for line in GSM8K.read_text(encoding="utf-8").splitlines():
        task = Task(**json.loads(line))
        env.check_task(task)
        env.reset(seed=0, options={"task": task})
        over, reward = False, 0.0
        while not over:
            _, reward, over, truncated, _ = env.step(env.scripted("expert", random.Random(0)))
            assert not truncated
        assert reward == 1.0
