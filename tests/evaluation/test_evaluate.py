"""Where an evaluation is kept: told beforehand where that cannot be, and whole or as it was."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from latih.core import LatihError
from latih.core.files import need_writable
from latih.evaluation import EvalResult, EvaluationSettings, evaluate
from tests.rollout.playing import fresh, rollouts

SETTINGS = EvaluationSettings(episodes=3)


def played(env: type, folder: Path, label: str) -> EvalResult:
    return asyncio.run(evaluate(rollouts(env), SETTINGS, label=label, folder=folder))


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = os.fsync

    def fsync(handle: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{handle}")).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def refused(env: type, folder: Path) -> str:
    with pytest.raises(LatihError) as caught:
        played(env, folder, "second")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["eval.json", "episodes.parquet"])
def test_a_full_disk_is_one_line_and_leaves_the_earlier_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert played(fresh(), tmp_path, "first").episodes == 3
    before = (tmp_path / name).read_bytes()
    fill_the_disk(monkeypatch, name)
    assert refused(fresh(), tmp_path) == f"the disk is full: cannot write {name} to {tmp_path}; free some space there"
    assert (tmp_path / name).read_bytes() == before
    assert EvalResult.load(tmp_path).label == "first"
    assert sorted(os.listdir(tmp_path)) == ["episodes.parquet", "eval.json"]


def test_a_folder_that_cannot_be_is_told_before_anything_is_played(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = fresh()
    said = f"cannot write the evaluation to {tmp_path}/file/x: Not a directory"
    assert refused(env, tmp_path / "file" / "x") == said
    assert env.made == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_told_before_anything_is_played(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    env = fresh()
    assert refused(env, tmp_path) == f"cannot write the evaluation to {tmp_path}: Permission denied"
    assert env.made == []


def test_a_folder_on_a_read_only_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.TemporaryFile", read_only)
    env = fresh()
    assert refused(env, tmp_path) == f"cannot write the evaluation to {tmp_path}: Read-only file system"
    assert env.made == []


def test_a_folder_that_takes_files_is_left_as_it_was(tmp_path: Path) -> None:
    need_writable(tmp_path / "a" / "b")
    assert os.listdir(tmp_path / "a" / "b") == []
