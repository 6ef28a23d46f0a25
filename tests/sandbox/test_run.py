import errno
import itertools
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from latih.core import SandboxError
from latih.rollout.threads import Threads
from latih.sandbox import Limits, Workspace, run
from latih.sandbox.process import Process
from tests.sandbox.needs import needs_bubblewrap
from tests.soak import forms

pytestmark = needs_bubblewrap


def test_source_with_files_stdin_and_channel() -> None:
    source = """
import os, sys
print(open("folder/text.txt").read() + sys.stdin.read(), end="")
print("oops", file=sys.stderr, end="")
os.write(int(os.environ["LATIH_CHANNEL"]), b"[1, 2]")
sys.exit(3)
"""
    result = run(source, files={"folder/text.txt": "left "}, stdin=b"right")
    assert (result.code, result.stdout, result.stderr, result.channel) == (3, b"left right", b"oops", b"[1, 2]")
    assert not result.timed_out
    assert not result.cut
    assert result.seconds > 0


def test_command() -> None:
    result = run([sys.executable, "-c", "import sys; print(sys.argv[1:])", "a", "b c"])
    assert (result.code, result.stdout) == (0, b"['a', 'b c']\n")


def test_seconds_are_those_of_the_whole_run() -> None:
    begun = time.monotonic()
    result = run(["sleep", "0.3"])
    assert 0.3 <= result.seconds <= time.monotonic() - begun


def test_command_that_does_not_exist() -> None:
    result = run(["no-such-program"])
    assert (result.code, result.stderr) == (127, b"no-such-program: No such file or directory\n")


def test_signal_is_a_negative_code() -> None:
    assert run("import os; os.kill(os.getpid(), 11)").code == -11
    assert run("raise SystemExit(139)").code == 139


def test_output_is_cut_and_wall_is_kept() -> None:
    result = run("while True: print('x' * 1000)", limits=Limits(wall=1, output=5000))
    assert (result.code, result.timed_out, result.cut) == (None, True, True)
    assert result.stdout == (b"x" * 1000 + b"\n") * 4 + b"x" * 996
    assert 1 <= result.seconds < 30


def test_workspace_stays_over_runs() -> None:
    with Workspace({"a/b.txt": "new", "old.txt": "old"}) as workspace:
        run("open('c.txt', 'w').write(open('old.txt').read() + open('a/b.txt').read())", workspace=workspace)
        run("import os; os.remove('old.txt')", workspace=workspace)
        assert workspace.files() == {"a/b.txt": b"new", "c.txt": b"oldnew"}
        workspace.write("a/b.txt", "newer")
        assert run(["cat", "a/b.txt"], workspace=workspace).stdout == b"newer"
        assert workspace.read("c.txt") == b"oldnew"


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", "a//b", "./a"])
def test_names_are_relative(name: str) -> None:
    with pytest.raises(ValueError, match="no relative name"):
        run("", files={name: b""})


def test_read_only_folders(tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text("value = 7")
    source = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kit; print(kit.value)"
    assert run(source, read_only=[tmp_path]).stdout == b"7\n"
    assert run(f"open({str(tmp_path / 'kit.py')!r}, 'w')", read_only=[tmp_path]).code == 1
    assert (tmp_path / "kit.py").read_text() == "value = 7"


def test_many_threads_at_once() -> None:
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda number: run(f"print({number})", files={"a": str(number)}), range(48)))
    assert [result.stdout for result in results] == [f"{number}\n".encode() for number in range(48)]


@forms("executions", 10, 10_000)
def test_nothing_is_left_behind(executions: int) -> None:
    run("pass")
    before = leftovers()
    for _ in range(executions):
        run("import os; os.fork(); open('a', 'w')", limits=Limits(wall=5))
    run("while True: pass", limits=Limits(wall=0.2))
    assert leftovers() == before


def leftovers() -> dict[str, int]:
    """Our descriptors and children, and the mounts and temporary files of the machine."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    temporary = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("latih-sandbox-")]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return {
        "fds": len(os.listdir("/proc/self/fd")),
        "children": len(children),
        "mounts": len(mounts),
        "files": len(temporary),
    }


def test_source_runs_as_a_main_module() -> None:
    source = """
