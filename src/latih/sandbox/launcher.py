"""The first process inside: puts the files in place, starts the program under its limits, reports how it ended.

Its source is handed to the interpreter inside (`python -c`), with the numbers of three file descriptors as arguments:
the order to carry out, the pipe of the report, and the channel. The order holds nothing but what the program may know.
Standard library only.
"""

import ctypes
import marshal
import os
import resource
import sys
import types
from typing import Any

DUMPABLE = 4  # PR_SET_DUMPABLE


def main() -> dict[str, Any]:
    """Carry out the order. Returns it in the child, where Python source is still to be run."""
    order_fd, report, channel = (int(each) for each in sys.argv[1:4])
    with open(order_fd, "rb") as file:
        order: dict[str, Any] = marshal.load(file)
    for name, data in order["files"].items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as out:
            out.write(data)
    prctl = ctypes.CDLL(None).prctl
    prctl(DUMPABLE, 0, 0, 0, 0)  # the program has our uid: it shall neither trace us nor see our descriptors
    os.write(report, b"started\n")
    child = os.fork()
    if child:
        watch(child, report)
    os.close(report)
    prctl(DUMPABLE, 1, 0, 0, 0)
    os.setsid()
    os.set_inheritable(channel, True)
    os.environ["LATIH_CHANNEL"] = str(channel)
    for name, value in order["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if order["argv"]:
        become(order["argv"])
    return order


def watch(child: int, report: int) -> None:
    """Reap whatever ends until the program does, and report its code. Then everything else inside dies with us."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while True:
        pid, status = os.wait()
        if pid == child:
            os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
            os._exit(0)


def become(argv: list[str]) -> None:
    """Replace this process by the program."""
    try:
        os.execvp(argv[0], argv)
    except OSError as exc:
        os.write(2, f"{argv[0]}: {exc.strerror}\n".encode())
        os._exit(127)


if __name__ == "__main__":
    todo = main()
    here = sys.modules["__main__"] = types.ModuleType("__main__")
    sys.argv[:] = ["program"]
    exec(compile(todo["source"], "<program>", "exec"), here.__dict__)
