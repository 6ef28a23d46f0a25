from pathlib import Path

import pytest
import yaml

from latih.core import ConfigError
from latih.train.config import ABSENT, ELSEWHERE, Config, dotted_keys, recipes, resolve, validate
from latih.train.overrides import override

PARITY = f"{Path(__file__).with_name('parity_env.py')}:Parity"


def test_recipe_and_overrides():
    config = resolve("tic_tac_toe", ["trainer.optimizer.lr=1e-4", "env.args.side=x", "seed=7"])
    assert config.env.id == "tic_tac_toe"
    assert config.env.args == {"lines": True, "list_empty": False, "side": "x"}
    assert config.trainer.optimizer.lr == 1e-4
    assert config.trainer.warm_start.steps == 12
    assert config.seed == 7


def test_every_recipe_resolves():
    assert "tic_tac_toe" in recipes()
    for name in recipes():
        assert resolve(name).trainer.steps > 0


def test_an_environment_takes_the_defaults():
    assert resolve(PARITY) == Config(env={"id": PARITY})


def test_a_yaml_file_is_a_recipe_of_ones_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("env: {id: tic_tac_toe}\ntrainer:\n  optimizer: {lr: 2E-5}\n")
    assert resolve(str(path)).trainer.optimizer.lr == 2e-5


def test_null_and_sections_can_be_overridden():
    assert resolve("tic_tac_toe", ["trainer.policy.lora=null"]).trainer.policy.lora is None
    assert resolve("tic_tac_toe", ["trainer.warm_start=null"]).trainer.warm_start is None
    both = resolve("tic_tac_toe", ["trainer.warm_start=null", "trainer.warm_start.steps=3"])
    assert both.trainer.warm_start.steps == 3
    merged = resolve("tic_tac_toe", ["trainer.optimizer={warmup_steps: 2}"]).trainer.optimizer
    assert (merged.lr, merged.warmup_steps) == (5e-4, 2)


def test_another_id_begins_without_the_args_of_the_one_before():
    assert resolve("tic_tac_toe").harness.args == {"window": 0}
    assert resolve("tic_tac_toe", ["harness.id=mine"]).harness.args == {}
    for own in (["harness.args.a=1", "harness.id=mine"], ["harness={id: mine, args: {a: 1}}"]):
        assert resolve("tic_tac_toe", own).harness.args == {"a": 1}
    assert resolve("tic_tac_toe", ["harness.id=chat_loop"]).harness.args == {"window": 0}


def test_an_env_is_the_same_by_all_its_names():
    assert resolve("latih/TicTacToe-v0") == resolve("tic_tac_toe")
    same = resolve("tic_tac_toe", ["env.args.side=x", "env.id=latih/TicTacToe-v0"])
    args = {"lines": True, "list_empty": False, "side": "x"}
    assert same.env.args == args
    tree = override(resolve("tic_tac_toe", ["env.args.side=x"]).as_dict(), ["env.id=latih/TicTacToe-v0"])
    assert tree["env"] == {"id": "latih/TicTacToe-v0", "args": args, "training": {}}


def test_override_leaves_its_argument_alone():
    tree = {"a": {"b": 1}}
    assert override(tree, ["a.b=2", "a.c=x"]) == {"a": {"b": 2, "c": "x"}}
    assert tree == {"a": {"b": 1}}


