"""Comparing what came out of the sandbox with what was expected: plain data, declared types, tolerance."""

import ast
import functools
import math
from typing import Any

from latih.core import ConfigError
from latih.core.syntax import parse_expression

SCALARS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "str": (str,),
    "None": (type(None),),
}
CONTAINERS = {"list": 1, "set": 1, "tuple": None, "dict": 2}
"""How many types each takes in its brackets; a tuple takes one for each element, or `T, ...`."""


def matches(expected: Any, wire: Any, returns: str | None = None, tolerance: float = 0.0) -> bool:
    """Whether data from the sandbox, in the form of `latih.rewards.caller.pack`, is the expected value.

    `returns` declares the type, such as `int`, `list[float]`, `dict[str, int]`, `tuple[int, ...]`, `int | None` or
    `any`. A bool is no int and an int no float, unless declared (`int | float`). Without a declaration each type must
    be that of the expected value. Where a float is expected or came, |value - expected| may be up to
    tolerance * max(1, |expected|). Raises ConfigError where `returns` cannot be read.

    >>> matches(1, 1), matches(1, True), matches(1, 1.0), matches(1, 1.0, "int | float")
    (True, False, False, True)
    """
    if returns is not None and not conforms(wire, returns):
        return False
    return _equal(expected, wire, returns is None, tolerance)


def conforms(wire: Any, declared: str) -> bool:
    """Whether data from the sandbox is of the declared type. Raises ConfigError."""
    return _conforms(wire, parse_type(declared))


def shaped(value: Any, declared: str) -> Any:
    """JSON read from a file, as a value of the declared type: lists become tuples or sets, keys become ints.

    Raises ValueError where it is not of that type, ConfigError where the type cannot be read.

    >>> shaped([[1, 2], {"3": [4]}], "tuple[list[int], dict[int, set[int]]]")
    ([1, 2], {3: {4}})
    """
    return _shaped(value, parse_type(declared))


@functools.cache
def parse_type(declared: str) -> ast.expr:
    """A declared type, checked. Raises ConfigError."""
    try:
        node = parse_expression(declared.strip())
    except (SyntaxError, ValueError):
        raise ConfigError(
            f"{declared!r} is no type: write for instance int, list[str] or dict[str, int] | None"
        ) from None
    _check(node, declared)
    return node


def _check(node: ast.expr, declared: str) -> None:
    match node:
        case ast.Name(id=name) if name in SCALARS or name == "any" or name in CONTAINERS:
            return
        case ast.Constant(value=None):
            return
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            parts = [left, right]
        case ast.Subscript(value=ast.Name(id=name)) if name in CONTAINERS:
            parts = _inner(node)
            if name == "tuple" and len(parts) == 2 and _is_dots(parts[1]):
                parts = parts[:1]
            elif CONTAINERS[name] not in (None, len(parts)):
                raise ConfigError(f"{declared!r} is no type: {name} takes {CONTAINERS[name]} in its brackets")
        case _:
            raise ConfigError(f"{declared!r} is no type: known are {', '.join([*SCALARS, *CONTAINERS, 'any'])}")
    for part in parts:
        _check(part, declared)


def _inner(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _content(wire: Any, kind: str) -> list[Any] | None:
    """What a container holds, in the form that travels; None where it is no such container."""
    if kind == "list":
        return wire if isinstance(wire, list) else None
    content = wire.get(kind) if isinstance(wire, dict) and len(wire) == 1 else None
    if not isinstance(content, list):
        return None
    if kind == "dict" and not all(isinstance(each, list) and len(each) == 2 for each in content):
        return None
    return content


def _conforms(wire: Any, node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return wire is None
        case ast.Name(id="any"):
            return True
        case ast.Name(id=name) if name in SCALARS:
            return type(wire) in SCALARS[name]
        case ast.Name(id=name):
            return _content(wire, name) is not None
        case ast.BinOp(left=left, right=right):
            return _conforms(wire, left) or _conforms(wire, right)
        case ast.Subscript(value=ast.Name(id=name)):
            content, inner = _content(wire, name), _inner(node)
            if content is None:
                return False
            if name == "dict":
                return all(_conforms(k, inner[0]) and _conforms(v, inner[1]) for k, v in content)
            if name == "tuple" and not (len(inner) == 2 and _is_dots(inner[1])):
                return len(content) == len(inner) and all(map(_conforms, content, inner))
            return all(_conforms(each, inner[0]) for each in content)
    return False


def _equal(expected: Any, wire: Any, strict: bool, tolerance: float) -> bool:
    """The walk is led by the expected value, so its depth and its length bound the work."""
    if expected is None or isinstance(expected, bool | str):
        return type(wire) is type(expected) and bool(wire == expected)
    if isinstance(expected, int | float):
        if type(wire) is not type(expected) and (strict or type(wire) not in (int, float)):
            return False
        return _close(expected, wire, tolerance)
    kind = type(expected).__name__
    content = _content(wire, kind)
    if content is None or len(content) != len(expected):
        return False
    if kind == "dict":
        return all(
            any(_equal(key, k, strict, 0.0) and _equal(value, v, strict, tolerance) for k, v in content)
            for key, value in expected.items()
        )
    if kind == "set":
        # Both ways: within a tolerance one value may be near to two.
        return all(any(_equal(each, w, strict, tolerance) for w in content) for each in expected) and all(
            any(_equal(each, w, strict, tolerance) for each in expected) for w in content
        )
    return all(_equal(each, w, strict, tolerance) for each, w in zip(expected, content, strict=True))


def _close(expected: float, value: float, tolerance: float) -> bool:
    if isinstance(expected, int) and isinstance(value, int):
        return expected == value
    if math.isnan(expected):
        return math.isnan(value)
    try:
        # An infinite value is near none but itself: its distance to a finite one is infinite, and the bound is not.
        return expected == value or abs(value - expected) <= tolerance * max(1.0, min(abs(expected), 1e300))
    except OverflowError:  # an int too large for a float
        return False


def _shaped(value: Any, node: ast.expr) -> Any:
    match node:
        case ast.BinOp(left=left, right=right):
            try:
                return _shaped(value, left)
            except ValueError:
                return _shaped(value, right)
        case ast.Constant() if value is None:
            return None
        case ast.Name(id="any"):
            return value
        case ast.Name(id=name) if name in SCALARS and type(value) in SCALARS[name]:
            return value
        case ast.Name(id="float") if type(value) is int:  # JSON writers may drop the fraction of a whole number
            return float(value)
        case ast.Name(id="int") if isinstance(value, str):  # the key of an object
            return int(value)
        case ast.Name(id="dict") if isinstance(value, dict):
            return value
        case ast.Name(id=name) if name in CONTAINERS and isinstance(value, list):
            return {"list": list, "set": set, "tuple": tuple}[name](value)
        case ast.Subscript(value=ast.Name(id="dict")) if isinstance(value, dict):
            inner = _inner(node)
            return {_shaped(k, inner[0]): _shaped(v, inner[1]) for k, v in value.items()}
        case ast.Subscript(value=ast.Name(id="tuple")) if isinstance(value, list):
            inner = _inner(node)
            each = [inner[0]] * len(value) if len(inner) == 2 and _is_dots(inner[1]) else inner
            if len(each) == len(value):
                return tuple(map(_shaped, value, each))
        case ast.Subscript(value=ast.Name(id=name)) if name in ("list", "set") and isinstance(value, list):
            content = [_shaped(each, _inner(node)[0]) for each in value]
            return content if name == "list" else set(content)
    raise ValueError(f"{value!r} is not of type {ast.unparse(node)}")
