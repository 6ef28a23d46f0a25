from pathlib import Path

import pytest

from latih.cli import machine

CPUINFO = """processor\t: 0
physical id\t: 0
core id\t: 0
flags\t\t: fpu avx2 avx512f amx_bf16

processor\t: 1
physical id\t: 0
core id\t: 0

processor\t: 2
physical id\t: 0
core id\t: 1

processor\t: 3
physical id\t: 0
core id\t: 1
"""


@pytest.fixture(autouse=True)
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine, "CPU_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(machine, "MEMORY_LIMIT", tmp_path / "memory.max")
    monkeypatch.setattr(machine, "_allowed", lambda: {0, 1, 2, 3})
    return tmp_path


def test_hyper_threads_share_a_core(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.physical_cores() == 2
    monkeypatch.setattr(machine, "_allowed", lambda: {0, 1})
    assert machine.physical_cores() == 1
    (fake / "cpuinfo").unlink()  # another system: every core counts
    assert machine.physical_cores() == 2


def test_a_container_s_quota_counts(fake: Path) -> None:
    (fake / "cpu.max").write_text("100000 100000\n")
    assert machine.physical_cores() == 1
    (fake / "cpu.max").write_text("max 100000\n")
    assert machine.physical_cores() == 2
    (fake / "memory.max").write_text("1073741824\n")
    assert machine.memory() == (2**30, 2**30)


def test_the_user_s_word_on_threads_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    machine.set_threads()
    assert machine.os.environ["OMP_NUM_THREADS"] == "7"
    monkeypatch.delenv("OMP_NUM_THREADS")
    machine.set_threads()
    assert machine.os.environ["OMP_NUM_THREADS"] == "2"


def test_description() -> None:
    about = dict(machine.describe())
    assert about["cores"].startswith("2 physical, 4 logical")
    assert about["cpu"] == "AVX2 yes, AVX-512 yes, AVX-512 bf16 no, AMX bf16 yes"
    assert "torch " in about["versions"]
