"""Settings as plain trees: read from YAML, merged, and changed by dotted overrides."""

import functools
import re
from collections.abc import Iterable
from typing import Any

import yaml

from latih.core.errors import ConfigError
from latih.envs.registry import canonical


def override(tree: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """A copy of the tree with `dotted.key=value` put in. Raises ConfigError where one is no such pair.

    Another `id` (of the env, of the harness) begins without the `args` of the one that it replaces.
    """
    changes = [_change(each) for each in overrides]
    done = functools.reduce(merged, changes, tree)
    for name in ("env", "harness"):
        before, after = tree.get(name), done.get(name)
        if isinstance(before, dict) and isinstance(after, dict) and _other(name, before.get("id"), after.get("id")):
            tree = tree | {name: {}}
    return functools.reduce(merged, changes, merged({}, tree))


def read_tree(path: Any) -> dict[str, Any]:
    """The mapping that a YAML file holds. Raises ConfigError."""
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} is not YAML: {_problem(exc)}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} holds no settings: it should be a mapping such as `env: {{id: tic_tac_toe}}`")
    return tree


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A copy of `old` with what `new` sets, mapping by mapping."""
    both = {key: merged({}, value) if isinstance(value, dict) else value for key, value in old.items()}
    for key, value in new.items():
        before = both.get(key)
        if isinstance(value, dict):
            value = merged(before if isinstance(before, dict) else {}, value)
        both[key] = value
    return both


class _Loader(yaml.SafeLoader):
    """YAML whose numbers are those of YAML 1.2: 1e-4 is one, where PyYAML reads text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _other(name: str, before: Any, after: Any) -> bool:
    """Whether two ids name different things: an env has several names."""
    return before != after and (name != "env" or canonical(str(before)) != canonical(str(after)))


def _change(override: str) -> dict[str, Any]:
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise ConfigError(f"{override!r} is no override: write key=value, such as trainer.optimizer.lr=1e-4")
    try:
        value = yaml.load(text, _Loader)
    except yaml.YAMLError as exc:
        raise ConfigError(f"the value of {key} cannot be read as YAML: {text!r} ({_problem(exc)})") from None
    for part in reversed(key.split(".")):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def _problem(exc: BaseException) -> str:
    return getattr(exc, "problem", None) or " ".join(str(exc).split())
