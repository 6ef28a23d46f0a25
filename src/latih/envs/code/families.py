"""Kinds of problems, by level: each draws a description and its solution from a random generator.

A family is one function under `@family(level)`. Its text is short, since the policy pays for every token of it.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Args = tuple[Any, ...]


@dataclass(frozen=True)
class Sketch:
    """A problem without cases."""

    text: str
    solution: str
    """Source that defines `f`."""
    returns: str
    draw: Callable[[random.Random], Args]
    """Draws the arguments of a call."""
    edges: tuple[Args, ...] = ()
    """Calls that are always among the hidden cases."""
    slips: tuple[tuple[str, str], ...] = ()
    """Faults that a solution may well have: what stands in ours, and what in theirs. A hidden case tells each."""


Family = Callable[[random.Random], Sketch]
families: dict[int, list[Family]] = {}


def family(level: int) -> Callable[[Family], Family]:
    """A decorator that adds a family to a level."""

    def put(make: Family) -> Family:
        families.setdefault(level, []).append(make)
        return make

    return put


def _int(rng: random.Random) -> Args:
    return (rng.randint(-50, 50),)


def _wide(rng: random.Random) -> Args:
    return (rng.choice([rng.randint(-50, 50), rng.randint(-999, 999)]),)


def _two_ints(rng: random.Random) -> Args:
    return tuple(rng.choice([rng.randint(-50, 50), rng.randint(-2, 2)]) for _ in range(2))


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("aaabbccdeeoors") for _ in range(rng.randint(1, 6)))


def _phrase(rng: random.Random) -> Args:
    return (" ".join(_word(rng) for _ in range(rng.randint(1, 4))),)


def _words(rng: random.Random) -> Args:
    return ([_word(rng)[:3] for _ in range(rng.randint(1, 10))],)


def _numbers(rng: random.Random) -> Args:
    return ([rng.randint(-20, 20) for _ in range(rng.randint(1, 9))],)


@family(1)
def one_operation(rng: random.Random) -> Sketch:
    """x + 3"""
    formula = f"x {rng.choice('+-*')} {rng.randint(2, 9)}"
    return Sketch(f"f(x) = {formula}", f"def f(x): return {formula}", "int", _int, ((0,),))


@family(2)
def two_operations(rng: random.Random) -> Sketch:
    """x * 3 + 2, (x - 2) * 5"""
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    formula = rng.choice([f"x * {a} {rng.choice('+-')} {b}", f"(x {rng.choice('+-')} {a}) * {b}", f"{a * b} - x * {a}"])
    return Sketch(f"f(x) = {formula}", f"def f(x): return {formula}", "int", _int, ((0,),))


@family(3)
def in_words(rng: random.Random) -> Sketch:
    """One number, described."""
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    text, formula = rng.choice(
        [
            (f"x if x is above {a}, else {b} minus x", f"x if x > {a} else {b} - x"),
            (f"the remainder of x divided by {a}, plus {b}", f"x % {a} + {b}"),
            (f"x without its sign, times {a}", f"abs(x) * {a}"),
            (f"x, but at most {a} and at least -{b}", f"max(-{b}, min({a}, x))"),
            (f"the sum of x's decimal digits, times {a}", f"sum(int(d) for d in str(abs(x))) * {a}"),
            (f"1 if x is divisible by {a}, else {b} times x", f"1 if x % {a} == 0 else {b} * x"),
        ]
    )
    slips = (
        ("x > ", "x >= "),
        ("x %", "abs(x) %"),
        ("if x %", "if x > 0 and x %"),
        ("abs(x) *", "x *"),
        ("abs(x)", "max(0, x)"),
        ("sum(int(d) for d in str(abs(x)))", "(abs(x) // 10 + abs(x) % 10)"),
        (f"max(-{b}, min({a}, x))", f"min({a}, x)"),
        (f"max(-{b}, min({a}, x))", f"max(-{b}, x)"),
    )
    return Sketch(f"f(x): {text}", f"def f(x): return {formula}", "int", _wide, ((0,), (a,), (-b,)), slips)


@family(3)
def two_numbers(rng: random.Random) -> Sketch:
    """Two numbers, described."""
    a = rng.randint(2, 9)
    text, formula = rng.choice(
        [
            (f"the larger of x and y, minus {a}", f"max(x, y) - {a}"),
            (f"{a} times the distance of x and y", f"{a} * abs(x - y)"),
            (f"x times y, plus {a} if both are positive", f"x * y + ({a} if x > 0 and y > 0 else 0)"),
            (f"x plus {a} times y", f"x + {a} * y"),
        ]
    )
    slips = (
        ("max(x, y)", "x"),
        ("max(x, y)", "y"),
        ("max(x, y)", "max(abs(x), y)"),
        ("max(x, y)", "max(x, abs(y))"),
        ("abs(x - y)", "(x - y)"),
        ("abs(x - y)", "(y - x)"),
        ("x > 0 and y > 0", "x * y > 0"),
        ("x > 0 and y > 0", "x > 0 or y > 0"),
        ("x > 0 and y > 0", "x >= 0 and y > 0"),
        ("x > 0 and y > 0", "x > 0 and y >= 0"),
    )
    return Sketch(f"f(x, y): {text}", f"def f(x, y): return {formula}", "int", _two_ints, ((0, 0), (3, 3)), slips)


Step = tuple[str, str]
"""What it does, and the expression that does it to `v`."""


def _pipeline(
    rng: random.Random,
    name: str,
    kind: str,
    steps: list[Step],
    ends: list[tuple[str, str, str]],
    slips: list[tuple[str, str]],
) -> Sketch:
    """Two different steps one after the other, and sometimes an end, which gives a value of another type."""
    chosen = rng.sample(steps, 2)
    end = rng.choice([None, *ends])
    text = f"f({name}): take {name} " + ", then ".join(said for said, _ in chosen)
    lines = [f"    v = {formula}" for _, formula in chosen]
    result, returns = "v", kind
    if end is not None:
        said, result, returns = end
        text += f"; give {said}"
    source = "\n".join([f"def f({name}):", f"    v = {name}", *lines, f"    return {result}"]) + "\n"
    first, second = lines
    missed = [(first, "    v = v"), (second, "    v = v"), (f"{first}\n{second}", f"{second}\n{first}")]
    draw = _phrase if kind == "str" else _numbers
    return Sketch(text, source, returns, draw, (("",),) if kind == "str" else (([],),), (*missed, *slips))


@family(4)
def strings(rng: random.Random) -> Sketch:
    """A string, changed twice."""
    n, a, b = rng.randint(1, 4), rng.choice("aeo"), rng.choice("xyz")
    steps = [
        ("reversed", "v[::-1]"),
        ("in upper case", "v.upper()"),
        ("without spaces", "v.replace(' ', '')"),
        (f"without its first {n} characters", f"v[{n}:]"),
        (f"with every {a} replaced by {b}", f"v.replace('{a}', '{b}')"),
        (f"repeated {n + 1} times", f"v * {n + 1}"),
        ("with its words in reverse order", "' '.join(v.split()[::-1])"),
        ("with its characters sorted", "''.join(sorted(v))"),
    ]
    ends = [
        ("its length", "len(v)", "int"),
        (f"how often {a} is in it", f"v.count('{a}')", "int"),
        ("the list of its words", "v.split()", "list[str]"),
        (f"whether {a} comes before the last character", f"'{a}' in v[:-1]", "bool"),
    ]
    slips = [
        ("v.upper()", "v.title()"),
        ("v.replace(' ', '')", "v.strip()"),
        (f"v[{n}:]", f"v[{n - 1}:]"),
        (f"'{b}')", f"'{b}', 1)"),
        ("' '.join(v.split()[::-1])", "v[::-1]"),
        ("sorted(v)", "sorted(set(v))"),
        (f"v.count('{a}')", f"int('{a}' in v)"),
        ("v.split()", "v.split(' ')"),
        ("v[:-1]", "v"),
        (f"'{a}' in v[:-1]", f"v.startswith('{a}')"),
    ]
    return _pipeline(rng, "s", "str", steps, ends, slips)


@family(5)
def lists(rng: random.Random) -> Sketch:
    """A list of numbers, changed twice."""
    n, m = rng.randint(2, 5), rng.randint(2, 9)
    steps = [
        ("reversed", "v[::-1]"),
        ("sorted", "sorted(v)"),
        (f"with {m} added to each", f"[x + {m} for x in v]"),
        (f"with each multiplied by {n}", f"[x * {n} for x in v]"),
        ("without negative numbers", "[x for x in v if x >= 0]"),
        (f"without multiples of {n}", f"[x for x in v if x % {n}]"),
        ("without what came before in it", "list(dict.fromkeys(v))"),
        ("as its running sums", "[sum(v[: i + 1]) for i in range(len(v))]"),
        ("as the differences of neighbours", "[y - x for x, y in zip(v, v[1:])]"),
        (f"without its first {n}", f"v[{n}:]"),
    ]
    ends = [
        ("the sum", "sum(v)", "int"),
        ("the largest, or 0 if there is none", "max(v, default=0)", "int"),
        (f"how many are above {m}", f"sum(x > {m} for x in v)", "int"),
        ("the smallest and the largest as a tuple, or None if there is none", "(min(v), max(v)) if v else None",
         "tuple[int, int] | None"),
        ("the mean, or 0.0 if there is none", "sum(v) / len(v) if v else 0.0", "float"),
    ]  # fmt: skip
    slips = [
        ("x >= 0", "x > 0"),
        ("list(dict.fromkeys(v))", "sorted(set(v))"),
        ("list(dict.fromkeys(v))", "[x for i, x in enumerate(v) if not i or v[i - 1] != x]"),
        ("v[: i + 1]", "v[:i]"),
        ("y - x", "abs(y - x)"),
        (f"v[{n}:]", f"v[{n - 1}:]"),
        (f"v[{n}:]", f"v[:-{n}]"),
        ("max(v, default=0)", "max([0, *v])"),
        (f"x > {m}", f"x >= {m}"),
        ("(min(v), max(v))", "(v[0], v[-1])"),
        ("sum(v) / len(v)", "float(sum(v) // len(v))"),
    ]
    return _pipeline(rng, "items", "list[int]", steps, ends, slips)


@family(6)
def counts(rng: random.Random) -> Sketch:
    """A dict of counts."""
    n = rng.randint(1, 2)
    text, key, kind = rng.choice(
        [
            ("word", "w", "str"),
            ("length", "len(w)", "int"),
            ("first letter", "w[0]", "str"),
            ("last letter", "w[-1]", "str"),
        ]
    )
    more = f", leaving out what has fewer than {n}" if n > 1 else ""
    source = f"""def f(words):
    counts = {{}}
    for w in words:
        counts[{key}] = counts.get({key}, 0) + 1
    return {{k: n for k, n in counts.items() if n >= {n}}}
