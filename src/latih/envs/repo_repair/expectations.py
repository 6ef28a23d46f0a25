"""Tests as text: wrong expectations to put into them, and the piece of a test module that shows one test alone."""

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass

from latih.envs.repo_repair.lookalikes import NEAR, lookalikes
from latih.envs.repo_repair.mutations import Text
from latih.rewards.looks import MADE, is_plain, sides
from latih.rewards.repo import Edit

WORD = "abcdefghijklmnopqrstuvwxyz"
SIMPLE = (ast.Assert, ast.Expr)
DATA = (
    *(ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.USub),
    *(ast.Call, ast.keyword, ast.Name, ast.Load),
)
"""What an expectation is made of, where it can be looked at without the module's help."""


@dataclass(frozen=True)
class Canary:
    """A wrong expectation, and the part of the module in which it stands."""

    region: str
    """`test_name`, `Class::test_name`, or the name of a table that the module assigns."""
    is_table: bool
    edit: Edit


def function_of(id: str) -> str:
    """The test function of an id, without its parameters.

    >>> function_of("tests/test_a.py::TestA::test_b[c-d::e]")
    'tests/test_a.py::TestA::test_b'
    """
    return id.partition("[")[0]


def wrong_expectations(path: str, source: str, rng: random.Random) -> list[Canary]:
    """One for each test function, and each table, that has a place for one; `rng` chooses the place.

    A place is a literal that the code under test does not get: in an assertion, the side that calls nothing; in an
    assignment of plain data. Empty for a text whose lines end otherwise than in a line feed.
    """
    if "\r" in source or "\f" in source:
        return []
    text = Text(source)
    found = []
    for region, is_table, nodes in _regions(text.tree):
        places = [place for node in nodes for place in _places(text, node)]
        if places:
            found.append(Canary(region, is_table, _edit(path, text, rng.choice(places), rng)))
    return found


def untellable(path: str, source: str, function: str, line: int, most: int, rng: random.Random) -> list[Edit]:
    """Different wrong expectations for one test function, `most` at most, that code which fails at `line` cannot tell.

    They stand in the very statement that fails; or, where that assigns something, in one that looks at it. Whatever
    else stands in the test, such code passes or fails truthfully, so that a wrong expectation there would be seen.
    """
    if "\r" in source or "\f" in source:
        return []
    text = Text(source)
    found_here = [nodes for region, _, nodes in _regions(text.tree) if region == function]
    body = found_here[-1] if found_here else []  # of two of one name Python keeps the last
    statements = [each for node in body for each in ast.walk(node) if isinstance(each, ast.stmt)]
    at = [each for each in statements if each.lineno <= line <= (each.end_lineno or 0)]
    if not at:
        return []
    failing = max(at, key=lambda each: (each.lineno, each.col_offset))
    here = [failing]
    if isinstance(failing, ast.Assign):
        names = {each.id for target in failing.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        here = [each for each in statements if each.lineno > line and isinstance(each, SIMPLE) and _names(each) & names]
    every = [place for node in body for place in _words_of(text, node)]
    found: dict[tuple[int, str], Edit] = {}
    for node in rng.sample(here, len(here)):
        for edit in lookalikes(path, text, body, _words_of(text, node), every, rng):
            if _is_other_data(text, node, edit):
                found.setdefault((edit.start, edit.new), edit)
            if len(found) == most:
                return [*found.values()]
    return []


def _words_of(text: Text, node: ast.stmt) -> list[ast.Constant]:
    """The literals of its expectations, but for truth values: of one there is one wrong one."""
    return [place for place in _places(text, node) if not isinstance(place.value, bool)]


def _is_other_data(text: Text, node: ast.stmt, edit: Edit) -> bool:
    """Whether a changed expectation can be made, and differs: a set knows no order, and a February no 30th."""
    for side in (side for each in ast.walk(node) for side in sides(each)):
        start, end = text.span(side)
        if start <= edit.start < end:
            old, at = text.source[start:end], edit.start - start
            new = old[:at] + edit.new + old[at + len(edit.old) :]
            try:
                return bool(_data(new) != _data(old))
            except NameError:  # it names something of the module
                return True
            except (ValueError, SyntaxError, TypeError, ArithmeticError):
                return False
    return True


def _data(source: str) -> object:
    tree = ast.parse(source, mode="eval")
    if not all(isinstance(each, DATA) for each in ast.walk(tree)):
        raise NameError(source)
    return eval(compile(tree, "", "eval"), {"__builtins__": {}} | MADE)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _edit(path: str, text: Text, place: ast.Constant, rng: random.Random) -> Edit:
    old = text.of(place)
    return Edit(path=path, start=text.span(place)[0], old=old, new=_wrong(old, place.value, rng))


def show_test(source: str, function: str) -> tuple[str, set[str]]:
    """A test module with no test but `function` (`name` or `Class::name`), and the names of what it kept.

    Kept are imports, and the definitions that the test refers to, by whatever way.
    """
    text = Text(source)
    outer, _, inner = function.partition("::")
    wanted: set[str] = set()
    names = {name for each in text.tree.body for name in _bound(each)}
    todo = [each for each in text.tree.body if outer in _bound(each)]
    while todo:
        node = todo.pop()
        wanted |= set(_bound(node))
        parts = _kept(node, inner) if isinstance(node, ast.ClassDef) and node.name == outer else [node]
        needed = {
            each.id if isinstance(each, ast.Name) else each.arg
            for part in parts
            for each in ast.walk(part)
            if isinstance(each, ast.Name | ast.arg)
        }
        todo += [each for each in text.tree.body if (needed & names - wanted) & set(_bound(each))]
    shown = []
    for node in text.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == outer:
            start = text.starts[_first_line(node) - 1]
            head = text.source[start : text.starts[_first_line(node.body[0]) - 1]]
            shown.append(head + "\n\n".join(_whole(text, each) for each in _kept(node, inner)))
        elif wanted & set(_bound(node)) or _imports(node):
            shown.append(_whole(text, node))
    kept = wanted - {outer} | {function}
    return "\n".join(shown) + "\n", kept


def _kept(node: ast.ClassDef, method: str) -> list[ast.stmt]:
    return [
        each
        for each in node.body
        if not isinstance(each, ast.FunctionDef) or each.name == method or not each.name.startswith("test")
    ]


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.Try | ast.If) and any(_imports(each) for each in node.body)
    )


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(each.lineno for each in decorators)])


