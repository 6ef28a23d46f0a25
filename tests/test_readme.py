import json
import random
import re
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gymnasium.utils.env_checker import check_env

from latih.cli.main import main
from latih.envs import find, make
from tests.tiny import tiny_model, tiny_settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the README's environment, word for word, and nothing else."""
    [text] = re.findall(r"<!-- my_env\.py -->\n```python\n(.*?)```", README, re.DOTALL)
    assert len(text.splitlines()) < 40
    folder = tmp_path_factory.mktemp("user")
    (folder / "my_env.py").write_text(text, encoding="utf-8")
    return folder


def test_env_is_sound(folder: Path) -> None:
    env = make(f"{folder / 'my_env.py'}:MyEnv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)
    assert make("my_env").spec.id == "latih/MyEnv-v0"


def test_env_pays_what_it_says(folder: Path) -> None:
    env = find(f"{folder / 'my_env.py'}:MyEnv")()
    env.reset(seed=3)
    wrong = "1" if env.secret != 1 else "2"
    hint = "Higher." if env.secret > int(wrong) else "Lower."
    assert env.step(wrong) == (hint, 0.0, False, False, {})
    assert env.step(f" {env.secret}\n") == ("Found.", 1.0, True, False, {"metrics": {"correct": 1.0, "invalid": 0.0}})
    for nonsense in ("", "0", "12", "seven", "123456789"):
        env.reset(seed=3)
        assert env.step(nonsense)[1:4] == (-1.0, True, False)
    rng, found = random.Random(0), 0.0
    for seed in range(900):
        env.reset(seed=seed)
        over = False
        while not over:
            _, reward, over, _, _ = env.step(env.scripted("random", rng))
            found += reward
    assert found / 900 == pytest.approx(1 - (8 / 9) ** 3, abs=0.05)


def test_its_commands_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [line.split() for line in README.splitlines() if line.startswith("latih train my_env.py:MyEnv")]
    assert len(commands) == 2
    monkeypatch.chdir(folder)
    small = ["trainer.warm_start.steps=1", *tiny_settings(tiny_model(tmp_path / "tiny"), tmp_path / "runs")]
    for command in commands:
        assert main([*command[1:], *small]) == 0
    out = capsys.readouterr().out
    assert "I think of a number" in out
    assert "after RL" in out
    [run] = (tmp_path / "runs").iterdir()
    assert [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()][-1] == 1


def test_its_data_example_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [text] = re.findall(r"<!-- math\.yaml -->\n```yaml\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("math.yaml").write_text(text)
    Path("rows").mkdir()
    for name, first in (("train", 0), ("test", 5), ("more", 9)):
        rows = [{"question": f"How much is {n} and {n}?", "answer": f"#### {2 * n}"} for n in range(first, first + 4)]
        pq.write_table(pa.Table.from_pylist(rows), f"rows/{name}.parquet")
    commands = [line.split()[1:] for line in README.splitlines() if line.startswith("latih train math.yaml")]
    commands += [line.split()[1:] for line in README.splitlines() if line.startswith("latih eval runs/<run> gsm8k")]
    assert len(commands) == 3
    small = [*tiny_settings(tiny_model(tmp_path / "tiny"), Path("runs")), "rollout.sampling.max_tokens=8"]
    assert main([*commands[0], *small]) == 0
    assert "How much is" in capsys.readouterr().out
    assert main([*commands[1], *small]) == 0
    [run] = Path("runs").iterdir()
    assert main([word.replace("runs/<run>", str(run)) for word in commands[2]]) == 0
