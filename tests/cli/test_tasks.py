import subprocess
import sys
from pathlib import Path

import pytest

from latih.cli.main import main
from latih.core import LatihError, Task
from latih.data import read_tasks
from latih.envs.repo_repair import RepoRepair

BUILD = ["tasks", "build", "repo_repair", "--count", "2"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--count", "0"], "--count 0: give 1 or more"),
        (["--out", "missing/a.jsonl"], "no folder"),
        (["seed=abc"], "seed='abc'"),
        (["seed=[1"], "the value of seed cannot be read as YAML"),
        (["count=3"], "count= is none of the generator's options"),
        (["progress=3"], "progress= is none of the generator's options"),
        (["bugs=0"], "bugs=0"),
        (["bugs=-1"], "greater than or equal to 1"),
        (["sed=1"], "did you mean 'seed'?"),
    ],
)
def test_a_mistake_is_told_in_one_line_before_any_work(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*BUILD, "--out", "a.jsonl", *words]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fault", [LatihError("the index is away"), KeyboardInterrupt()])
def test_what_was_built_before_a_fault_is_kept(
    fault: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_tasks(count, progress):
        yield Task(id="one", prompt="p")
        raise fault

    monkeypatch.setattr(RepoRepair, "build_tasks", staticmethod(build_tasks))
    out = tmp_path / "a.jsonl"
    assert main([*BUILD, "--out", str(out)]) in (2, 130)
    assert [each.id for each in read_tasks(out)] == ["one"]


def test_where_the_sandbox_isolates_nothing_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(RepoRepair, "build_tasks", staticmethod(lambda count, progress: iter([Task(prompt="p")])))
    for sandbox, told in (("unsafe", "warning: LATIH_SANDBOX=unsafe: code that"), ("bubblewrap", "")):
        monkeypatch.setenv("LATIH_SANDBOX", sandbox)
        assert main([*BUILD, "--out", str(tmp_path / "a.jsonl")]) == 0
        said = capsys.readouterr().err
        assert said.startswith(told)
        assert bool(said) == bool(told)


def test_neither_torch_nor_pyarrow_is_imported(tmp_path: Path) -> None:
    words = [*BUILD, "--out", str(tmp_path / "a.jsonl"), "seed=abc"]  # refused where the generator would begin
    code = (
        "import sys\nfrom latih.cli.main import main\n"
        f"assert main({words!r}) == 2\n"
        "sys.exit(', '.join({'torch', 'pyarrow'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert "seed='abc'" in done.stderr
