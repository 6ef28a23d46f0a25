import time

import pytest

from latih.rewards.answer import read_answer, tagged_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer> cedar\n</answer>", "cedar"),
        ("<answer>4</answer>", "4"),
        ("I think\n<answer>\n1 2\n3 4\n</answer>.", "1 2\n3 4"),
        ("<answer>4</answer><answer>4</answer>", None),
        ("<answer><answer>4</answer>", None),
        ("<answer>4</answer></answer>", None),
        ("</answer>4<answer>", None),
        ("<answer>4", None),
        ("4", None),
        ("<think>An <answer> is wanted, oak?</think> <answer>cedar</answer>", "cedar"),
        ("<answer>cedar</answer></think>", None),
        ("<answer>oak</answer></think><answer>cedar</answer><answer>oak</answer>", None),
        ("</answer>cedar<answer>", None),
        ("<answer><answer>cedar</answer>", None),
        ("<answer> </answer>", None),
        ("", None),
    ],
)
def test_tagged_answers(text: str, answer: str | None) -> None:
    assert tagged_answer(text) == answer


def test_what_was_thought_is_no_candidate() -> None:
    assert read_answer("<think>Answer: 5, or is the answer 4?</think>\nAnswer: 4") == 4
    assert read_answer("Answer: 4</think>") is None


def test_tags_without_end_take_no_time() -> None:
    start = time.perf_counter()
    assert tagged_answer("<answer>" * 200_000) is None
    assert time.perf_counter() - start < 2


def test_a_thought_left_open_answers_nothing() -> None:
    assert read_answer("<think>It may be 5.\nAnswer: 5") is None
    assert read_answer("<think>6?</think>\nAnswer: 4\n<think>or") == 4
