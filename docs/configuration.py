"""Writes docs/configuration.md from the settings: `make docs`. A test keeps the page current."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from latih.train.config import Config

PAGE = Path(__file__).with_suffix(".md")
HEAD = """\
# Configuration

<!-- Written by `make docs` from the docstrings of the settings: change those, not this page. -->

A run is described by one tree of settings. It starts from a recipe (`latih train tic_tac_toe`), a YAML file
(`latih train mine.yaml`) or an environment with the defaults below (`latih train my_env.py:MyEnv`), and any key can be
set behind it: `latih train tic_tac_toe trainer.optimizer.lr=1e-4 env.args.opponent=minimax`. Values are read as YAML.

A key that does not exist is an error that names the nearest one. `--dry-run` prints the resolved tree; every run keeps
its own in `config.yaml`, and that file is a config to train from again.
"""


def render() -> str:
    """The whole page."""
    return HEAD + "".join(_sections(Config, ""))


def _sections(model: type[BaseModel], prefix: str, more: str = "", given: BaseModel | None = None) -> Iterator[str]:
    """What `model` is and `more`, a table of its plain keys, and the sections of the others.

    `given` holds the defaults where they are not the model's own.
    """
    said = docstrings(model)
    plain = {name: field for name, field in model.model_fields.items() if _inner(field) is None}
    if prefix:
        yield f"\n## `{prefix.rstrip('.')}`\n\n{' '.join([*(inspect.getdoc(model) or '').split(), *more.split()])}\n"
    if plain:
        yield "\n| key | type | default | meaning |\n|---|---|---|---|\n"
    for name, field in plain.items():
        cells = (f"`{prefix}{name}`", _type(field), _default(field, getattr(given, name, None)), said.get(name, ""))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    for name, field in model.model_fields.items():
        if inner := _inner(field):
            off = " By default it is null, until one of its keys is set." if field.default is None else ""
            part = f"{name}.<{name[:-1]}>" if get_origin(field.annotation) is dict else name
            default = field.default if isinstance(field.default, inner) else None
            yield from _sections(inner, f"{prefix}{part}.", said.get(name, "") + off, default)


def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The string under each field in the source of `model`."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            text = " ".join(str(ast.literal_eval(after.value)).split())
            found[field.target.id] = re.sub(r"\bNone\b", "null", text)  # as YAML has it
    return found


def _inner(field: FieldInfo) -> type[BaseModel] | None:
    kinds = (field.annotation, *get_args(field.annotation))
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)), None)


def _type(field: FieldInfo) -> str:
    kind: Any = field.annotation
    text = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    text = text.replace("typing.", "").replace("NoneType", "None").replace("None", "null")
    if text.startswith("Literal["):
        text = text.removeprefix("Literal[").removesuffix("]").replace("'", "").replace(", ", " | ")
    bounds = [
        f"{sign} {getattr(each, name):g}" for each in field.metadata for name, sign in _SIGNS if hasattr(each, name)
    ]
    return ", ".join([f"`{text}`", *bounds])


_SIGNS = (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))


def _default(field: FieldInfo, given: Any = None) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True) if given is None else given
    shown = {True: "true", False: "false", None: "null"}.get(value) if isinstance(value, bool | None) else None
    text = shown or str(list(value) if isinstance(value, tuple) else value)
    return f"`{text}`" if text else "`''`"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