"""
    said = f"f(words): a dict that counts the words by {text}{more}"
    slips = ((f"n >= {n}", f"n == {n}"), (f"n >= {n}", f"n > {n}"), ("[0]", "[-1]"), ("[-1]", "[0]"))
    return Sketch(said, source, f"dict[{kind}, int]", _words, (([],), (["ab", "ab", "ba", "c", "c", "c"],)), slips)


@family(6)
def groups(rng: random.Random) -> Sketch:
    """A dict of lists."""
    n = rng.randint(2, 4)
    source = f"""def f(items):
    groups = {{}}
    for x in items:
        groups.setdefault(x % {n}, []).append(x)
    return {{k: sorted(v) for k, v in groups.items()}}
"""
    text = f"f(items): a dict from each remainder by {n} to the sorted list of the items that leave it"
    slips = (("x %", "abs(x) %"), ("sorted(v)", "v"), ("sorted(v)", "sorted(set(v))"))
    return Sketch(text, source, "dict[int, list[int]]", _numbers, (([],),), slips)


@family(6)
def run_lengths(rng: random.Random) -> Sketch:
    """Runs of equal characters."""
    n = rng.randint(1, 2)
    source = f"""def f(s):
    runs = []
    for c in s:
        if runs and runs[-1][0] == c:
            runs[-1] = (c, runs[-1][1] + 1)
        else:
            runs.append((c, 1))
    return [run for run in runs if run[1] >= {n}]
