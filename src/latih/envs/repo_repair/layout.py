"""Which files of a source distribution are what: packages, tests, and what lies beside them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

NO_PACKAGES = {"bench", "benchmarks", "bin", "doc", "docs", "examples", "tools", "scripts", "requirements"}
TESTS = {"test", "tests", "testing"}
NO_MODULES = {"setup.py", "conftest.py", "noxfile.py", "tasks.py", "versioneer.py", "fabfile.py", "ez_setup.py"}
TEST_MODULE = re.compile(r"test_\w+\.py|\w+_tests?\.py|tests?\.py")


@dataclass(frozen=True)
class Layout:
    """The files of a project by their use; each a sorted list of paths."""

    roots: list[str]
    sources: list[str]
    fixed: list[str]
    support: list[str]
    test_files: list[str]


def lay_out(files: Mapping[str, bytes]) -> Layout:
    """Sort the files of an sdist. Where it has no packages or no tests, those lists are empty.

    Compiled files are none of it: they would show the right code, and hidden tests.
    """
    files = {name: data for name, data in files.items() if not name.endswith((".pyc", ".pyo"))}
    root = "src" if any(name.startswith("src/") and name.endswith(".py") for name in files) else "."
    tests = {name for name in files if _is_test(PurePosixPath(name))}
    folders = {str(PurePosixPath(name).parent) for name in tests} - {"."}
    support = tests | {name for name in files if any(name.startswith(f"{folder}/") for folder in folders)}
    # A package that holds its tests has them below; the folder of a lone test module is no folder of tests.
    support = {name for name in support if _in_tests(name) or name in tests}
    sources, fixed = set[str](), set[str]()
    for name in files.keys() - support:
        inside = name.removeprefix("src/") if root == "src" else name
        parts = PurePosixPath(inside).parts
        if root == "src" and inside == name:
            continue
        if len(parts) == 1:
            if name.endswith(".py") and name not in NO_MODULES:
                sources.add(name)
        elif parts[0] not in NO_PACKAGES | TESTS and f"{name.removesuffix(inside)}{parts[0]}/__init__.py" in files:
            (sources if name.endswith(".py") else fixed).add(name)
    return Layout([root], sorted(sources), sorted(fixed), sorted(support), sorted(tests))


def _is_test(path: PurePosixPath) -> bool:
    return (
        TEST_MODULE.fullmatch(path.name) is not None
        and not NO_PACKAGES & set(path.parts)
        and (len(path.parts) == 1 or _in_tests(str(path)))
    )


def _in_tests(name: str) -> bool:
    return bool(TESTS & set(PurePosixPath(name).parts[:-1]))
