import json
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latih.rewards.numbers import final_number, read_number

GSM8K = next(
    (each / "shared" / "data" / "gsm8k" for each in Path(__file__).parents if (each / "shared/data/gsm8k").is_dir()),
    None,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("72", 72),
        (" **72.** ", 72),
        ("007", 7),
        ("-3", -3),
        ("\u22123", -3),
        ("+3", 3),
        ("3.50", Fraction(7, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("0.1", Fraction(1, 10)),
        ("1,234,567.25", Fraction(4938269, 4)),
        ("1{,}234", 1234),
        (r"1\,234", 1234),
        ("1\u202f234", 1234),
        ("$1,200", 1200),
        ("-$5", -5),
        ("$-5", -5),
        (r"\$5", 5),
        ("$72$", 72),
        (r"\(72\)", 72),
        ("US$5", 5),
        ("EUR 5", 5),
        ("5 €", 5),
        ("5 USD", 5),
        ("25%", 25),
        (r"12.5\%", Fraction(25, 2)),
        ("25 percent", 25),
        ("72 clips", 72),
        ("60 km/h", 60),
        ("5km", 5),
        ("12 sq. ft.", 12),
        ("3 m²", 3),
        (r"90^\circ", 90),
        (r"72\text{ clips}", 72),
        ("$20 per hour", 20),
        ("5 more of Tom's apples", 5),
        ("5 fifth graders", 5),
        ("3 months", 3),
        ("2.5 million dollars", 2500000),
        ("3 thousand", 3000),
        ("3/4", Fraction(3, 4)),
        ("-3/4 cup", Fraction(-3, 4)),
        ("1 3/4 cups", Fraction(7, 4)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"-1\dfrac{3}{4}", Fraction(-7, 4)),
        ("¾", Fraction(3, 4)),
        ("1½ hours", Fraction(3, 2)),
        (r"\boxed{72}", 72),
        ("**18** dollars", 18),
        ("** **18** dollars", 18),
        ("**1** 3/4 cups", Fraction(7, 4)),
        ("$18.00/day", 18),
        ("18 €/ day", 18),
        ("25%/year", 25),
        ("(72)", 72),
        ("**(72).**", 72),
        ("(-3/4 cup)", Fraction(-3, 4)),
        ("\u20135", -5),
        ("$\u20135", -5),
    ],
)
def test_values_are_exact(text: str, value: Fraction) -> None:
    assert read_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", "$", "seventy", "clips", "She has 72 clips", "x = 72", "at least 5"),
        *("72 73", "72, 73", "72 or 73", "72 or six", "five or 6", "5 and 3", "5-6", "5 to 6", "5 apples and 3 pears"),
        *("12,34", "1,2", "1234,567", "1,2345", ",123", "1.2.3", "1 234", "1_000"),
        *("--5", "-$-5", "5-", "5 dozen", "5 hundred", "5 six", "5 times", "2 halves"),
        *("3 fifths", "7 tenths", "5 hundredths", "1 third", "2 sixteenths", "3 twentieths", "2 quarters of it"),
        *("5 doubled", "5 halved", "5 factorial", "5 tens", "0.3 recurring", "5 multiplied by itself"),
        *("8/2", "3/6", "4/1", "1/0", "0/5", "1 4/3", r"\frac{8}{2}", r"\frac{1}{0}"),
        *("2+3", "2 * 3", "9^9", "9**9", "9^{9^{9^9}}", r"\boxed{9^{9^{9^9}}}", "1e9", "0x10", "inf", "nan", "5!"),
        *(
            "72\u00b2",
            "7\u2074",
            "72 \u2461",
            "72\u4e07",
            "2 thou\u017fand",
            "2 m\u0131ll\u0131on",
            "5k",
            "5 K",
            "$3m",
            "$2 B",
            "3 lakh",
        ),
        *("12 a.m.", "12 am", "12am", "3 p.m.", "3 P.M. on Friday", "12 a. m."),
        *("5*y", "5* y", "*5 * y", "2**3", "**5** 6", "**5** or six", "**5 or 6** dollars"),
        *("3/n", "18/day", "$18/two days", "$18/2 days", "$18 or $19/day", "18//day"),
        *("($5)", "(5", "5)", "(5) 6", "(5)(6)", "(5) or (6)", "((5))", "5\u20136", "\u2013\u20135"),
        *("\u0667\u0662", "\uff17\uff12", "10:30", "9" * 201, "9" * 5000, "72 " + "clip " * 7),
    ],
)
def test_all_else_is_no_value(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("48/2 = 24\n48+24 = 72\n#### 72", 72),
        ("It is 5.\nAnswer: 72", 72),
        ("I add them up. The final answer is: **72 clips**", 72),
        ("**Answer:** $1,450.00\n", 1450),
        (r"So $\boxed{72}$.", 72),
        ("\\[\n\\boxed{\\frac{1}{2}}\n\\]", Fraction(1, 2)),
        (r"Answer: \boxed{72}", 72),
        (r"#### \boxed{72}", 72),
        ("72", 72),
        ("$72.", 72),
        ("**#### 72**", 72),
        ("<think>\nAnswer: 71\n</think>\nAnswer: 72", 72),
        ("3 m\u00b2", 3),
        ("3 m", 3),
    ],
)
def test_the_answer_is_what_is_marked(text: str, value: Fraction) -> None:
    assert final_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "She has 72 clips.",
        "The answer is 72.",
        "72 73 74",
        "#### 72\n#### 73",
        "#### 72\n#### 72",
        "Answer: 72\nAnswer: 73",
        "Answer: 72\n#### 73",
        "Answer: 72 Answer: 73",
        r"\boxed{72}" + "\n" + r"\boxed{73}",
        r"\boxed{72} \boxed{73}",
        r"\boxed{72} or 73",
        r"\boxed{72, 73}",
        r"Answer: 71 \boxed{72}",
        "#### 72 or 73",
        "#### A or B or C",
        "####",
        "##### 72",
        "#### Step 1\n#### 72",
        "Answer:\n72",
        "Answer: 48 + 24",
        *("\n".join(form.format(n) for n in range(100)) for form in ("{}", "#### {}", "Answer: {}", r"\boxed{{{}}}")),
    ],
)
def test_no_answer_or_more_than_one_is_none(text: str) -> None:
    assert final_number(text) is None


