import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from latih.cli.main import main
from latih.cli.screen import Screen
from latih.cli.settings import eval_config
from latih.data import read_trajectories
from latih.evaluation import find_source
from latih.runs import Run
from latih.runs import checkpoints as checkpoint_io
from tests.tiny import tiny_model

Capture = pytest.CaptureFixture[str]


def fails(capsys: Capture, words: list[str]) -> str:
    """The one line that a command says when it refuses."""
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("latih: ")
    assert said.count("\n") == 1, said
    assert "Traceback" not in said
    return said


def test_train_resume_and_eval(tmp_path: Path, quick: list[str], capsys: Capture) -> None:
    assert main(["train", "tic_tac_toe", *quick]) == 0
    shown = capsys.readouterr().out
    for word in ("before", "after warm start", "after RL", "reward", "invalid", "an episode, before", "run folder"):
        assert word in shown
    for column in ("mixed", "entropy", "kl", "clip", "grad", "sample/s", "learn/s", "play/learn/rest"):
        assert column in shown
    run = Run.open("r", tmp_path / "runs")
    assert run.config["trainer"]["steps"] == 2
    steps = [row for row in run.metrics() if "reward" in row]
    assert [row["step"] for row in steps] == [1, 2]
    assert run.checkpoints().steps()[-1] == 2
    assert [len(read_trajectories(run.trajectories_path(step))) for step in (1, 2)] == [4, 4]
    report = (run.folder / "report.md").read_text()
    assert "| | before | after warm start | after RL |" in report
    assert (run.folder / "reward.png").read_bytes().startswith(b"\x89PNG")

    folder = f"run.folder={tmp_path / 'runs'}"
    assert main(["train", "--resume", "r", folder, "trainer.steps=3"]) == 0
    run = Run.open("r", tmp_path / "runs")
    assert run.config["trainer"]["steps"] == 3
    assert [row["step"] for row in run.metrics() if "reward" in row] == [1, 2, 3]

    capsys.readouterr()
    assert main(["eval", str(run.folder), "tic_tac_toe", "--episodes", "5", "evaluation.temperature=0.5"]) == 0
    assert "step-000003" in capsys.readouterr().out
    [made] = (run.folder / "evaluations" / "by-hand").iterdir()
    result = json.loads((made / "eval.json").read_text())
    assert (result["episodes"], result["sampling"]["temperature"], result["sampling"]["max_tokens"]) == (5, 0.5, 2)
    assert result["harness"] == run.config["harness"] == {"id": "chat_loop", "args": {"window": 0}}
    assert result["env_args"] == run.config["env"]["args"]
    assert len(read_trajectories(made / "episodes.parquet")) == 5


def test_dry_run_trains_nothing(tmp_path: Path, quick: list[str], capsys: Capture) -> None:
    assert main(["train", "tic_tac_toe", "--dry-run", *quick]) == 0
    out = capsys.readouterr().out
    for part in ("lr: ", "cores: ", "versions: latih", "<|im_start|>assistant", "nothing was trained"):
        assert part in out
    assert not (tmp_path / "runs").exists()
    assert yaml.safe_load(out.partition("config\n")[2].partition("\n\nmachine")[0])["trainer"]["steps"] == 2


LAST_WORD = """
from latih.harnesses import harnesses


@harnesses.register("last_word")
class LastWord:
    async def play(self, episode):
        new = await episode.reset()
        while not episode.done:
            new = await episode.step(await episode.model.chat(new[-1:]))
"""