"""
    text = (
        f"f(s): the runs of equal characters of s that are at least {n} long, as a list of tuples (character, length)"
    )
    slips = ((f">= {n}", f"== {n}"), (f">= {n}", f"> {n}"), ("in runs if", "in runs[:-1] if"))
    return Sketch(text, source, "list[tuple[str, int]]", _phrase, (("",), ("bbaaacb",)), slips)


@family(6)
def brackets(rng: random.Random) -> Sketch:
    """Balanced brackets."""
    pairs = rng.choice(["()", "()[]", "()[]{}"])
    source = f"""def f(s):
    closes = {dict(zip(pairs[1::2], pairs[::2], strict=True))!r}
    stack = []
    for c in s:
        if c in closes:
            if not stack or stack.pop() != closes[c]:
                return False
        elif c in closes.values():
            stack.append(c)
    return not stack
"""

    def draw(rng: random.Random) -> Args:
        inner = ""
        for _ in range(rng.randint(1, 4)):
            at = 2 * rng.randrange(len(pairs) // 2)
            inner = rng.choice([pairs[at] + inner + pairs[at + 1], inner + pairs[at : at + 2]])
        if rng.random() < 0.5:
            broken = list(inner)
            a, b = rng.randrange(len(inner)), rng.randrange(len(inner))
            # In other order as many are opened as closed: who counts is wrong.
            broken[a], broken[b] = rng.choice([(broken[b], broken[a]), (rng.choice(pairs), broken[b])])
            inner = "".join(broken)
        return (inner,)

    edges = [("",), (2 * pairs[0],), (pairs[1] + pairs[0],)]
    if len(pairs) > 2:
        edges.append((pairs[0] + pairs[2] + pairs[1] + pairs[3],))
    kinds = [pairs[at : at + 2] for at in range(0, len(pairs), 2)]
    counts = f"def f(s): return all(s.count(a) == s.count(b) for a, b in {kinds})\n"
    depths = f"""def f(s):
    starts = [s[:end] for end in range(len(s))]
    return all(s.count(a) == s.count(b) and all(t.count(a) >= t.count(b) for t in starts) for a, b in {kinds})