import sys, __main__
def double(x): return 2 * x
print(__name__, __main__.double(2), sys.argv)
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(double, [1, 2]))
"""
    assert run(source).stdout == b"__main__ 4 ['program']\n[2, 4]\n"


def test_syntax_error_is_the_programs_own() -> None:
    result = run("def")
    assert result.code == 1
    assert b"SyntaxError" in result.stderr


def test_an_installed_latih_is_masked_but_for_its_kits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = tmp_path / "prefix"
    package = prefix / "lib" / "latih"
    (package / "envs" / "kit").mkdir(parents=True)
    (package / "envs" / "answers.py").write_text("")
    (package / "envs" / "kit" / "tool.py").write_text("")
    tmp_path.chmod(0o755)
    linux = sys.modules["latih.sandbox.linux"]
    known = linux.interpreter()
    monkeypatch.setattr(linux, "interpreter", lambda: (*known, str(prefix)))
    monkeypatch.setattr(linux, "OURS", str(package))
    source = f"import os; print([os.path.join(a, b) for a, _, c in os.walk({str(prefix)!r}) for b in c])"
    wheels = prefix / "lib" / "python3.11" / "ensurepip" / "_bundled"
    wheels.mkdir(parents=True)
    (wheels / "pip.whl").write_text("")
    assert run(source).stdout == b"[]\n"
    kit = package / "envs" / "kit"
    assert run(source, read_only=[kit]).stdout.decode() == f"['{kit}/tool.py']\n"


def test_of_a_prefix_no_package_is_seen_wherever_conda_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / "conda"
    for name in (
        "bin/python",
        "lib/python3.11/os.py",
        "lib/python3.11/site-packages/a.py",
        "pkgs/numpy/lib/python3.11/site-packages/b.py",
        "envs/other/lib/python3.11/site-packages/c.py",
        "share/doc/d.py",
    ):
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).write_text("x")
    (prefix / "lib64").symlink_to("lib")
    tmp_path.chmod(0o755)
    linux = sys.modules["latih.sandbox.linux"]
    known = linux.interpreter()
    monkeypatch.setattr(linux, "interpreter", lambda: (*known, str(prefix)))
    source = f"""
import os
top = {str(prefix)!r}
print(sorted(os.path.relpath(os.path.join(a, b), top) for a, _, c in os.walk(top) for b in c))
print(os.readlink(top + "/lib64"), os.listdir(top + "/lib64/python3.11/site-packages"))
"""
    assert run(source).stdout.decode().splitlines() == ["['bin/python', 'lib/python3.11/os.py']", "lib []"]


def test_wheels_of_ensurepip_are_masked() -> None:
    source = "import ensurepip, os; print(os.listdir(os.path.dirname(ensurepip.__file__) + '/_bundled'))"
    result = run(source)
    assert (result.stdout, result.stderr) == (b"[]\n", b"")


def test_an_interruption_ends_the_program_and_is_what_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    listen = Process._listen
    ended = []

    def interrupted(self, until, done):
        if self.started is None or ended:
            return listen(self, until, done)
        ended.append(self._process)
        raise KeyboardInterrupt

    monkeypatch.setattr(Process, "_listen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("import time\ntime.sleep(60)")
    assert ended[0].poll() is not None


def test_more_than_may_run_at_once_wait_and_no_clock_runs_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["latih.sandbox.run"], "_slots", threading.BoundedSemaphore(1))
    source = "import time; print(time.monotonic()); time.sleep(0.3); print(time.monotonic())"  # one clock for all
    begun = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: run(source, limits=Limits(wall=60)), range(3)))
    spans = sorted(tuple(map(float, result.stdout.split())) for result in results)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert sum(result.seconds for result in results) <= time.monotonic() - begun  # one after the other


async def test_nor_the_deadline_of_an_envs_step(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = threading.BoundedSemaphore(1)
    monkeypatch.setattr(sys.modules["latih.sandbox.run"], "_slots", slots)
    slots.acquire()
    threading.Timer(6, slots.release).start()
    begun = time.monotonic()
    result = await Threads().take().call(lambda: run("print('done')"), 4)
    assert (result.stdout, time.monotonic() - begun >= 6) == (b"done\n", True)


def test_a_machine_out_of_files_is_the_sandboxs_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def pipe() -> tuple[int, int]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pipe", pipe)
    with pytest.raises(SandboxError, match=r"the sandbox does not start: .*Too many open files"):
        run("")


def test_files_left_alone_are_kept_in_a_full_workspace() -> None:
    held = {"a": b"x" * (2 << 20)}
    with Workspace(held) as workspace:
        result = run("open('b', 'w').write('new')", workspace=workspace, limits=Limits(disk=1))
        assert (result.code, result.cut) == (0, False)
        assert workspace.files() == {**held, "b": b"new"}
