import pytest

from latih.rewards.letters import grade, normal


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("(A) Bo", "Bo"),
        ("+ A. Bo", "Bo"),
        ("- **(A)** _Bo_", "Bo"),
        ("**A. Colonel Mustard**", "Colonel Mustard"),
        ("A. snake_case", "snake_case"),  # a mark within a word belongs to it
        ("A. `snake_case`", "snake_case"),
        ("A. 1.5", "1.5"),
        ("A. 1.5.", "1.5"),
        ("A. Mrs Peacock", "Mrs. Peacock"),
    ],
)
def test_what_a_person_would_take_is_taken(text: str, truth: str) -> None:
    assert grade(text, {"A": truth}) == {"A": True}


@pytest.mark.parametrize(
    ("value", "other"), [("1.5", "15"), ("$1.50", "$150"), ("2*3", "23"), ("2**3", "23"), ("a_b", "ab"), (".5", "5")]
)
def test_different_values_stay_different(value: str, other: str) -> None:
    assert normal(value) != normal(other)
    assert grade(f"A. {value}", {"A": other}) == {"A": False}


def test_a_letter_in_brackets_is_a_candidate_like_another() -> None:
    assert grade("(A) Ada\nA. Bo", {"A": "Bo"}) == {"A": False}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("A. Bo\nA. Cy?", False),
        ("A. Bo?\nA. Bo", False),
        ("A. Bo?", False),
        ("A. In which house was it?\nA. Bo", True),
        ("A. Was it Bo or Cy?", None),
    ],
)
def test_a_doubt_is_a_candidate_and_a_question_is_none(text: str, right: bool | None) -> None:
    assert grade(text, {"A": "Bo"}) == {"A": right}