"""
    slips = (
        (source, counts),
        (source, depths),
        ("stack.pop() != closes[c]", "not stack.pop()"),
        ("not stack\n", "True\n"),
    )
    return Sketch(f"f(s): whether the brackets {pairs} in s are balanced", source, "bool", draw, tuple(edges), slips)


@family(6)
def number_theory(rng: random.Random) -> Sketch:
    """A loop over whole numbers."""
    a = rng.randint(2, 9)
    text, body = rng.choice(
        [
            (f"how many primes are below n, plus {a}",
             f"    return {a} + sum(all(k % d for d in range(2, k)) for k in range(2, n))\n"),
            (f"the digits of n in base {a}, lowest first, as a list; [] for 0",
             f"    digits = []\n    while n:\n        digits.append(n % {a})\n        n //= {a}\n    return digits\n"),
            ("how many steps of n -> n/2 if even, else 3n+1 lead from n to 1; 0 for 0",
             "    steps = 0\n    while n > 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n        steps += 1\n"
             "    return steps\n"),
            (f"the sum of all numbers below n that are divisible by {a} or by 7",
             f"    return sum(k for k in range(n) if k % {a} == 0 or k % 7 == 0)\n"),
        ]
    )  # fmt: skip
    returns = "list[int]" if "digits" in text else "int"
    slips = (
        ("range(2, n)", "range(2, n + 1)"),
        ("all(k % d for d in range(2, k))", "all(k % d or k == d for d in (2, 3, 5, 7))"),
        ("range(n)", "range(n + 1)"),
        (f"sum(k for k in range(n) if k % {a} == 0 or k % 7 == 0)", f"sum(range(0, n, {a})) + sum(range(0, n, 7))"),
    )
    edges = ((0,), (1,))
    return Sketch(f"f(n): {text}", "def f(n):\n" + body, returns, lambda rng: (rng.randint(1, 199),), edges, slips)


@family(6)
def intervals(rng: random.Random) -> Sketch:
    """Overlapping intervals."""
    touch = rng.choice(["<=", "<"])
    source = f"""def f(spans):
    merged = []
    for low, high in sorted(spans):
        if merged and low {touch} merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return merged
"""
    which = "overlap or touch" if touch == "<=" else "overlap (touching is not enough)"

    def draw(rng: random.Random) -> Args:
        lows = [rng.randint(0, 20) for _ in range(rng.randint(1, 5))]
        return ([[low, low + rng.randint(1, 6)] for low in lows],)

    text = f"f(spans): the spans [low, high] in order, those merged that {which}, as a list of lists"
    slips = (
        ("max(merged[-1][1], high)", "high"),
        ("sorted(spans)", "spans"),
        (f"low {touch} merged[-1][1]", f"low {touch} merged[-1][1] + 1"),
    )
    return Sketch(text, source, "list[list[int]]", draw, (([],), ([[0, 2], [2, 5]],)), slips)


@family(6)
def longest(rng: random.Random) -> Sketch:
    """The longest stretch."""
    said, compare = rng.choice([("rising", "<"), ("falling", ">"), ("equal", "==")])
    source = f"""def f(items):
    best = length = 0
    for i, x in enumerate(items):
        length = length + 1 if i and items[i - 1] {compare} x else 1
        best = max(best, length)
    return best
"""
    text = f"f(items): the length of the longest stretch of {said} neighbours in items"
    slips = (
        ("< x", "<= x"),
        ("> x", ">= x"),
        ("items[i - 1] == x", "x in items[:i]"),
        ("max(best, length)", "length"),
        (source, "def f(items): return max(map(items.count, items), default=0)\n"),
    )

    def draw(rng: random.Random) -> Args:
        return ([rng.randint(0, 4) for _ in range(rng.randint(1, 12))],)

    return Sketch(text, source, "int", draw, (([],), ([3],)), slips)