def test_every_report_of_a_run_says_that_programs_were_not_isolated(
    tmp_path: Path, quick: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "LATIH_SANDBOX=unsafe: code that an environment runs is not isolated"
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LATIH_SANDBOX", "unsafe")
    assert main(["train", "tic_tac_toe", "--dry-run", *quick]) == 0
    assert f"warning: {said}" in capsys.readouterr().out
    assert main(["train", "tic_tac_toe", *quick, "trainer.steps=0"]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(said) == 2  # before training, and with the table
    folder = tmp_path / "runs" / "r"
    assert f"**Warning:** {said}" in (folder / "report.md").read_text()
    assert all(said in each.read_text() for each in (folder / "evaluations").glob("*/eval.json"))
    assert main(["eval", str(folder), "tic_tac_toe", "--episodes", "3"]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_run_is_evaluated_by_its_own_harness(tmp_path: Path, quick: list[str], capsys: Capture) -> None:
    plugin = tmp_path / "last_word.py"
    plugin.write_text(LAST_WORD)
    quick += [f"plugins=[{plugin}]", "harness={id: last_word, args: {}}", "env.args.side=o"]
    assert main(["train", "tic_tac_toe", "--dry-run", *quick, "harness.id=chat_loop"]) == 0
    assert "<|im_start|>system" in capsys.readouterr().out
    assert main(["train", "tic_tac_toe", "--dry-run", *quick]) == 0
    assert "<|im_start|>system" not in capsys.readouterr().out
    assert main(["train", "tic_tac_toe", *quick, "trainer.steps=0"]) == 0
    folder = tmp_path / "runs" / "r"
    assert main(["eval", str(folder), "tic_tac_toe", "--episodes", "3"]) == 0
    [made] = (folder / "evaluations" / "by-hand").iterdir()
    for each in read_trajectories(made / "episodes.parquet"):
        for sequence in each.sequences:
            assert [message.role for message in sequence.messages] == ["user", "assistant"]
            assert sequence.messages[0].text.count("-") in (2, 3, 4)  # and the run's own dials: O has moved


def test_another_env_is_played_as_its_own_recipe_says(tmp_path: Path, quick: list[str]) -> None:
    assert main(["train", "tic_tac_toe", *quick, "trainer.steps=0"]) == 0
    source = find_source(tmp_path / "runs" / "r")
    same, other = (eval_config(source, env, []) for env in ("tic_tac_toe", "arithmetic_tool"))
    assert (same.harness.args, same.rollout.sampling.max_tokens) == ({"window": 0}, 2)
    assert (other.env.id, other.harness.args, other.rollout.sampling.max_tokens) == ("arithmetic_tool", {}, 64)
    assert other.trainer == same.trainer
    for env in ("latih/TicTacToe-v0", "latih.envs.tic_tac_toe:TicTacToe"):  # other names of the run's own env
        assert eval_config(source, env, []) == same


OWN = """
from latih.envs import MessageEnv, register


@register("plugged_in")
class PluggedIn(MessageEnv):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return "Say anything.", {}

    def step(self, action):
        return "", float(len(action) % 2), True, False, {}
"""


def test_an_env_of_a_plugin_by_its_bare_name(tmp_path: Path, quick: list[str]) -> None:
    plugin = tmp_path / "plugged_in.py"
    plugin.write_text(OWN)
    quick = [each for each in quick if "warm_start" not in each]
    # in a process of its own, which has not imported the plugin
    for words in (
        ["train", "plugged_in", f"plugins=[{plugin}]", *quick, "trainer.steps=0"],
        ["eval", str(tmp_path / "runs" / "r"), "plugged_in", "--episodes", "2"],
    ):
        subprocess.run([sys.executable, "-m", "latih.cli", *words], check=True, timeout=120)
    assert Run.open("r", tmp_path / "runs").config["env"]["id"] == "plugged_in"
    assert len(list(tmp_path.glob("runs/r/evaluations/by-hand/*/eval.json"))) == 1


def test_eval_of_a_model(tmp_path: Path, tiny: Path, capsys: Capture) -> None:
    words = [f"run.folder={tmp_path}", "inference.kv_cache_gb=0.05", "trainer.policy.model.dtype=float32"]
    assert main(["eval", str(tiny), "tic_tac_toe", "--episodes", "3", *words]) == 0
    [made] = tmp_path.glob("eval-tiny-*")
    assert (made / "eval.json").is_file()
    assert "3 held-out episodes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tik_tac_toe"], "unknown recipe or environment 'tik_tac_toe': did you mean 'tic_tac_toe' or"),
        (["latih/TicTacTo-v0"], "unknown environment 'latih/TicTacTo-v0': did you mean"),
        (["nowhere.py:MyEnv"], "no such file: "),
        (["tic_tac_toe", "trainer.optimiser.lr=1"], "unknown setting trainer.optimiser"),
        (["tic_tac_toe", "trainer.steps=many"], "trainer.steps='many': expected a valid integer"),
        (["tic_tac_toe", "env.args.oponent=minimax"], "has no dial 'oponent': did you mean 'opponent'"),
        (["tic_tac_toe", "env.args.opponent=nobody"], "opponent"),
        (["tic_tac_toe", "harness.id=chatloop"], "unknown harness 'chatloop': did you mean 'chat_loop'?"),
        (["tic_tac_toe", "harness.args.windw=1"], "chat_loop has no dial 'windw': did you mean 'window'?"),
        (["tic_tac_toe", "trainer.warm_start.policy=exprt"], "no scripted policy 'exprt': did you mean 'expert'?"),
        (["tic_tac_toe", "plugins=[nowhere.py]"], "no such file: "),
        (["tic_tac_toe", "trainer.policy.model.path=/no/such/model"], "no model at '/no/such/model'"),
        (["tic_tac_toe", "tracking.loggers=[tensorbord]"], "unknown logger 'tensorbord': did you mean 'tensorboard'?"),
        (
            ["tic_tac_toe", "inference.context_length=40"],
            "leaves no room for a reply in a context of 40: raise inference",
        ),
        # the tiny model: 2 layers x 2 heads x 8 x 2 (keys, values) x 4 bytes = 256 bytes a token, 512 tokens a context
        (
            ["tic_tac_toe", "inference.kv_cache_gb=0.0001"],
            "kv_cache_gb=0.0001 holds 419 tokens, but one context of 512",
        ),
        (["tic_tac_toe", "inference.context_length=513"], "context_length=513 is past the model's own 512"),
        (["tic_tac_toe_duel", "roles.o=exprt"], "no player 'exprt': did you mean 'expert'? Nor is it a run,"),
        (["tic_tac_toe_duel", "evaluation.opponent=randm"], "no player 'randm': did you mean 'random'?"),
        (["--resume", "nothing"], "there is no run 'nothing'"),
    ],
)
def test_mistakes_are_one_line(quick: list[str], capsys: Capture, words: list[str], said: str) -> None:
    keys = {word.partition("=")[0] for word in words}
    quick = [each for each in quick if each.partition("=")[0] not in keys]
    assert said in fails(capsys, ["train", *words, *quick])


