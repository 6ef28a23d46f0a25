"""Every built-in environment: its page shows what its baselines score, and these score what they should."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from latih.envs.registry import builtin_names

ROOT = Path(__file__).parent.parent
BOUNDS = re.compile(r"^Least: (-?[\d.]+)\. Expert: (-?[\d.]+)\.$", re.MULTILINE)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("baselines", ROOT / "docs" / "baselines.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_of_environments_shows_the_tables_of_the_pages(script: ModuleType) -> None:
    index = (ROOT / "docs" / "envs" / "README.md").read_text(encoding="utf-8")
    pages = sorted(path for path in script.PAGES.glob("*.md") if path.name != "README.md")
    commands = [
        re.search(r"^    (latih baseline .*?)(?: --episodes \d+)?$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for page in pages
    ]
    # of the recipe's dials, so that the list is what `latih baseline --all` gives
    assert [found and found[1] for found in commands] == [f"latih baseline {page.stem}" for page in pages]
    assert script.overview(index) == index, "run `python docs/baselines.py NAME` for the page that changed"


@pytest.mark.slow
@pytest.mark.parametrize("name", builtin_names())
def test_baselines_are_those_of_the_page(name: str, script: ModuleType) -> None:
    page = (ROOT / "docs" / "envs" / f"{name}.md").read_text(encoding="utf-8")
    assert f"\n    latih baseline {name}" in page
    made, (results, *_) = script.render(page)
    assert made == page, f"the baselines changed: run `python docs/baselines.py {name}`"
    bounds = BOUNDS.search(page)
    assert bounds, "say what doing nothing and the expert score: `Least: -1. Expert: 1.`"
    least, most = map(float, bounds.groups())
    nothing, expert = results["no-op"], results["expert"]
    assert nothing is not None
    assert expert is not None
    assert (nothing.reward.value, nothing.reward.low, nothing.reward.high) == pytest.approx((least,) * 3)
    assert expert.reward.low - 1e-9 <= most <= expert.reward.high + 1e-9
    assert expert.reward.value == max(each.reward.value for each in results.values() if each is not None)
    assert all(each is None or each.reward.value >= least - 1e-9 for each in results.values())
    assert all(each is None or not each.errors for each in results.values())
