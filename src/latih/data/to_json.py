"""JSON without loss."""

import json
from typing import Any

from pydantic_core import to_jsonable_python


def to_json(value: Any, sort_keys: bool = False) -> str:
    """JSON text that `json.loads` turns back, in ASCII.

    Not pydantic's writer: a policy's tool arguments may hold infinities (1e999) and lone surrogates (an escaped
    d800), of which it makes null and an exception.
    """
    return json.dumps(value, default=to_jsonable_python, sort_keys=sort_keys)