def test_the_saved_config_is_read_back_equal():
    config = resolve("tic_tac_toe", ["trainer.policy.lora=null", "trainer.optimizer.lr=1e-5"])
    assert validate(yaml.safe_load(yaml.safe_dump(config.as_dict()))) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.optimiser.lr=1", "unknown setting trainer.optimiser: did you mean 'trainer.optimizer'?"),
        ("inference.max_waiting=1", "unknown setting inference.max_waiting: it is a setting no more: take its"),
        ("trainer.beta=0.1", "unknown setting trainer.beta: there is no reference model"),
        ("num_generations=8", "unknown setting num_generations: it is 'rollout.group_size' here"),
        ("trainer.learning_rate=1", "unknown setting trainer.learning_rate: it is 'trainer.optimizer.lr' here"),
        ("trainer.lr=1", "unknown setting trainer.lr: did you mean 'trainer.optimizer.lr'"),
        ("trainer.optimizer.lrr=1", "unknown setting trainer.optimizer.lrr: did you mean 'trainer.optimizer.lr'?"),
        ("groups=4", "unknown setting groups: did you mean 'rollout.groups'?"),
        ("trainer.warm_start.game=4", "trainer.warm_start.game: did you mean 'trainer.warm_start.games'"),
        ("trainer.policy.lora.rnak=4", "trainer.policy.lora.rnak: did you mean 'trainer.policy.lora.rank'"),
        ("trainer.optimizer.lr=fast", "trainer.optimizer.lr='fast': expected a valid number"),
        ("trainer.optimizer.lr=-1", "trainer.optimizer.lr=-1: expected greater than 0"),
        ("trainer.minibatches=1.5", "trainer.minibatches=1.5: expected a valid integer"),
        ("trainer.optimizer=3", "trainer.optimizer=3: expected a mapping of settings"),
        ("trainer.optimizer.schedule=cos", "optimizer.schedule='cos': expected 'constant', 'linear' or 'cosine'"),
        ("trainer.algorithm.advantage=grop", "unknown advantage 'grop': did you mean 'grpo'"),
        ("trainer.algorithm.surrogate=clp", "unknown surrogate 'clp': did you mean 'clip'"),
        ("env.id=tictactoe", "unknown environment 'tictactoe': did you mean 'tic_tac_toe' or"),
        ("seed", "'seed' is no override: write key=value"),
        ("a..b=1", "'a..b=1' is no override"),
        ("seed=[1", "the value of seed cannot be read as YAML: '[1'"),
        ("rollout.group_size=1", "rollout.group_size=1: one trajectory has no baseline"),
        ("rollout.sampling.temperature=0", "rollout.sampling.temperature=0 is greedy"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(override, message):
    with pytest.raises(ConfigError) as caught:
        resolve("tic_tac_toe", [override])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("target", "long", "message"),
    [
        ("mine/env.py", False, "mine/env.py is a file: say which class of it, as in mine/env.py:MyEnv"),
        ("tic_tac_to", False, "unknown recipe or environment 'tic_tac_to': did you mean 'tic_tac_toe'?"),
        ("nowhere.py:Env", False, "no such file"),
        ("nowhere.yaml", False, "cannot read nowhere.yaml: No such file"),
        (PARITY, True, "--long is for recipes"),
        ("arithmetic", True, "recipe 'arithmetic' has no long form: leave --long out"),
    ],
)
def test_wrong_targets(target, long, message):
    with pytest.raises(ConfigError, match=message) as caught:
        resolve(target, long=long)
    assert "\n" not in str(caught.value)


def test_the_name_of_a_file_alone_says_how_its_class_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    with pytest.raises(ConfigError, match=r"^mine\.py is a file: say which class of it, as in mine\.py:MyEnv$"):
        resolve("mine")


def test_broken_yaml_files(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("env: [1")
    with pytest.raises(ConfigError, match="is not YAML"):
        resolve(str(path))
    path.write_text("just words")
    with pytest.raises(ConfigError, match="holds no settings"):
        resolve(str(path))
    path.write_text("seed: 1")
    with pytest.raises(ConfigError, match="setting env is missing"):
        resolve(str(path))


def test_several_mistakes_are_counted():
    with pytest.raises(ConfigError, match=r"lr='x': expected a valid number \(and 1 more\)"):
        resolve("tic_tac_toe", ["trainer.optimizer.lr=x", "trainer.minibatches=y"])


PLUGIN = """
from latih.train.advantages import advantages, episodic


@advantages.register("my_own")
@episodic
def my_own(returns):
    return returns
"""


def test_a_plugin_registers_what_the_settings_name(tmp_path):
    plugin = tmp_path / "my_advantage.py"
    plugin.write_text(PLUGIN)
    own = ["trainer.algorithm.advantage=my_own", f"plugins=[{plugin}]"]
    config = resolve("tic_tac_toe", own)
    assert config.trainer.algorithm.advantage == "my_own"
    assert resolve("tic_tac_toe", own) == config  # its file is run once
    with pytest.raises(ConfigError, match="plugins='x': expected a valid list"):
        resolve("tic_tac_toe", ["plugins=x"])
    plugin.with_name("broken.py").write_text("import no_such_module")
    with pytest.raises(ConfigError, match=r"broken.py cannot be imported: ModuleNotFoundError: .*no_such_module"):
        resolve("tic_tac_toe", [f"plugins=[{plugin.with_name('broken.py')}]"])


def test_dotted_keys_reach_optional_sections():
    keys = set(dotted_keys())
    assert {"seed", "trainer.optimizer.lr", "trainer.warm_start.games", "trainer.policy.lora.rank"} <= keys


def test_what_others_call_a_setting_is_one_of_ours():
    known = set(dotted_keys())
    assert set(ELSEWHERE.values()) <= known
    assert not {*ELSEWHERE, *ABSENT} & {key.rpartition(".")[2] for key in known}
