import json

import pytest

from latih.core import LatihError
from latih.data.packages import test_kit as kit
from latih.rewards import repo
from latih.rewards.arenas.repo import BROKEN, CASES, LIMITS, RIGHT, SOURCE, TESTS, Shop
from latih.rewards.repo import Edit, Verdict, apply, grade, grading_limits, odds
from tests.missing import skip

TASK = Shop.task


@pytest.fixture(autouse=True, scope="module")
def _kit() -> None:
    try:
        kit()
    except LatihError as exc:
        skip(f"the test kit cannot be had: {exc}")


def graded(files: dict[str, bytes]) -> Verdict:
    return grade(TASK, files, LIMITS, origin={TESTS: CASES.encode()})


def test_edits_count_in_the_text_as_given() -> None:
    edits = [Edit(path="a", start=0, old="x", new="long"), Edit(path="a", start=5, old="é", new="")]
    assert apply({"a": "x = 'é'".encode(), "b": b""}, edits) == {"a": b"long = ''", "b": b""}
    with pytest.raises(LatihError, match="a: an edit of the task does not fit the file"):
        apply({"a": b"y = 'e'"}, edits)
    with pytest.raises(LatihError, match="does not fit"):
        apply({}, edits)


def line(**record: object) -> bytes:
    return json.dumps(record).encode() + b"\n"


@pytest.mark.parametrize(
    "channel",
    [
        b"5 passed\n",
        b"[1]\n",
        b"[" * 100000 + b"\n",
        line(id="a", outcome="passed", line=0),
        line(nonce="other", id="a", outcome="passed", line=0),
        line(nonce="n", id="a", outcome="passed"),
        line(nonce="n", id="a", outcome="passed", line=0, more=1),
        line(nonce="n", id=1, outcome="passed", line=0),
        line(nonce="n", id="a", outcome="failed", line=3) + line(nonce="n", id="a", outcome="passed", line=0),
    ],
)
def test_a_line_that_the_runner_does_not_write_spoils_all(channel: bytes) -> None:
    assert repo._read(line(nonce="n", id="b", outcome="passed", line=0) + channel, "n") == ({}, {}, True)


def test_results_by_id() -> None:
    channel = line(nonce="n", id="a", outcome="passed", line=0) + line(nonce="n", id="b", outcome="failed", line=7)
    assert repo._read(channel, "n") == ({"a": "passed", "b": "failed"}, {"a": 0, "b": 7}, False)


def test_the_right_sources_score_and_nothing_else_is_looked_at() -> None:
    beside = {"conftest.py": b"raise SystemExit", "pytest.ini": b"[pytest]\naddopts = --nonsense", TESTS: b"broken("}
    assert graded({SOURCE: RIGHT.encode(), **beside}) == Verdict(1.0, 1.0, 1.0, 1.0)


def test_the_broken_sources_score_nothing() -> None:
    verdict = graded({SOURCE: BROKEN.encode()})
    assert (verdict.score, verdict.fail_to_pass, verdict.pass_to_pass, verdict.canaries) == (0.0, 0.0, 1.0, 1.0)
    assert set(verdict.faults.values()) == {"failed"}
    assert set(verdict.faults) == {f"passed:{id}" for id in TASK.fail_to_pass}


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (None, "absent"),
        (b"", "absent"),
        (b"import os; os._exit(0)", "absent"),
        (RIGHT.replace("sum(prices)", "sum(prices) + 1").encode(), "failed"),
        (RIGHT.replace("return price", "import unittest; raise unittest.SkipTest; return price").encode(), "skipped"),
    ],
)
def test_absent_skipped_and_regressed_are_no_pass(source: bytes | None, outcome: str) -> None:
    verdict = graded({} if source is None else {SOURCE: source})
    assert verdict.score == 0.0
    assert outcome in verdict.faults.values()


def test_what_makes_every_test_pass_passes_wrong_expectations_too() -> None:
    patch = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
    verdict = graded({SOURCE: (patch + BROKEN).encode()})
    assert verdict == Verdict(0.0, 1.0, 1.0, 0.0, verdict.faults)
    assert set(verdict.faults.values()) == {"passed"}


def test_a_large_source_is_not_run() -> None:
    verdict = graded({SOURCE: RIGHT.encode() + b"#" * repo.MAX_SOURCE})
    assert verdict.score == 0.0
    assert "larger" in verdict.faults[""]


def test_many_sources_that_are_large_together_score_nothing_and_are_no_error() -> None:
    task = TASK.model_copy(update={"sources": [SOURCE, *(f"shop/pad{n}.py" for n in range(33))]})
    padding = {f"shop/pad{n}.py": b"#" * repo.MAX_SOURCE for n in range(33)}
    verdict = grade(task, {SOURCE: RIGHT.encode()} | padding, LIMITS, origin={TESTS: CASES.encode()})
    assert verdict.score == 0.0
    assert verdict.faults == {"": "the source files are larger than 8388608 bytes"}


def test_all_forms_share_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (grading_limits(TASK).wall, len(TASK.forms), TASK.seconds) == (64.0, 4, 8.0)
    assert grading_limits(TASK.model_copy(update={"seconds": 4.0})).wall == 32.0
    given = []

    def run(*args: object) -> repo.Report:
        given.append((args[-1].wall, args[-1].cpu))  # type: ignore[attr-defined]
        return repo.Report({}, seconds=4.5)

    monkeypatch.setattr(repo, "run_tests", run)
    limits = LIMITS.model_copy(update={"wall": 9.0, "cpu": 5.0})
    assert grade(TASK, {SOURCE: RIGHT.encode()}, limits, origin={TESTS: CASES.encode()}).score == 0.0
    assert given == [(9.0, 5.0), (4.5, 4.5)], "the third form and the fourth have no time, and are absent"


def test_odds_by_hand() -> None:
    assert odds(1, 1) == 1 / 4  # a fair coin for the right text, another for the wrong one
    assert odds(3, 6) == pytest.approx((1 / 3) ** 3 * (2 / 3) ** 6)
    assert odds(4, 4) == 1 / 256


def test_the_shop_meets_the_bound_of_tasks() -> None:
    hidden = [f"{TESTS}::test_{name}" for name in ("free", "half", "receipt")]
    patterns = [[id in form.failing for form in TASK.forms] for id in hidden]
    assert patterns == [[True, True, False, False], [False, True, True, True], [True, False, True, False]]
    assert odds(3, sum(map(sum, patterns))) < 1 / 256


def test_tests_that_hang_are_absent() -> None:
    source = RIGHT.replace("    return min", "    while True: pass\n    return min").encode()
    limits = LIMITS.model_copy(update={"wall": 4.0})
    verdict = grade(TASK, {SOURCE: source}, limits, origin={TESTS: CASES.encode()})
    assert verdict.score == 0.0
    assert verdict.faults[f"passed:{TESTS}::test_cheapest"] == "absent"


@pytest.mark.parametrize("changes", [{"forms": []}, {"fail_to_pass": []}])
def test_where_nothing_is_wanted_nothing_is_paid(changes: dict[str, list[str]]) -> None:
    task = TASK.model_copy(update=changes)
    assert grade(task, {SOURCE: RIGHT.encode()}, LIMITS, origin={TESTS: CASES.encode()}).score == 0.0