@pytest.mark.parametrize("command", ["train", "train --dry-run", "eval"])
def test_a_cache_too_small_is_told_before_the_weights_are_read(
    tmp_path: Path, tiny: Path, quick: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("latih.models.policy.read_weights", lambda *_: pytest.fail("the weights were read"))
    quick = [each for each in quick if not each.startswith("inference.kv_cache_gb")]
    words = [str(tiny), "tic_tac_toe"] if command == "eval" else ["tic_tac_toe"]
    said = fails(capsys, [*command.split(), *words, *quick, "inference.kv_cache_gb=0.0001"])
    assert "inference.kv_cache_gb=0.0001 holds 419 tokens" in said
    assert not (tmp_path / "runs").exists()


def test_a_gpu_that_is_not_there(quick: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    said = fails(capsys, ["train", "tic_tac_toe", *quick, "trainer.policy.model.device=cuda"])
    assert "device 'cuda' is not on this machine" in said


@pytest.mark.parametrize("damage", ["truncated", "garbage"])
def test_a_corrupt_model(tmp_path: Path, quick: list[str], tiny: Path, capsys: Capture, damage: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny, copy)
    weights = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(weights[:-100] if damage == "truncated" else b"\x00" * 1000)
    assert "model.safetensors is damaged" in fails(
        capsys, ["train", "tic_tac_toe", *quick, f"trainer.policy.model.path={copy}"]
    )


def test_no_network_for_the_download(
    tmp_path: Path, quick: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATIH_CACHE", str(tmp_path / "cache"))
    for name in [each for each in os.environ if each.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    said = fails(capsys, ["train", "tic_tac_toe", *quick, "trainer.policy.model.path=default"])
    assert "network" in said or "fetch" in said or "download" in said


def test_a_full_disk_while_saving(
    tmp_path: Path, quick: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = checkpoint_io.fsync_tree

    def fsync_tree(folder: Path) -> None:
        if folder.name.endswith("step-000002"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(folder)

    monkeypatch.setattr(checkpoint_io, "fsync_tree", fsync_tree)
    said = fails(capsys, ["train", "tic_tac_toe", *quick])
    assert "the disk is full: cannot write checkpoint step-000002 to" in said
    assert "step-000001 is whole and stays" in said
    monkeypatch.undo()
    assert main(["train", "--resume", "r", f"run.folder={tmp_path / 'runs'}"]) == 0
    assert Run.open("r", tmp_path / "runs").checkpoints().steps()[-1] == 2


def test_a_checkpoint_of_another_model(tmp_path: Path, quick: list[str], capsys: Capture) -> None:
    assert main(["train", "tic_tac_toe", *quick]) == 0
    folder = f"run.folder={tmp_path / 'runs'}"
    for name, more in (("shape", {"hidden": 64}), ("weights", {"seed": 1})):
        other = tiny_model(tmp_path / name, **more)
        words = ["train", "--resume", "r", folder, f"trainer.policy.model.path={other}", "trainer.steps=3"]
        assert "another model" in fails(capsys, words)


def test_a_name_that_is_taken(quick: list[str], capsys: Capture) -> None:
    assert main(["train", "tic_tac_toe", *quick, "trainer.steps=0"]) == 0
    assert "exists: resume it with" in fails(capsys, ["train", "tic_tac_toe", *quick])


def start(quick: list[str], *more: str, background: bool = False) -> "subprocess.Popen[str]":
    shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"] if background else []  # as `&` in a script
    words = [*shell, sys.executable, "-m", "latih.cli", "train", more[0], *quick, *more[1:]]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def wait_for_steps(folder: Path, child: "subprocess.Popen[str]", count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and child.poll() is None:
        path = folder / "metrics.jsonl"
        if path.exists() and path.read_text().count('"reward"') >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"no step within the deadline: {child.communicate() if child.poll() is not None else ''}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "background"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)]
)
def test_ctrl_c_says_how_to_resume_and_leaves_nothing(
    tmp_path: Path, quick: list[str], sign: signal.Signals, background: bool
) -> None:
    child = start(quick, "tic_tac_toe", "trainer.steps=100000", background=background)
    wait_for_steps(tmp_path / "runs" / "r", child, 3)
    child.send_signal(sign)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert err.startswith("latih: interrupted; go on ")
    assert err.endswith(f" with `latih train --resume r run.folder={tmp_path / 'runs'}`\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)  # nobody of its session is left
    run = Run.open("r", tmp_path / "runs")
    last = run.checkpoints().steps()[-1]
    assert main(["train", "--resume", "r", f"run.folder={tmp_path / 'runs'}", f"trainer.steps={last + 1}"]) == 0
    assert run.checkpoints().steps()[-1] == last + 1


@pytest.mark.parametrize(
    ("event", "every", "told"),
    [
        ("evaluation before", 1, "interrupted before anything was saved; begin again with "),
        ("step 1: playing", 1, "interrupted; go on with "),
        ("step 2: playing", 5, "interrupted; go on behind step 0, the last that was saved, with "),
    ],
)
def test_ctrl_c_says_what_is_lost(
    quick: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    event: str,
    every: int,
    told: str,
) -> None:
    progress = Screen.progress

    def interrupting(screen: Screen, name: str, total: int) -> object:
        if name == event:
            raise KeyboardInterrupt
        return progress(screen, name, total)

    monkeypatch.setattr(Screen, "progress", interrupting)
    assert main(["train", "tic_tac_toe", *quick, f"trainer.checkpoint.every={every}"]) == 130
    assert f"latih: {told}`latih train --resume r " in capsys.readouterr().err


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path, quick: list[str]) -> None:
    child = start(quick, "tic_tac_toe", "trainer.steps=100000")
    wait_for_steps(tmp_path / "runs" / "r", child, 3)
    child.kill()
    child.communicate()
    run = Run.open("r", tmp_path / "runs")
    last = run.checkpoints().steps()[-1]
    assert main(["train", "--resume", "r", f"run.folder={tmp_path / 'runs'}", f"trainer.steps={last + 2}"]) == 0
    assert [row["step"] for row in run.metrics() if "reward" in row] == list(range(1, last + 3))


@pytest.mark.parametrize("where", ["roles.o", "evaluation.opponent"])
def test_a_dry_run_tells_of_a_player_that_is_not_there(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tic_tac_toe_duel", "--dry-run", f"{where}=exprt"]) == 2
    assert "no player 'exprt': did you mean 'expert'" in capsys.readouterr().err
