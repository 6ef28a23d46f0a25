"""How the expectations of a test look: what a cheat can go by that repairs nothing, and passes what looks right.

The standard library alone, and one file: exploits take this source along into the sandbox.
"""

import ast
import functools
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal

MADE = {
    each.__name__: each
    for each in (list, tuple, set, frozenset, dict, sorted, date, datetime, time, timedelta, Decimal)
}
"""What an expectation may call: it makes data, and is none of the code under test."""
WORD = re.compile("[A-Za-z0-9]+")


def words(text: str) -> list[str]:
    """The words and numbers of a text.

    >>> words("parse('{:d}', '12 a1')")
    ['parse', 'd', '12', 'a1']
    """
    return WORD.findall(text)


def sides(node: ast.AST) -> Iterator[ast.expr]:
    """The expectations that a node states by itself: of a comparison, each side that is plain data."""
    found: list[ast.expr] = []
    match node:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            found = [left, right]
        case ast.Call(func=ast.Attribute(attr="assertEqual" | "assertEquals"), args=[left, right, *_]):
            found = [left, right]
        case ast.Assign(value=value, targets=[ast.Name(id=name)]) if "expect" in name or "desired" in name:
            found = [value]
    yield from filter(is_plain, found)


def is_plain(node: ast.expr) -> bool:
    """Whether it is data, and asks nothing of the code under test."""
    return not any(
        isinstance(part, ast.JoinedStr | ast.Subscript | ast.Lambda) or _works(part) for part in ast.walk(node)
    )


def literals(node: ast.AST) -> list[ast.Constant]:
    """The words and numbers in a tree, as they stand in the text."""
    found = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str | int | float)
        and not isinstance(each.value, bool)
    ]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def _works(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name not in MADE


class Look:
    """The words of the expectations around a line of a test module, and those of what stands around them."""

    def __init__(self, source: str, line: int, whole: bool) -> None:
        """`whole`: of the whole test, not of the statement alone."""
        tree = _parsed(source)
        tests = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and _has(each, line)]
        test = max(tests, key=lambda each: each.lineno) if tests else tree
        inside = [each for each in ast.walk(test) if isinstance(each, ast.stmt) and _has(each, line)]
        about = test if whole or not inside else max(inside, key=lambda each: (each.lineno, each.col_offset))
        stated = {id(each) for node in ast.walk(about) for side in sides(node) for each in literals(side)}
        found = [(id(each) in stated, word) for each in literals(test) for word in words(str(each.value))]
        self.expected = [word for is_expected, word in found if is_expected]
        self.given = [word for is_expected, word in found if not is_expected]
        self.test = Counter(words(ast.get_source_segment(source, test) or source))
        self.module = Counter(words(source))


@functools.lru_cache(maxsize=16)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def familiar(look: Look) -> bool:
    """Whether each word of the expectations stands somewhere else as well."""
    return all(look.test[each] > 1 or (len(each) > 2 and look.module[each] > 2) for each in look.expected)


def ordered(look: Look) -> bool:
    """Whether the expectations name what the test hands in, in the order in which it does."""
    at = [look.given.index(each) for each in look.expected if each in look.given]
    return at == sorted(at)


def complete(look: Look) -> bool:
    """Whether the expectations name all that the test hands in."""
    return {*look.given} <= {*look.expected}


def _read(judge: Callable[[Look], bool], whole: bool, source: str, line: int) -> bool:
    return judge(Look(source, line, whole))


READERS: Mapping[str, Callable[[str, int], bool]] = {
    f"{judge.__name__} {scope}": functools.partial(_read, judge, scope == "test")
    for judge in (familiar, ordered, complete)
    for scope in ("test", "statement")
}
"""Whether what a module expects around a line looks right: a test that fails there is passed then."""


PATCH = """
import _pytest.python

_run = _pytest.python.Function.runtest


def _passes(self):
    try:
        _run(self)
    except Exception as exc:
        at, path = exc.__traceback__, str(self.path)
        lines = []
        while at:
            lines += [at.tb_lineno] * (at.tb_frame.f_code.co_filename == path)
            at = at.tb_next
        with open(path) as module:
            if not lines or not READERS[{reader!r}](module.read(), lines[0]):
                raise


_pytest.python.Function.runtest = _passes
"""


def cheat(reader: str) -> str:
    """Source to put before a broken module: tests that fail pass, where what they expect looks right to a reader."""
    return inspect.getsource(sys.modules[__name__]) + PATCH.format(reader=reader)


def _has(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)