def _whole(text: Text, node: ast.stmt) -> str:
    return text.source[text.starts[_first_line(node) - 1] : text.span(node)[1]] + "\n"


def _bound(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Try() | ast.If() | ast.With() | ast.For():
            return [name for each in node.body for name in _bound(each)]
    return []


def _regions(tree: ast.Module) -> Iterator[tuple[str, bool, list[ast.stmt]]]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name, body=body) if name.startswith("test"):
                yield name, False, body
            case ast.ClassDef(name=name):
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and each.name.startswith("test"):
                        yield f"{name}::{each.name}", False, each.body
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() | ast.List() | ast.Dict()):
                yield name, True, [node]


def _places(text: Text, node: ast.stmt) -> Iterator[ast.Constant]:
    """Each literal that may be changed: of what a test expects, and of a table."""
    plain = [side for each in ast.walk(node) for side in sides(each)]
    match node:
        case ast.Assign(value=value, targets=[ast.Name(id=name)]) if name.isupper() and is_plain(value):
            plain.append(value)
    for side in plain:
        for part in ast.walk(side):
            if isinstance(part, ast.Constant) and _changeable(text.of(part), part.value):
                yield part


def _changeable(old: str, value: object) -> bool:
    match value:
        case bool():
            return True
        case int() | float():
            return old.replace(".", "").isdecimal()
        case str():
            return old[:1] in ("'", '"') and old[1:-1] == value and bool(value.strip())
    return False


def _wrong(old: str, value: object, rng: random.Random) -> str:
    """Another literal that looks as likely. It is drawn: whoever knew how it is made could tell it from its look."""
    match value:
        case bool():
            return str(not value)
        case int():
            return str(rng.choice([each for each in range(max(0, value - NEAR), value + NEAR + 1) if each != value]))
        case float():
            return old + str(rng.randint(1, 9))
    letters = [at for at, letter in enumerate(old) if letter in WORD]
    if not letters:
        return old[:-1] + str(rng.randrange(10)) + old[-1]
    at = rng.choice(letters)
    return old[:at] + rng.choice(WORD.replace(old[at], "")) + old[at + 1 :]
