import subprocess
import sys
import time

import pytest

import latih
from latih.cli.main import main, parse
from latih.core import LatihError


def test_words_in_any_order() -> None:
    args = parse(["train", "tic_tac_toe", "--dry-run", "trainer.steps=2", "--long", "seed=1"])
    assert (args.target, args.overrides) == ("tic_tac_toe", ["trainer.steps=2", "seed=1"])
    assert (args.dry_run, args.long, args.resume) == (True, True, None)
    args = parse(["train", "--resume", "run-1", "trainer.steps=2"])
    assert (args.target, args.overrides, args.resume) == (None, ["trainer.steps=2"], "run-1")
    args = parse(["train", "trainer.steps=2", "--resume"])
    assert (args.target, args.overrides, args.resume) == (None, ["trainer.steps=2"], "")
    args = parse(["train", "--resume", "trainer.steps=2", "seed=1"])
    assert (args.target, args.overrides, args.resume) == (None, ["trainer.steps=2", "seed=1"], "")
    args = parse(["eval", "run-1", "tic_tac_toe", "--episodes", "9", "evaluation.temperature=0"])
    assert (args.policy, args.env, args.episodes) == ("run-1", "tic_tac_toe", 9)
    assert args.overrides == ["evaluation.temperature=0"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "required: COMMAND"),
        (["trian", "x"], "invalid choice: 'trian'"),
        (["train"], "say what to train"),
        (["train", "tic_tac_toe", "--steps"], "'--steps' is not understood"),
        (["train", "tic_tac_toe", "--long", "more"], "'more' is not understood"),
        (["train", "tic_tac_toe", "--resume"], "'tic_tac_toe' has no use with --resume, which takes a run: `latih"),
        (["train", "--resume", "--long"], "'--long' has no use with --resume"),
        (["eval", "run"], "required: env"),
        (["eval", "run", "env", "--episodes", "many"], "invalid int value"),
    ],
)
def test_misuse_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out = capsys.readouterr()
    assert said in out.err
    assert out.err.count("\n") == 1
    assert out.err.startswith("latih: ")


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(LatihError):
        main(["train", "--debug"])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"latih {latih.__version__}\n"


def test_help_is_light() -> None:
    code = (
        "import sys\nfrom latih.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'pyarrow', 'gymnasium', 'matplotlib', 'rich', 'yaml'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "latih train tic_tac_toe" in done.stdout
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "latih.cli", "--help"], capture_output=True, check=True, timeout=60)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_envs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs"]) == 0
    out = capsys.readouterr().out
    assert "tic_tac_toe" in out
    assert "arithmetic_tool" in out
