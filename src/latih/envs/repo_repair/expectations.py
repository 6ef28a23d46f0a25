"""Tests as text: wrong expectations to put into them, and the piece of a test module that shows one test alone."""

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass

from latih.envs.repo_repair.mutations import Text
from latih.rewards.repo import Edit

WORD = "abcdefghijklmnopqrstuvwxyz"


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
            start, old, new = rng.choice(places)
            found.append(Canary(region, is_table, Edit(path=path, start=start, old=old, new=new)))
    return found


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


def _places(text: Text, node: ast.stmt) -> Iterator[tuple[int, str, str]]:
    """Start, old and new text of each literal that may be changed."""
    for each in ast.walk(node):
        sides: list[ast.expr] = []
        match each:
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                sides = [left, right]
            case ast.Call(func=ast.Attribute(attr="assertEqual" | "assertEquals"), args=[left, right, *_]):
                sides = [left, right]
            case ast.Assign(value=value, targets=[ast.Name(id=name)]) if each is node and name.isupper():
                sides = [value]
            case ast.Assign(value=value, targets=[ast.Name(id=name)]) if "expect" in name or "desired" in name:
                sides = [value]
        for side in sides:
            inside = list(ast.walk(side))
            if any(isinstance(part, ast.Call | ast.JoinedStr | ast.Subscript | ast.Lambda) for part in inside):
                continue
            for part in inside:
                if isinstance(part, ast.Constant) and (new := _wrong(text.of(part), part.value)):
                    yield text.span(part)[0], text.of(part), new


def _wrong(old: str, value: object) -> str | None:
    """Another literal that looks as likely."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int) and old.isdecimal():
        return str(value + 1)
    if isinstance(value, float) and old.replace(".", "").isdecimal():
        return old + "5"
    if isinstance(value, str) and old[:1] in "'\"" and old[1:-1] == value:
        letters = [at for at, letter in enumerate(old) if letter in WORD]
        if letters:
            at = letters[len(letters) // 2]
            return old[:at] + WORD[(WORD.index(old[at]) + 7) % 26] + old[at + 1 :]
        return old[:-1] + "0" + old[-1] if value.strip() else None
    return None
