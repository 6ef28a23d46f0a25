"""Python's parser, for many threads: it keeps its depth in one place for all of them.

Where one thread is interrupted while it makes a tree and another makes one meanwhile, CPython 3.11 and 3.12 raise
`SystemError: AST constructor recursion depth mismatch` (https://github.com/python/cpython/issues/106905). Envs run in
threads, so all trees are made here, one at a time.
"""

import ast
import threading

_ONE = threading.Lock()


def parse(source: str) -> ast.Module:
    """`ast.parse`. Raises what it raises: SyntaxError, ValueError, MemoryError, RecursionError."""
    with _ONE:
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """The tree of one expression. Raises as `parse` does.

    >>> ast.unparse(parse_expression("1+1"))
    '1 + 1'
    """
    with _ONE:
        return ast.parse(source, mode="eval").body
