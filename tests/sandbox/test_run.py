import os
import sys
from pathlib import Path

import pytest

from latih.sandbox import Limits, Workspace, run
from tests.sandbox.needs import needs_bubblewrap

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
    assert 0 < result.seconds < 10


def test_command() -> None:
    result = run([sys.executable, "-c", "import sys; print(sys.argv[1:])", "a", "b c"])
    assert (result.code, result.stdout) == (0, b"['a', 'b c']\n")


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
    assert 1 <= result.seconds < 3


def test_workspace_stays_over_runs(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    with Workspace({"a/b.txt": "new"}, base=tmp_path) as workspace:
        run("open('c.txt', 'w').write(open('old.txt').read() + open('a/b.txt').read())", workspace=workspace)
        run("import os; os.remove('old.txt')", workspace=workspace)
        assert workspace.files() == {"a/b.txt": b"new", "c.txt": b"oldnew"}
        workspace.write("a/b.txt", "newer")
        assert run(["cat", "a/b.txt"], workspace=workspace).stdout == b"newer"
        assert workspace.read("c.txt") == b"oldnew"
    assert os.listdir(tmp_path) == ["old.txt"]


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
