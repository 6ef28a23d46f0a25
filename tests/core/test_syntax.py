import ast
from concurrent.futures import ThreadPoolExecutor

from latih.core.syntax import parse

SOURCE = "\n".join(f"def f{i}(x):\n    return [x + {i} for _ in range(x)] + (x,) * {i}" for i in range(300))


def test_trees_are_made_in_many_threads_at_once():
    """With `ast.parse` itself this raised SystemError now and then."""
    expected = ast.dump(ast.parse(SOURCE))
    with ThreadPoolExecutor(8) as pool:
        assert {ast.dump(tree) for tree in pool.map(parse, [SOURCE] * 24)} == {expected}
