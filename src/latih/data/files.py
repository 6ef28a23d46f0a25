"""Writing files: whole or not at all, and JSON without loss."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from latih.core import LatihError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, renamed to it when the block ends and removed when the block raises.

    Raises LatihError where the file system refuses, a full disk for instance.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as exc:
        raise LatihError(f"cannot write {path}: {exc.strerror or exc}") from exc
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def to_json(value: Any) -> str:
    """JSON text that `json.loads` turns back, in ASCII.

    Not pydantic's writer: a policy's tool arguments may hold infinities (1e999) and lone surrogates (an escaped
    d800), of which it makes null and an exception.
    """
    return json.dumps(value, default=to_jsonable_python)
