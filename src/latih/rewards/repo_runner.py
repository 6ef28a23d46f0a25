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

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst of a test's phases, and write it down after the last."""
        now = report.outcome
        if now == "failed" and report.when != "call":
            now = "error"
        elif hasattr(report, "wasxfail"):
            now = "skipped"
        if now != "passed":
            self.outcomes.setdefault(report.nodeid, now)
        if report.when == "teardown":
            line = {"nonce": self.nonce, "id": report.nodeid, "outcome": self.outcomes.get(report.nodeid, "passed")}
            os.write(self.channel, json.dumps(line).encode() + b"\n")


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
