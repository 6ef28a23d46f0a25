"""Bugs: small changes to Python source, found by walking its syntax tree and made in its text, so the rest stays as is.

The kinds are the usual mutation operators (Jia and Harman, 2011, "An Analysis and Survey of the Development of Mutation
Testing", table 3), in the sizes in which people make mistakes.
"""

import ast
import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from latih.core.syntax import parse
from latih.rewards.repo import Edit

COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARE |= {"in": "not in", "not in": "in", "is": "is not", "is not": "is"}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "//": "*", "%": "//"}
LOGIC = {"and": "or", "or": "and"}
NAMES = [
    ("startswith", "endswith"),
    ("lstrip", "rstrip"),
    ("lower", "upper"),
    ("append", "extend"),
    ("find", "rfind"),
    ("split", "rsplit"),
    ("min", "max"),
    ("any", "all"),
]
SWAPS = dict(itertools.chain(NAMES, ((b, a) for a, b in NAMES)))
SIMPLE = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript)
"""Expressions that hold together without parentheses."""


@dataclass(frozen=True)
class Bug:
    """A change that may break something."""

    kind: str
    edit: Edit


class Text:
    """A source text and where the nodes of its tree stand in it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = parse(source)
        self.lines = source.split("\n")
        self.starts = [0, *itertools.accumulate(len(line) + 1 for line in self.lines)]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Start and end of a node, in characters."""
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.source[start:end]

    def _at(self, line: int, column: int) -> int:
        text = self.lines[line - 1]
        # The tree counts in bytes of UTF-8.
        return self.starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))


def find_bugs(path: str, source: str, rng: random.Random) -> list[Bug]:
    """Every bug there is to make in a file, in the order of its text. `rng` chooses wrong variables.

    Empty for a text that is no Python, or whose lines end otherwise than in a line feed.
    """
    if "\r" in source or "\f" in source:
        return []
    try:
        text = Text(source)
    except (SyntaxError, ValueError):
        return []
    bugs = [
        Bug(kind, Edit(path=path, start=start, old=source[start:end], new=new))
        for node in _code(text.tree)
        for kind, start, end, new in _changes(text, node, rng)
        if source[start:end] != new
    ]
    return sorted(bugs, key=lambda bug: (bug.edit.start, bug.kind, bug.edit.new))


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotations, no docstrings, nothing under `if __name__ == "__main__"`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "__name__" in ast.dump(child.test):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.JoinedStr):  # what stands inside has no usable place before Python 3.12
            continue
        if isinstance(child, ast.arg | ast.AnnAssign):
            continue
        if isinstance(tree, ast.FunctionDef) and child is tree.returns:
            continue
        yield child
        yield from _code(child)


def _changes(text: Text, node: ast.AST, rng: random.Random) -> Iterator[tuple[str, int, int, str]]:
    """The changes to one node: kind, start, end, new text."""
    match node:
        case ast.Compare(left=left, comparators=[right]):
            yield from _operator(text, "comparison", left, right, COMPARE)
        case ast.BoolOp(values=[left, right]):
            yield from _operator(text, "logic", left, right, LOGIC)
        case ast.BinOp(left=left, right=right):
            yield from _operator(text, "arithmetic", left, right, ARITHMETIC)
            if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod):
                yield from _swap(text, left, right)
        case ast.Call(args=[left, right, *_]):
            yield from _swap(text, left, right)
        case ast.Constant(value=int(value)) if text.of(node).isdecimal():
            for new in (value + 1, value - 1):
                if new >= 0:
                    yield ("constant", *text.span(node), str(new))
        case ast.Constant(value=bool(value)):
            yield ("constant", *text.span(node), str(not value))
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield ("dropped return", *text.span(node), text.of(value))
        case ast.If(body=[ast.Assign() | ast.AugAssign() | ast.Expr() | ast.Return() | ast.Raise() as only]):
            yield ("dropped branch", *text.span(only), "pass")
        case ast.Break() | ast.Continue():
            yield ("loop", *text.span(node), "continue" if isinstance(node, ast.Break) else "break")
        case ast.FunctionDef():
            yield from _wrong_variables(text, node, rng)
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        start, end = text.span(node.test)
        match node.test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                yield "condition", start, end, text.of(inner)
            case ast.Compare() | ast.BoolOp() | ast.NamedExpr():
                pass
            case _:
                yield "condition", start, end, f"not {text.of(node.test)}"
    if isinstance(node, ast.Attribute) and node.attr in SWAPS:
        end = text.span(node)[1]
        yield "wrong name", end - len(node.attr), end, SWAPS[node.attr]
    if isinstance(node, ast.Name) and node.id in SWAPS:
        yield ("wrong name", *text.span(node), SWAPS[node.id])


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _operator(
    text: Text, kind: str, left: ast.expr, right: ast.expr, table: dict[str, str]
) -> Iterator[tuple[str, int, int, str]]:
    start, end = text.span(left)[1], text.span(right)[0]
    between = text.source[start:end]
    symbol = " ".join(between.split())
    # Where parentheses or comments stand between, it is left alone.
    if symbol in table:
        yield kind, start, end, between.replace(re.sub(r"\s+", " ", between).strip(), table[symbol])


def _swap(text: Text, left: ast.expr, right: ast.expr) -> Iterator[tuple[str, int, int, str]]:
    if isinstance(left, SIMPLE) and isinstance(right, SIMPLE):
        (start, left_end), (right_start, end) = text.span(left), text.span(right)
        yield "swapped", start, end, text.of(right) + text.source[left_end:right_start] + text.of(left)


def _wrong_variables(text: Text, function: ast.FunctionDef, rng: random.Random) -> Iterator[tuple[str, int, int, str]]:
    names = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    loads = []
    for node in itertools.chain.from_iterable(map(_code_of, function.body)):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
            else:
                loads.append(node)
    for node in loads:
        others = sorted(names - {node.id, "self", "cls"})
        if node.id in names and others:
            yield ("wrong variable", *text.span(node), rng.choice(others))


def _code_of(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    yield from _code(node)
