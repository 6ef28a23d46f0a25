"""The program inside the sandbox: it calls the policy's function on each input and writes what came out.

It runs in one process with code that nobody trusts, which may do to it whatever it likes. That is harmless by design:
there is no expected value here to find, so a forged result is only a guess. It needs the standard library alone;
outside the sandbox, `pack` puts inputs into the form that travels.
"""

import json
import os
import sys
import types
from typing import Any


def pack(value: Any) -> Any:
    """A plain value as JSON-like data: what JSON does not know is tagged. Raises TypeError for other objects.

    Types are exact: an object of a subclass is not what it pretends to be.

    >>> pack([1, (2.5, "a"), {3: None}])
    [1, {'tuple': [2.5, 'a']}, {'dict': [[3, None]]}]
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [pack(each) for each in value]
    if kind in (tuple, set):
        return {kind.__name__: [pack(each) for each in value]}
    if kind is dict:
        return {"dict": [[pack(key), pack(each)] for key, each in value.items()]}
    raise TypeError(f"{kind.__name__} is not a plain value")


def unpack(wire: Any) -> Any:
    """The inverse of `pack`."""
    if isinstance(wire, list):
        return [unpack(each) for each in wire]
    if isinstance(wire, dict):
        [(tag, content)] = wire.items()
        if tag == "dict":
            return {unpack(key): unpack(each) for key, each in content}
        return {"tuple": tuple, "set": set}[tag](unpack(each) for each in content)
    return wire


def main() -> None:
    """Read the job from stdin, answer on the channel: `ready`, then one line for each case, or one `error` for all."""
    channel = int(os.environ["LATIH_CHANNEL"])

    def say(line: dict[str, Any]) -> None:
        rest = json.dumps(line).encode() + b"\n"
        while rest:
            rest = rest[os.write(channel, rest) :]

    job = json.loads(sys.stdin.buffer.read())
    say({"ready": True})
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    try:
        exec(compile(job["source"], "solution.py", "exec"), vars(module))
        if job["name"] not in vars(module):
            raise NameError(f"there is no {job['name']}")
        function = vars(module)[job["name"]]
    except BaseException as exc:
        say({"error": _line(exc)})
        os._exit(0)
    for number, args in enumerate(job["cases"]):
        try:
            said = {"case": number, "value": pack(function(*unpack(args)))}
        except BaseException as exc:
            said = {"case": number, "error": _line(exc)}
        try:
            say(said)
        except (ValueError, RecursionError, MemoryError) as exc:  # an int of too many digits, too deep a nesting
            say({"case": number, "error": _line(exc)})
    os._exit(0)  # neither threads nor exit handlers of the policy's have a say after this


def _line(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {str(exc)[:200]}"


if __name__ == "__main__":
    main()
