"""Games of several roles in training: shared, own, past, scripted and frozen players."""

import pytest

from latih.cli.main import main
from latih.core import ConfigError, LatihError
from latih.data import read_trajectories
from latih.envs import EnvSettings
from latih.evaluation import EvalResult, check_player, find_source
from latih.evaluation.players import frozen
from latih.rollout import PlayerSettings
from latih.runs import Run
from latih.train.config import resolve
from latih.train.loop import train
from tests.serving import says, serving
from tests.tiny import tiny_model


def config(tmp_path, *overrides, name="run", target="tic_tac_toe_duel"):
    model = tmp_path / "model"
    if not model.exists():
        tiny_model(model)
    return resolve(
        target,
        [
            f"trainer.policy.model={{path: {model}, dtype: float32, device: cpu}}",
            f"run={{folder: {tmp_path}, name: {name}}}",
            "trainer.steps=3",
            "trainer.checkpoint.every=1",
            "trainer.warm_start={steps: 2, games: 2}",
            "rollout={groups: 3, group_size: 3, max_turns: 6, sampling: {max_tokens: 4}}",
            "evaluation={episodes: 4}",
            *overrides,
        ],
    )


def run_of(settings):
    with Run.create(settings.run, settings.as_dict()) as run:
        train(settings, run)
    return run


def rows(run):
    return [row for row in run.metrics() if "reward" in row]


def test_self_play_trains_on_both_sides_and_measures_each_seat(tmp_path):
    run = run_of(config(tmp_path))
    played = read_trajectories(run.trajectories_path(1))
    assert [each.role for each in played] == (["x"] * 3 + ["o"] * 3) * 3
    assert {each.group for each in played} == {f"train/1/{i}/{role}" for i in range(3) for role in "xo"}
    assert rows(run)[0]["groups"] == 6
    result = EvalResult.load(run.folder / "evaluations" / "step-000003-after-RL")
    assert result.episodes == 8  # four on each side
    assert {"win", "x/win", "o/win"} <= result.rates.keys()
    held_out = read_trajectories(run.folder / "evaluations" / "step-000003-after-RL" / "episodes.parquet")
    assert [each.seed for each in held_out[:4]] == [each.seed for each in held_out[4:]]


def test_a_role_of_ones_own_has_its_own_policy_and_both_survive_a_restart(tmp_path):
    more = ("roles.o=own", "deterministic=true")
    whole = run_of(config(tmp_path, *more))
    assert "o/grad_norm" in rows(whole)[-1] or "o/groups" in rows(whole)[-1]
    folder = whole.checkpoints().last()
    adapters = [path / "adapter" / "adapter_model.safetensors" for path in (folder, folder / "roles" / "o")]
    assert adapters[0].read_bytes() != adapters[1].read_bytes()
    cut = run_of(config(tmp_path, *more, "trainer.steps=2", name="cut"))
    resumed = config(tmp_path, *more, name="cut")
    with Run.open("cut", tmp_path, write=True) as run:
        train(resumed, run, resume=True)
    keep = ("reward", "loss", "entropy", "o/loss", "o/entropy", "x/reward", "o/reward")
    assert [{k: row.get(k) for k in keep} for row in rows(cut)[2:]] == [
        {k: row.get(k) for k in keep} for row in rows(whole)[2:]
    ]


def test_the_past_is_drawn_from_a_pool_and_learns_nothing(tmp_path):
    more = ("roles={o: past}", "deterministic=true")
    whole = run_of(config(tmp_path, *more))
    assert whole.pool().steps() == [0, 1, 2, 3]
    assert {each.role for each in read_trajectories(whole.trajectories_path(2))} == {"x"}
    # measured in both seats all the same: the policy can play either
    assert EvalResult.load(whole.folder / "evaluations" / "step-000003-after-RL").episodes == 8
    cut = run_of(config(tmp_path, *more, "trainer.steps=2", name="cut"))
    with Run.open("cut", tmp_path, write=True) as run:
        train(config(tmp_path, *more, name="cut"), run, resume=True)
    assert [row["reward"] for row in rows(cut)] == [row["reward"] for row in rows(whole)]


def test_a_frozen_run_and_a_script_may_hold_a_role(tmp_path):
    first = run_of(config(tmp_path, "trainer.steps=1"))
    for player in (str(first.folder), "expert"):
        run = run_of(config(tmp_path, f"roles.o={player}", "trainer.steps=1", name=f"against-{player[-3:]}"))
        assert {each.role for each in read_trajectories(run.trajectories_path(1))} == {"x"}
        assert EvalResult.load(run.folder / "evaluations" / "step-000001-after-RL").episodes == 4
    assert find_source(first.folder).version == rows(first)[-1]["version"]


