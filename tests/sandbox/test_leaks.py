"""The leak check of bench/sandbox.py sees what leaks: here things do, on purpose."""

import os
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from bench.sandbox import census

from latih.sandbox import Limits, run
from tests.sandbox.needs import needs_bubblewrap

DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("up", "w").write(str(os.getpid()))
        os.write(int(os.environ["LATIH_CHANNEL"]), b"%d" % os.getpid())
        os.closerange(0, 256)
        time.sleep(60)
    os._exit(0)
os.wait()
"""


def new(before: dict[str, set[str]]) -> dict[str, set[str]]:
    after = census()
    return {what: after[what] - before[what] for what in after if after[what] - before[what]}


def test_a_daemon_that_a_backend_without_isolation_leaves_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LATIH_SANDBOX", "unsafe")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = census()
    pid = run(DAEMON, limits=Limits(wall=60)).channel.decode()
    try:
        assert pid in new(before)["processes in sandboxes"]
    finally:
        os.kill(int(pid), 9)


@needs_bubblewrap
def test_a_sandbox_that_goes_on_is_seen_with_its_mounts() -> None:
    before = census()
    command = ["bwrap", "--unshare-all", "--bind", "/", "/", "--proc", "/proc", "--", "sh", "-c", "echo up; sleep 60"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        found = new(before)
        assert len(found["processes in sandboxes"]) >= 2  # bwrap itself, and what is inside
        assert [each for each in found["mounts, and namespaces of them"] if each.startswith("mnt:")]
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


def test_files_descriptors_and_threads_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = census()
    path = tempfile.mkdtemp(prefix="any-name-")
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    with open(os.devnull):
        found = new(before)
    end.set()
    thread.join()
    assert found["temporary files"] == {Path(path).name}
    assert len(found["threads"]) == 1
    assert len(found["open files"]) >= 1
