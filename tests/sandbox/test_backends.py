import os
import sys
from pathlib import Path

import pytest

from latih.core.errors import LatihError, RolloutError
from latih.sandbox import Limits, SandboxError, Workspace, backend, process, run


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
    with pytest.raises(SandboxError, match="LATIH_SANDBOX=none is no sandbox"):
        run("pass")


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
