"""How functions are often graded: code and tests in one process, whose word is taken for the result."""

from collections.abc import Sequence

from latih.rewards.function import LIMITS, Case
from latih.sandbox import Limits, run

SCRIPT = """
namespace = {}
exec(open("solution.py").read(), namespace)
exec(open("tests.py").read(), namespace)
print("PASSED")
"""
TESTS = """
CASES = {cases!r}
assert all({check} for args, expected in CASES)
"""


def run_tests(
    source: str, name: str, cases: Sequence[Case], check: str = "", limits: Limits | None = None
) -> dict[str, bool]:
    """Whether tests that are run with the code leave with `exit code` 0, and whether they `printed` PASSED.

    `check` is an expression of `args` and `expected`; by default that the function returns what is expected. Raises
    SandboxError.
    """
    pairs = [(case.args, case.expected) for case in cases]
    tests = TESTS.format(cases=pairs, check=check or f"{name}(*args) == expected")
    files: dict[str, bytes | str] = {"solution.py": source.encode(errors="replace"), "tests.py": tests}
    result = run(SCRIPT, files=files, limits=limits or LIMITS)
    return {"exit code": result.code == 0, "printed": b"PASSED" in result.stdout}


def fraction(source: str, name: str, cases: Sequence[Case], limits: Limits | None = None) -> float:
    """The fraction of tests that pass, as the process prints it that ran them and the code. Raises SandboxError."""
    pairs = [(case.args, case.expected) for case in cases]
    tests = f"CASES = {pairs!r}\nprint(sum({name}(*args) == expected for args, expected in CASES))\n"
    files: dict[str, bytes | str] = {"solution.py": source.encode(errors="replace"), "tests.py": tests}
    printed = run(SCRIPT, files=files, limits=limits or LIMITS).stdout.split()
    return int(printed[-2]) / len(cases) if len(printed) >= 2 and printed[-2].isdigit() else 0.0
