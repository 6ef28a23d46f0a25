import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from latih.core import LatihError
from latih.core.files import scratch, whole_file, whole_folder, writing


def test_a_file_is_new_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    with whole_file(path) as temporary:
        temporary.write_text("one")
        assert not path.exists()
    with contextlib.suppress(RuntimeError), whole_file(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]


def test_of_two_that_make_a_folder_the_first_stays(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    with whole_folder(path) as slow:
        (slow / "file").write_text("slow")
        with whole_folder(path) as fast:
            (fast / "file").write_text("fast")
    assert (path / "file").read_text() == "fast"
    assert list(tmp_path.iterdir()) == [path]


@writing("x", Path("there"), "hint")
def full() -> None:
    try:
        raise OSError(errno.ENOSPC, "full")
    except OSError as exc:
        raise ValueError("wrapped") from exc


def test_a_full_disk_is_one_line_however_it_is_wrapped() -> None:
    with pytest.raises(LatihError, match=r"^the disk is full: cannot write x to there; free some space there; hint$"):
        full()


def test_a_folder_that_another_makes_at_the_last_moment_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rename = tmp_path / "folder", Path.rename

    def late(self: Path, target: Path) -> Path:
        target.mkdir()
        (target / "file").write_text("theirs")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    with whole_folder(path) as temporary:
        (temporary / "file").write_text("ours")
    assert (path / "file").read_text() == "theirs"


def test_a_folder_that_cannot_be_put_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(NotADirectoryError), whole_folder(tmp_path / "folder"):
        pass


def test_a_scratch_folder_of_a_process_that_was_killed_is_removed_and_one_in_use_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import os, sys, tempfile; tempfile.tempdir = sys.argv[1]\nfrom latih.core.files import scratch\n"
    code += "with scratch('some-') as folder: (folder / 'secret').write_text('x'); print(folder, flush=True); input()"
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        left = Path(process.stdout.readline().strip())
        (tmp_path / "other").mkdir()
        for each in (left, tmp_path / "other"):
            os.utime(each, (0, 0))
        with scratch("some-") as ours:
            assert {left, ours} <= set(tmp_path.iterdir())
        process.kill()
        process.wait()
        os.utime(left)
        with scratch("some-"):
            assert left.exists()  # too young: it might not be locked yet
        os.utime(left, (0, 0))
        with scratch("some-") as ours:
            assert set(tmp_path.iterdir()) == {ours, tmp_path / "other"}
    assert [each.name for each in tmp_path.iterdir()] == ["other"]
