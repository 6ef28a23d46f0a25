"""The registry: from a name, a Gymnasium id, `file.py:Class` or `package.module:Class` to an environment.

A family is a registered class with a classmethod `member(name)`, which gives the class of one of its environments:
`reasoning_gym:leg_counting` is the member `leg_counting` of the family `reasoning_gym`.

A built-in env is one file (or folder) of this package, named as the env: `tic_tac_toe.py` defines `TicTacToe`,
which is `latih/TicTacToe-v0` to Gymnasium. Nothing but that file knows of it, and it is imported when asked for.
"""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import gymnasium

from latih.core import ConfigError, Env, nearest
from latih.core.plugins import build, load_module, modules
from latih.core.schema import Record
from latih.envs.base import spec_of

T = TypeVar("T", bound=type[Any])

SUPPORT = {"base", "calculator", "registry", "roles", "spaces", "tools"}
"""Modules of this package that are no environments."""

_classes: dict[str, type[Any]] = {}
_ids: dict[str, str] = {}


class EnvSettings(Record):
    """Which environment, with which dials."""

    id: str
    """A name that `latih envs` lists, `family:member`, a Gymnasium id that `latih.envs.register` gave,
    `path/to/file.py:Class` or `package.module:Class`."""
    args: dict[str, Any] = {}
    """The dials of the environment."""
    training: dict[str, Any] = {}
    """Dials that training sets otherwise, as for a broader spread of starts. Evaluations keep to `args`."""

    def make(self) -> Env:
        """The environment as it is evaluated. Raises ConfigError."""
        return make(self.id, **self.args)

    def make_training(self) -> Env:
        """The environment as it is trained on. Raises ConfigError."""
        return make(self.id, **self.args | self.training)


class EnvInfo(Record):
    """What `latih envs` lists of an environment."""

    name: str
    summary: str
    dials: list[str] = []
    """`name=default` of each."""


def gymnasium_id(name: str) -> str:
    """The Gymnasium id of a short name.

    >>> gymnasium_id("tic_tac_toe")
    'latih/TicTacToe-v0'
    """
    return f"latih/{_camel(name)}-v0"


def register(name: str, *, id: str | None = None) -> Callable[[T], T]:
    """A class decorator that makes an environment known as `name`, and to Gymnasium as `id`.

    Raises ValueError where another class has either.
    """

    def put(cls: T) -> T:
        full = id or gymnasium_id(name)
        spec = gymnasium.registry.get(full)
        taken = {_path(_classes[name])} if name in _classes else set()
        taken |= {spec.entry_point if isinstance(spec.entry_point, str) else _path(spec.entry_point)} if spec else set()
        # The same class again is a notebook cell that was run again.
        if taken - {_path(cls)}:
            raise ValueError(f"environment {name!r} or {full!r} is registered already, by {min(taken)}")
        _classes[name], _ids[full] = cls, name
        gymnasium.registry[full] = spec_of(cls, full)
        return cls

    return put


def builtin_names() -> list[str]:
    """The names of the environments that come with latih, none of them imported."""
    return modules("latih.envs", but=SUPPORT)


def register_builtin() -> None:
    """Tell Gymnasium of the built-in environments, which it then imports when asked for one."""
    for name in builtin_names():
        _ids[gymnasium_id(name)] = name
        if gymnasium_id(name) not in gymnasium.registry:
            # A name, not the class: the env is imported when Gymnasium is asked for it.
            gymnasium.register(gymnasium_id(name), entry_point=f"latih.envs.{name}:{_camel(name)}")


def make(spec: str, **args: Any) -> Env:
    """The environment that `spec` names: a short name, a Gymnasium id, `file.py:Class` or `package.module:Class`.

    Raises ConfigError: unknown names (with the nearest), files that fail to import, unknown or wrong dials.
    """
    cls = find(spec)
    env = build(spec, cls, args)
    if isinstance(env, gymnasium.Wrapper):
        raise ConfigError(
            f"{spec} is a gymnasium.Wrapper: write it as a MessageEnv, or play it by Agent.play in Python"
        )
    if not isinstance(env, Env):
        raise ConfigError(f"{spec} is no environment over messages: subclass latih.envs.MessageEnv")
    if isinstance(env, gymnasium.Env):
        env.spec = spec_of(cls, next((full for full, name in _ids.items() if _classes.get(name) is cls), None), args)
    return env


def find(spec: str) -> type[Any]:
    """The class that `spec` names. Raises ConfigError."""
    place, colon, name = spec.rpartition(":")
    if colon and place in {*_classes, *builtin_names()}:
        return _member(spec, find(place), name)
    if colon:
        return _attribute(spec, load_module(place), name)
    if spec.endswith(".py"):
        module = load_module(spec)
        raise ConfigError(f"say which class of the file: {spec}:{' or '.join(_defined(module)) or 'Class'}")
    name = _ids.get(spec, spec)
    if name not in _classes and name in builtin_names():
        load_module(f"latih.envs.{name}")
    if name in _classes:
        return _classes[name]
    known = _ids if "/" in spec else {*_classes, *builtin_names()}
    raise ConfigError(f"unknown environment {spec!r}: {nearest(spec, known)}")


def canonical(spec: str) -> str:
    """One spelling for all that name one environment; what names none stays as it is.

    >>> {canonical(each) for each in ("tic_tac_toe", "latih/TicTacToe-v0", "latih.envs.tic_tac_toe:TicTacToe")}
    {'tic_tac_toe'}
    """
    try:
        cls = find(spec)
    except ConfigError:
        return spec
    return next((name for name, each in _classes.items() if each is cls), _path(cls))


def describe() -> list[EnvInfo]:
    """Every environment that is registered or built in, by name. One that cannot be imported says so."""
    return [_describe(name) for name in sorted({*_classes, *builtin_names()})]


def _describe(name: str) -> EnvInfo:
    try:
        cls = find(name)
    except ConfigError as exc:
        return EnvInfo(name=name, summary=f"unavailable: {exc}")
    return EnvInfo(
        name=f"{name}:NAME" if hasattr(cls, "member") else name,
        summary=(inspect.getdoc(cls) or "").partition("\n")[0],
        dials=[f"{p.name}={p.default!r}" for p in inspect.signature(cls).parameters.values()],
    )


def _path(cls: Any) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _defined(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and hasattr(value, "step")
    ]


def _member(spec: str, family: type[Any], name: str) -> type[Any]:
    if not hasattr(family, "member"):
        place = spec.removesuffix(f":{name}")
        raise ConfigError(f"{place} is one environment and no family of them: write {place}")
    cls: type[Any] = family.member(name)
    return cls


def _attribute(spec: str, module: ModuleType, name: str) -> type[Any]:
    cls = getattr(module, name, None)
    if not isinstance(cls, type):
        raise ConfigError(f"{spec} names no class: {nearest(name, _defined(module))}")
    return cls