def test_roles_that_help_each_other_are_measured_together(tmp_path):
    run = run_of(config(tmp_path, "evaluation.opponent=policy", "trainer.warm_start=null", target="codewords"))
    result = EvalResult.load(run.folder / "evaluations" / "step-000003-after-RL")
    assert result.episodes == 8
    assert {"giver/accuracy", "guesser/accuracy"} <= result.rates.keys() | result.means.keys()


def test_latih_eval_seats_the_roles_as_training_does(tmp_path, capsys):
    run = run_of(config(tmp_path, "roles.o=past", "trainer.steps=1"))
    assert main(["eval", str(run.folder), "tic_tac_toe_duel", "--episodes", "4"]) == 0
    [folder] = (run.folder / "evaluations" / "by-hand").iterdir()
    by_hand = EvalResult.load(folder)
    trained = EvalResult.load(run.folder / "evaluations" / "step-000001-after-RL")
    assert (by_hand.episodes, by_hand.reward, by_hand.rates) == (8, trained.reward, trained.rates)
    own = run_of(config(tmp_path, "roles.o=own", "trainer.steps=1", name="own"))
    assert main(["eval", str(own.folder), "tic_tac_toe_duel", "--episodes", "4"]) == 2
    assert "role o has a policy of its own: say who plays it, such as roles.o=random" in capsys.readouterr().err
    assert main(["eval", str(own.folder), "tic_tac_toe_duel", "--episodes", "4", "roles.o=random"]) == 0


@pytest.mark.parametrize(
    ("target", "overrides", "message"),
    [
        ("tic_tac_toe_duel", ["roles.z=past"], "roles.z: tic_tac_toe_duel has no role 'z': known: o, x"),
        ("tic_tac_toe", ["roles.x=past"], "tic_tac_toe has no role 'x': it has no roles"),
        ("tic_tac_toe_duel", ["roles={x: past, o: own}"], "no role is played by `policy`"),
        ("tic_tac_toe_duel", ["evaluation.opponent=past"], "evaluation.opponent: name one that stays as it is"),
    ],
)
def test_wrong_roles_get_one_line(target, overrides, message):
    with pytest.raises(ConfigError) as caught:
        resolve(target, overrides)
    assert message in str(caught.value)


def test_an_unknown_player_is_told_before_training(tmp_path):
    settings = config(tmp_path, "roles.o=exprt")
    with (
        Run.create(settings.run, settings.as_dict()) as run,
        pytest.raises(ConfigError, match=r"no player 'exprt': did you mean 'expert'"),
    ):
        train(settings, run)


def test_an_endpoint_that_plays_a_role_keeps_no_connection_open(tmp_path):
    with serving(says(content="5")) as served:
        endpoint = f"{{player: {served.url}, model: big}}"
        run = run_of(config(tmp_path, f"roles.x={endpoint}", "trainer.steps=2"))
        assert served.open() == 0
    assert served.connections >= 4  # each of the two steps and two evaluations has a loop of its own
    assert {each.body["model"] for each in served.requests} == {"big"}
    assert {each.role for each in read_trajectories(run.trajectories_path(2))} == {"o"}


def test_a_player_by_url_is_checked_before_it_plays():
    env = EnvSettings(id="tic_tac_toe_duel")
    check_player(PlayerSettings(player="http://localhost:1/v1", model="big"), env)  # whether it answers is seen later
    with pytest.raises(ConfigError, match=r"say which model of http://localhost:1/v1 plays: \{player: http"):
        check_player(PlayerSettings(player="http://localhost:1/v1"), env)
    with pytest.raises(ConfigError, match="'http://' is no endpoint: give its base URL"):
        check_player(PlayerSettings(player="http://", model="big"), env)
    with frozen(PlayerSettings(player="http://localhost:1/v1", model="big"), env, timeout=5.0) as player:
        assert (player.learns, player.sampler.model.url) == (False, "http://localhost:1/v1/chat/completions")


def test_a_run_is_not_resumed_into_what_its_checkpoints_cannot_give(tmp_path, capsys):
    run = run_of(config(tmp_path))
    for words, said in (
        (["roles.o=past"], "kept no earlier versions for roles.o=past: train anew"),
        (["trainer.steps=2"], "run run has made 3 steps: set trainer.steps to 3 or more"),
    ):
        with Run.open("run", tmp_path, write=True) as again, pytest.raises(LatihError, match=said):
            train(config(tmp_path, *words), again, resume=True)
        for more in ([], ["--dry-run"]):
            assert main(["train", "--resume", "run", f"run.folder={tmp_path}", *words, *more]) == 2
            assert said in capsys.readouterr().err
    assert Run.open("run", tmp_path).config == run.config  # nothing of it was saved
    assert run.checkpoints().steps()[-1] == 3
