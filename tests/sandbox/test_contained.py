"""Whatever a program does, `run` gives a Result, and its workspace can be used again.

An error leaves the baseline and the loss, so a program that could make one would get out of an episode that it loses.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import latih
from latih.sandbox import Limits, SandboxError, Workspace, backend, run
from latih.sandbox.process import Process
from tests.sandbox.needs import needs_bubblewrap

pytestmark = needs_bubblewrap

HEAD = """
import os, shutil, signal, socket, sys, time
def attempt(act, *args):
    try:
        return act(*args)
    except OSError:
        return None
"""
PROGRAMS = {
    "fills the disk with a file": "attempt(open('full', 'wb', 0).write, bytes(4 << 20)); os.close(os.open('a', 64))",
    "fills the disk with files": "for n in range(9999): attempt(open(str(n), 'wb', 0).write, b'x')",
    "sparse files": "for n in range(50): os.truncate(os.open(str(n), os.O_CREAT | os.O_WRONLY), 4 << 20)",
    "hard links": "open('a', 'wb').write(bytes(3 << 20))\nfor n in range(50): os.link('a', str(n))",
    "links": "for n in range(3000): attempt(os.symlink, 'x' * 4000, str(n))",
    "links in a circle": "os.symlink('.', 'a'); os.symlink('c', 'b'); os.symlink('b', 'c'); os.symlink('/', 'root')",
    "closes its folder": "attempt(os.chmod, '.', 0)",
    "closes all": "os.makedirs('a/b/c'); os.chmod('a/b', 0); os.chmod('a', 0); os.chmod('kept', 0); os.umask(0o777)\n"
    "open('closed', 'w'); os.mkdir('dark'); attempt(os.chmod, '.', 0o100); attempt(os.chmod, '/tmp', 0)",
    "long names": "for n in range(30): attempt(os.mkdir, chr(65 + n) * 255); attempt(os.chdir, chr(65 + n) * 255)",
    "deep folders": "for _ in range(1100): os.mkdir('d'); os.chdir('d')",
    "names that are no text": "open(b'\\xff', 'w'); os.mkdir(b'\\xed\\xa0\\x80'); open(b'\\xed\\xa0\\x80/a', 'w')",
    "odd names": "for name in ('\\n', ' ', '-rf', '*', '\"', '\\\\', '\\u202e', '...', '\\x7f'): os.mkdir(name)",
    "many fifos": "for n in range(30_000): os.mkfifo(str(n))",
    "many folders": "for n in range(30_000): os.mkdir(str(n))",
    "specials": "os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('s'); attempt(os.mknod, 'w', 0o020000, 0)",
    "times": "for n in (-(2 ** 63), -1, 2 ** 62, 2 ** 63 - 1):\n"
    "  open(str(n), 'w'); attempt(lambda: os.utime(str(n), ns=(n * 10**9, n * 10**9)))",
    "removes its folder": "shutil.rmtree(os.getcwd(), ignore_errors=True)",
    "moves its folder": "attempt(os.rename, os.getcwd(), '/tmp/elsewhere'); attempt(os.rename, '/tmp', '/gone')",
    "puts a file in place of its folder": "attempt(os.rmdir, os.getcwd()); attempt(open, os.getcwd(), 'w')",
    "fills /tmp": "attempt(open(os.environ['TMPDIR'] + '/x', 'wb', 0).write, bytes(5 << 20))",
    "closes its descriptors": "os.closerange(0, 65536)",
    "kills whoever started it": "attempt(os.kill, os.getppid(), signal.SIGKILL); time.sleep(0.5)",
    "signals whoever started it": "for n in set(range(1, 65)) - {9, 19, 20, 21, 22}: attempt(os.kill, os.getppid(), n)",
    "ends as by a signal": "os.kill(os.getpid(), signal.SIGSEGV)",
    "goes on writing": "if os.fork() == 0:\n  os.setsid()\n  while 1: open('b', 'w').write('b'); os.rename('b', 'c')",
    "has no processes left": "while attempt(os.fork) is not None: pass",
    "changes what was there": "os.unlink('kept'); os.mkdir('kept'); os.symlink('/', 'more.py')",
}


HARMLESS = ("hard links", "closes its folder", "long names", "deep folders", "odd names")
"""What touches nothing outside of its folder. Never run another one without isolation: some signal process 1."""


def left_by(what: str) -> str:
    """What a run says in the workspace in which the program `what` ran before; or the error."""
    assert backend().isolates or what in HARMLESS
    try:
        with Workspace({"kept": "kept"}, disk=4) as workspace:
            run(HEAD + PROGRAMS[what], workspace=workspace, limits=Limits(wall=3, disk=4))
            with contextlib.suppress(ValueError):  # what a policy is told: the workspace is full
                workspace.write("more.py", b"x" * 5000)
            for _ in range(2):
                result = run("print('usable')", workspace=workspace, limits=Limits(wall=60, disk=4))
            return result.stdout.decode()
    except SandboxError as exc:
        return str(exc)


@pytest.mark.parametrize("what", PROGRAMS)
def test_what_a_program_leaves_is_no_fault_of_the_sandbox(what: str) -> None:
    assert left_by(what) == "usable\n"


@pytest.mark.skipif(os.getuid() != 0, reason="the test above has shown it")
@pytest.mark.parametrize(("sandbox", "programs"), [("bubblewrap", tuple(PROGRAMS)), ("unsafe", HARMLESS)])
def test_nor_where_nobody_is_root(sandbox: str, programs: tuple[str, ...]) -> None:
    code = "import json, sys; from tests.sandbox.test_contained import left_by; "
    code += "print(json.dumps({what: left_by(what) for what in json.load(sys.stdin)}))"
    told = subprocess.run(
        [*as_nobody(), sys.executable, "-B", "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "LATIH_SANDBOX": sandbox},
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == dict.fromkeys(programs, "usable\n")


def as_nobody() -> list[str]:
    """The command that runs another as a user without rights, who is let to the interpreter and to latih."""
    linux = sys.modules["latih.sandbox.linux"]
    needed = {*linux.interpreter(), str(Path(latih.__file__).parent.parent), str(Path(__file__).parents[2])}
    view = ["--dev-bind", "/", "/"]
    made: set[str] = set()
    for path in sorted(needed):
        parents = [
            each for each in reversed(Path(path).parents) if not each.stat().st_mode & 0o001 or str(each) in made
        ]
        if parents:  # closed to others: show nothing of it but what is needed
            above = [parents[0], *(each for each in reversed(Path(path).parents) if parents[0] in each.parents)]
            for each in above:
                if str(each) not in made:
                    view += ["--perms", "0755", "--dir" if each != above[0] else "--tmpfs", str(each)]
                    made.add(str(each))
            view += ["--ro-bind", path, path]
    return ["bwrap", *view, "--", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]


@pytest.mark.parametrize("what", HARMLESS)
def test_nor_without_isolation(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LATIH_SANDBOX", "unsafe")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert left_by(what) == "usable\n"
    assert os.listdir(tmp_path) == []


def test_files_that_are_lost_are_those_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Process, "saved", lambda self: io.BytesIO())  # the launcher was killed
    with Workspace({"a": "a"}) as workspace:
        assert run("open('b', 'w')", workspace=workspace).cut
        assert workspace.files() == {"a": b"a"}


def test_a_workspace_larger_than_the_disk_of_a_run_is_whole_there_and_afterwards() -> None:
    with Workspace({"a": bytes(3 << 20)}) as workspace:
        result = run("import os; print(os.stat('a').st_size)", workspace=workspace, limits=Limits(disk=1))
        assert (result.stdout, result.cut) == (b"3145728\n", False)
        grow = "try: open('b', 'wb', 0).write(bytes(2 << 20))\nexcept OSError as exc: print(exc)"
        result = run(grow, workspace=workspace, limits=Limits(disk=1))
        assert not result.cut  # what found room is kept, and no file of before is lost for it
        files = workspace.files()
        assert files["a"] == bytes(3 << 20)
        assert len(files["b"]) <= 1 << 20
