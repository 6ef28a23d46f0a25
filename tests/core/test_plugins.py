import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from latih.core.plugins import import_all, modules


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package of five modules, two of which leave a trace when they are imported."""
    folder = tmp_path / "found_by_name"
    (folder / "room").mkdir(parents=True)
    (folder / "__init__.py").write_text("traces = []\n")
    for name in ("beta", "alpha"):
        (folder / f"{name}.py").write_text(f"import found_by_name\nfound_by_name.traces.append({name!r})\n")
    for name in ("_private.py", "support.py", "room/__init__.py"):
        (folder / name).write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "found_by_name"
    for name in [each for each in sys.modules if each.partition(".")[0] == "found_by_name"]:
        del sys.modules[name]


def test_modules_are_named_and_not_imported(package: str) -> None:
    assert modules(package, but={"support"}) == ["alpha", "beta", "room"]
    assert sys.modules[package].traces == []


def test_all_are_imported_in_the_order_of_their_names(package: str) -> None:
    import_all(package, but={"support", "room"})
    assert sys.modules[package].traces == ["alpha", "beta"]


AXES = {
    "latih.train.advantages": ("advantages", "advantage", {"grpo", "mean", "rloo"}),
    "latih.train.ratios": ("ratios", "ratio", {"sequence", "token"}),
    "latih.train.surrogates": ("surrogates", "surrogate", {"cispo", "clip", "reinforce"}),
    "latih.train.aggregations": ("aggregations", "aggregation", {"constant", "sequence", "token"}),
    "latih.tracking.writers": (None, "logger", {"jsonl", "tensorboard", "wandb"}),
    "latih.harnesses": ("harnesses", "harness", {"chat_loop"}),
}


@pytest.mark.parametrize("place", AXES)
def test_a_new_file_is_all_that_a_new_one_needs(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = importlib.import_module(place)
    name, kind, known = AXES[place]
    registry = getattr(room, name) if name else importlib.import_module("latih.tracking.logger").loggers
    assert registry.kind == kind
    assert known <= set(registry)
    where = f"from {place} import {name}" if name else "from latih.tracking.logger import loggers"
    (tmp_path / "brand_new.py").write_text(f"{where}\n{name or 'loggers'}.register('brand_new')(print)\n")
    monkeypatch.setattr(room, "__path__", [*room.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_items", dict(registry._items))
    import_all(place)
    monkeypatch.delitem(sys.modules, f"{place}.brand_new")
    assert registry.get("brand_new") is print
