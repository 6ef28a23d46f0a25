"""The program that runs a project's tests inside the sandbox: pytest from the kit, one line on the channel per test.

Its source is handed to the interpreter inside; nothing else of latih is there. It shares its process with the code
under test, so nothing that it reports is trusted: `latih.rewards.repo` says why a forger gains nothing.
"""

import json
import os
import sys
from typing import Any


class Reporter:
    """A pytest plugin that reports each test once, when its teardown is over."""

    def __init__(self, channel: int, nonce: str) -> None:
        self.channel = channel
        self.nonce = nonce
        self.outcomes: dict[str, str] = {}
        self.places: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst of a test's phases, and write it down after the last."""
        now = report.outcome
        if now == "failed" and report.when != "call":
            now = "error"
        elif hasattr(report, "wasxfail"):
            now = "skipped"
        if now != "passed":
            self.outcomes.setdefault(report.nodeid, now)
            self.places.setdefault(report.nodeid, _line(report))
        if report.when == "teardown":
            id = report.nodeid
            line = {"nonce": self.nonce, "id": id, "outcome": self.outcomes.get(id, "passed")}
            line["line"] = self.places.get(id, 0)
            os.write(self.channel, json.dumps(line).encode() + b"\n")


def _line(report: Any) -> int:
    """The line of the test's own module at which it failed, or 0."""
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", None)
    place = getattr(entries[0], "reprfileloc", None) if entries else None
    return place.lineno if place else 0


def main() -> None:
    """Run what the order on stdin asks for."""
    order = json.load(sys.stdin)
    channel = int(os.environ.pop("LATIH_CHANNEL"))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    roots = [os.path.abspath(each) for each in order["roots"]]
    os.environ["PYTHONPATH"] = os.pathsep.join([order["kit"], *roots])  # of what tests start
    sys.path[:0] = [order["kit"], *roots]  # the kit first: no file of the project stands in for it
    import pytest

    words = [
        *("-p", "no:cacheprovider", "-p", "no:terminal", "-c", order["ini"], f"--rootdir={order['folder']}"),
        *("--continue-on-collection-errors", "--import-mode=prepend", *order["files"]),
    ]
    pytest.main(words, plugins=[Reporter(channel, order["nonce"])])


if __name__ == "__main__":
    main()