FORMS = ["#### {}", "Answer: {}", "Let me see.\nThe answer is: {}.", r"Thus \boxed{{{}}}.", "{}"]


@given(st.integers(-(10**12), 10**12), st.integers(0, 4), st.sampled_from(FORMS))
def test_every_way_to_write_a_number_gives_it(cents: int, places: int, form: str) -> None:
    value = Fraction(cents, 10**places)
    sign, size = "-" if value < 0 else "", abs(value)
    digits = f"{size.numerator * 10**places // size.denominator:0{places + 1}d}"
    whole, decimals = (digits[:-places], "." + digits[-places:]) if places else (digits, "")
    for written in (sign + whole + decimals, f"{sign}${int(whole):,}{decimals}", f"{sign}{int(whole):,}{decimals} kg"):
        assert final_number(form.format(written)) == value
    if value.denominator > 1:
        assert final_number(form.format(value)) == value


@given(st.sampled_from(FORMS[:-1]), st.sampled_from(FORMS[:-1]), st.integers(0, 99), st.integers(0, 99))
def test_two_marked_answers_are_none(one: str, other: str, first: int, second: int) -> None:
    assert final_number(f"{one.format(first)}\n{other.format(second)}") is None


@given(st.text(alphabet="0123456789 $\\boxed{}answer:#.,/%-+^\n½", max_size=300))
def test_any_text_has_a_number_or_none(text: str) -> None:
    assert final_number(text) is None or isinstance(final_number(text), Fraction)


@pytest.mark.parametrize(
    "text",
    [
        "#### " + "a" * 10**6,
        "\\boxed{" * 10**5,
        "Answer: " * 10**5,
        "answer " + " *_" * 10**5,
        "#### 1" + " a" * 97,
        "#### 1" + " a.a-" * 38,
        r"\boxed{" + "{}" * 90,
        "#### " + "* _" * 60 + "1",
        "#### " + "**1" * 60,
        " " * 10**5 + "#### 1",
        "1" + ",111" * 10**5,
    ],
)
def test_hostile_texts_take_no_time(text: str) -> None:
    start = time.process_time()
    assert final_number(text) in (None, 1)
    assert time.process_time() - start < 0.5


@pytest.mark.skipif(GSM8K is None, reason="the data set is not beside the repository (shared/data/gsm8k)")
def test_every_reference_solution_of_gsm8k_is_right_and_wrong_with_another_number() -> None:
    assert GSM8K is not None
    count = 0
    for name in ("train", "test"):
        for line in (GSM8K / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            solution = json.loads(line)["answer"]
            head, _, number = solution.rpartition("#### ")
            truth = int(number.replace(",", ""))
            assert final_number(solution) == truth
            for changed in (f"{truth + 1}", f"{truth * 10 + 1:,}", f"{truth}.5", f"{truth} or {truth + 1}"):
                assert final_number(f"{head}#### {changed}") != truth
            assert final_number(f"{solution}\n#### {truth}") is None
            count += 1
    assert count == 8792
