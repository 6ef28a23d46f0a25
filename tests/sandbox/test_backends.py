import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from latih.core.errors import LatihError, RolloutError
from latih.sandbox import Job, Limits, SandboxError, Unsafe, Workspace, backend, backends, process, run, unisolated


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole search path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("LATIH_SANDBOX", raising=False)
    return tmp_path


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_without_bubblewrap_nothing_runs(only: Path) -> None:
    with pytest.raises(
        SandboxError, match=r"needs bubblewrap: install it .*apt install bubblewrap.*LATIH_SANDBOX=unsafe"
    ):
        run("open('ran', 'w')")
    with pytest.raises(SandboxError, match="needs bubblewrap"):
        backend()
    assert os.listdir(only) == []


def test_old_bubblewrap(only: Path) -> None:
    script(only / "bwrap", "echo '--unshare-all --die-with-parent'")
    with pytest.raises(SandboxError, match=r"bubblewrap 0\.8 or newer"):
        run("pass")


def test_broken_bubblewrap(only: Path) -> None:
    (only / "bwrap").write_bytes(b"\x7fELF")
    (only / "bwrap").chmod(0o755)
    with pytest.raises(SandboxError, match="does not run"):
        run("pass")


def test_refused_namespaces(only: Path) -> None:
    told = "bwrap: No permissions to create new namespace"
    script(only / "bwrap", f'[ "$1" = --help ] && echo --disable-userns && exit; echo "{told}" >&2; exit 1')
    script(only / "setpriv", "exit 1")
    with pytest.raises(SandboxError, match=rf"did not start: {told}; .*docs/sandbox\.md"), Workspace() as workspace:
        run("pass", workspace=workspace)


def test_a_sandbox_that_hangs(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "START_SECONDS", 0.5)
    script(only / "bwrap", '[ "$1" = --help ] && echo --disable-userns && exit; exec /bin/sleep 60')
    script(only / "setpriv", "exit 1")
    with pytest.raises(SandboxError, match="did not start: it said nothing"):
        run("pass")


def test_unknown_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATIH_SANDBOX", "none")
    with pytest.raises(SandboxError, match="LATIH_SANDBOX=none is no sandbox: known: bubblewrap, unsafe"):
        run("pass")
    assert unisolated() == ""  # nothing runs


def test_another_backend_is_a_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    class Niced(Unsafe):
        name = "niced"

        def command(self, argv: Sequence[str], job: Job, info: int, refused: int) -> list[str]:
            return ["nice", "-n", "7", *argv]

    monkeypatch.setattr(backends, "_items", dict(backends._items))
    backends.register("niced")(Niced)
    monkeypatch.setenv("LATIH_SANDBOX", "niced")
    assert run("import os; print(os.nice(0))").stdout == b"%d\n" % min(19, os.nice(0) + 7)
    assert unisolated() == "LATIH_SANDBOX=niced: code that an environment runs is not isolated"


@pytest.mark.parametrize("name", ["bubblewrap", "unsafe"])
def test_elsewhere_than_on_linux_one_line_says_so(name: str) -> None:
    # In a process of its own, without what only Linux has, or no Windows.
    code = f"""
import os, sys
from latih.core import SandboxError
for each in ("memfd_create", "pidfd_open", "sched_getaffinity"):
    delattr(os, each)
import tempfile, subprocess
sys.modules["fcntl"] = sys.modules["resource"] = None
os.environ["LATIH_SANDBOX"] = "{name}"
import latih.sandbox
sys.platform = "darwin"
try:
    latih.sandbox.run("pass")
except SandboxError as exc:
    print(exc)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == (
        "programs are run on Linux only, isolated or not: use a container or a virtual machine with Linux, or write a "
        "backend (docs/sandbox.md)\n"
    ), done.stderr


def test_elsewhere_a_backend_runs_by_its_own_means() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text(encoding="utf-8")
    [text] = re.findall(r"<!-- backend -->\n```python\n(.*?)```", page, re.DOTALL)
    code = f"""
import os, sys
for each in ("memfd_create", "pidfd_open", "sched_getaffinity"):
    delattr(os, each)
import tempfile, subprocess
sys.modules["fcntl"] = sys.modules["resource"] = None
import latih.sandbox
sys.platform = "darwin"
{text}
from latih.sandbox import Limits, Workspace, run, unisolated
os.environ["LATIH_SANDBOX"] = "plain"
source = "import os, sys; os.write(int(os.environ['LATIH_CHANNEL']), b'c'); print(open('a/b').read(), sys.stdin.read())"
result = run(source, files={{"a/b": "text"}}, stdin=b"in")
print(result.code, result.stdout, result.channel, result.cut)
with Workspace({{"old": "old"}}) as workspace:
    run(["sh", "-c", "cat old old > new; rm old; ln -s / link"], workspace=workspace)
    workspace.write("more/x", "x")
    print(run(["cat", "new", "more/x"], workspace=workspace).stdout, workspace.files())
result = run("while True: pass", limits=Limits(wall=0.2))
print(result.code, result.timed_out, result.seconds >= 0.2, run(["no-such-program"]).code)
result = run("print('x' * 100)", limits=Limits(output=10))
print(result.stdout, result.cut)
print(unisolated())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        "0 b'text in\\n' b'c' False",
        "b'oldoldx' {'more/x': b'x', 'new': b'oldold'}",
        "None True True 127",
        "b'xxxxxxxxxx' True",
        "LATIH_SANDBOX=plain: code that an environment runs is not isolated",
    ], done.stderr


def test_nothing_is_said_of_a_sandbox_that_isolates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LATIH_SANDBOX", raising=False)
    assert unisolated() == ""


def test_the_fault_is_one_of_infrastructure() -> None:
    assert issubclass(SandboxError, RolloutError)
    assert issubclass(SandboxError, LatihError)  # one line on the command line
    assert SandboxError.kind == "sandbox"


@pytest.fixture
def unsafe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LATIH_SANDBOX", "unsafe")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_unsafe_is_spelled_out(unsafe: Path) -> None:
    assert backend().name == "unsafe"
    source = """
import os, sys
os.write(int(os.environ["LATIH_CHANNEL"]), b"c")
print(open("a").read(), sys.stdin.read())
1 / 0
"""
    result = run(source, files={"a": "a"}, stdin=b"in")
    assert (result.code, result.stdout, result.channel) == (1, b"a in\n", b"c")
    assert result.stderr.endswith(b"ZeroDivisionError: division by zero\n")
    assert os.listdir(unsafe) == []


def test_unsafe_keeps_time_and_workspaces(unsafe: Path) -> None:
    with Workspace({"a": "a"}) as workspace:
        source = "import os; open('b', 'w').write('b'); os.remove('a'); os.symlink('/', 'link')\nwhile True: pass"
        assert run(source, workspace=workspace, limits=Limits(wall=1)).timed_out
        assert workspace.files() == {"b": b"b"}
    result = run(
        [sys.executable, "-c", "import os; print('x' * 100, flush=True); os.kill(os.getpid(), 9)"],
        limits=Limits(output=10),
    )
    assert (result.code, result.stdout, result.cut) == (-9, b"x" * 10, True)
    assert os.listdir(unsafe) == []


def test_unsafe_inherits_no_environment(unsafe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    assert b"hunter2" not in run("import os; print(dict(os.environ))").stdout
