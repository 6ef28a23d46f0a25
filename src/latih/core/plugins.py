"""Code found by name: what a user names in a setting, every mistake told in one line, and the modules of a package."""

import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import ValidationError

from latih.core.errors import ConfigError, first_line
from latih.core.registry import nearest

T = TypeVar("T")

_loading = threading.RLock()


def modules(package: str, but: Collection[str] = ()) -> list[str]:
    """The names of what lies in a package, none of it imported; names in `but` and those with a `_` are left out.

    So a new file is found without an edit anywhere else.
    """
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return sorted(each.name for each in found if each.name not in but and not each.name.startswith("_"))


def import_all(package: str, but: Collection[str] = ()) -> None:
    """Import every module of a package, each of which registers what it holds."""
    for name in modules(package, but):
        importlib.import_module(f"{package}.{name}")


def load_module(place: str) -> ModuleType:
    """The module at `path/to/file.py`, or named `package.module`; each is run once. Raises ConfigError."""
    if place.endswith(".py"):
        return _load_file(Path(place))
    _search(Path.cwd())
    try:
        return importlib.import_module(place)
    except (Exception, SystemExit) as exc:
        raise ConfigError(f"{place} cannot be imported: {first_line(exc, kind=True)}") from exc


def build(name: str, make: Callable[..., T], args: Mapping[str, Any]) -> T:
    """`make(**args)`. Raises ConfigError: an unknown argument with the nearest, a wrong one by name.

    >>> build("circle", lambda radius=1: radius, {"radios": 2})
    Traceback (most recent call last):
        ...
    latih.core.errors.ConfigError: circle has no dial 'radios': did you mean 'radius'? (it takes radius)
    """
    parameters = inspect.signature(make).parameters
    if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        for each in args:
            if each not in parameters:
                raise ConfigError(f"{name} has no dial {each!r}: {nearest(each, parameters)}" + _accepted(parameters))
    try:
        return make(**args)
    except ConfigError:
        raise
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(each) for each in first["loc"])
        raise ConfigError(f"{name}: {where}={first['input']!r}: {first['msg']}") from exc
    except Exception as exc:
        raise ConfigError(f"{name} cannot be made: {first_line(exc, kind=True)}" + _accepted(parameters)) from exc


def _accepted(parameters: Iterable[str]) -> str:
    names = ", ".join(parameters)
    return f" (it takes {names})" if names else " (it takes none)"


def _load_file(path: Path) -> ModuleType:
    path = path.expanduser()
    start = "" if path.is_absolute() else " (a relative path starts at the folder where the command runs)"
    path = path.resolve()
    if not path.is_file():
        raise ConfigError(f"no such file: {path}{start}")
    # One module per path: a file that is named twice in a process registers what it holds once.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    with _loading:
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        _search(path.parent)
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as exc:
            del sys.modules[name]
            raise ConfigError(f"{path} cannot be imported: {first_line(exc, kind=True)}") from exc
        return module


def _search(folder: Path) -> None:
    """Let modules beside the user's file be imported, behind everything installed."""
    if os.fspath(folder) not in sys.path:
        sys.path.append(os.fspath(folder))
