import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from latih.core import ConfigError
from latih.envs import EnvSettings, MessageEnv, describe, make, register
from latih.envs.arithmetic_tool import ArithmeticTool
from latih.envs.registry import canonical
from latih.envs.tic_tac_toe import TicTacToe

MINE = '''
from helper_beside import WORD
from latih.envs import MessageEnv, register, text_of


@register("say_word")
class SayWord(MessageEnv):
    """Say the word."""

    def __init__(self, loud: bool = False) -> None:
        self.word = WORD.upper() if loud else WORD

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return f"Say {self.word}", {}

    def step(self, action):
        return "", float(text_of(action) == self.word), True, False, {}
'''


class Wrapped(gymnasium.Wrapper):
    """What an env of one's own may look like elsewhere."""

    tools = ()

    def __init__(self) -> None:
        super().__init__(TicTacToe())


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "helper_beside.py").write_text('WORD = "yes"\n')
    path = tmp_path / "my_env.py"
    path.write_text(MINE)
    return path


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from latih.envs import registry

    describe()  # imports the built-in ones: a later test finds what it imported first here
    for name in ("_classes", "_ids"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "helper_beside", raising=False)
    before = dict(gymnasium.registry)
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


def test_built_in_envs_by_name_id_and_module() -> None:
    for spec in ("tic_tac_toe", "latih/TicTacToe-v0", "latih.envs.tic_tac_toe:TicTacToe"):
        env = make(spec, side="o")
        assert type(env) is TicTacToe
        assert env.side == "o"
        assert env.spec is not None
        assert (env.spec.id, env.spec.kwargs) == ("latih/TicTacToe-v0", {"side": "o"})
        assert env.spec.make().unwrapped.side == "o"
    assert type(EnvSettings(id="arithmetic_tool", args={"terms": 2}).make()) is ArithmeticTool
    assert type(gymnasium.make("latih/ArithmeticTool-v0", terms=2).unwrapped) is ArithmeticTool


def test_own_env_from_a_file(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(f"{mine}:SayWord", loud=True)
    assert isinstance(env, MessageEnv)
    assert env.reset(seed=0)[0] == "Say YES"
    monkeypatch.chdir(mine.parent)
    assert type(make("my_env.py:SayWord")) is type(env)
    assert type(make("say_word")) is type(env)
    assert type(gymnasium.make("latih/SayWord-v0").unwrapped) is type(env)
    assert "say_word" in [each.name for each in describe()]


def test_all_names_of_an_env_are_one(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in ("arithmetic_tool", "latih/ArithmeticTool-v0", "latih.envs.arithmetic_tool:ArithmeticTool"):
        assert canonical(spec) == "arithmetic_tool"
    monkeypatch.chdir(mine.parent)
    for spec in ("my_env.py:SayWord", f"{mine}:SayWord", "latih/SayWord-v0", "say_word"):
        assert canonical(spec) == "say_word"
    (mine.parent / "bare.py").write_text(MINE.replace('@register("say_word")', ""))
    assert canonical("bare.py:SayWord") == canonical("./bare.py:SayWord") != canonical("my_env.py:SayWord")
    assert canonical("no_such_env") == "no_such_env"


@pytest.mark.parametrize(
    ("spec", "args", "message"),
    [
        ("tic_tack_toe", {}, "unknown environment 'tic_tack_toe': did you mean 'tic_tac_toe' or"),
        ("latih/TicTacTo-v0", {}, "unknown environment 'latih/TicTacTo-v0': did you mean 'latih/TicTacToe-v0'"),
        (
            "tic_tac_toe",
            {"oponent": "x"},
            "tic_tac_toe has no dial 'oponent': did you mean 'opponent' or 'opening'? (it takes side,",
        ),
        ("tic_tac_toe", {"side": "z"}, "tic_tac_toe: side='z': Input should be 'random', 'x' or 'o'"),
        ("tic_tac_toe", {"opening": 9}, "tic_tac_toe: opening=9: Input should be less than or equal to 6"),
        ("arithmetic_tool", {"operators": "^"}, "arithmetic_tool: operators='^': String should match"),
        ("absent.py:Env", {}, "no such file"),
        ("no.such.module:Env", {}, "no.such.module cannot be imported: ModuleNotFoundError"),
        ("latih.envs.tic_tac_toe:TicTacTo", {}, "names no class: did you mean 'TicTacToe'?"),
        ("latih.envs.tic_tac_toe:render", {}, "names no class"),
        ("fractions:Fraction", {}, "fractions:Fraction is no environment over messages: subclass"),
        ("tests.envs.test_registry:Wrapped", {}, "test_registry:Wrapped is a gymnasium.Wrapper: write it as a"),
    ],
)
def test_bad_specs_get_one_line(spec: str, args: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(spec, **args)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("import no_such_module", "Env", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def broken(:", "Env", "cannot be imported: SyntaxError"),
        ("raise SystemExit(3)", "Env", "cannot be imported: SystemExit: 3"),
        ("class Other: step = 1", "Othr", "names no class: did you mean 'Other'?"),
        (
            "class Env:\n  def __init__(self): raise ValueError('a\\nb')",
            "Env",
            "cannot be made: ValueError: a (it takes none)",
        ),
    ],
)
def test_bad_files_get_one_line(tmp_path: Path, text: str, name: str, message: str) -> None:
    path = tmp_path / "bad_env.py"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        make(f"{path}:{name}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    path.write_text("class Env:\n  tools = ()\n  def reset(self): ...\n  def step(self): ...\n  def close(self): ...\n")
    if "cannot be imported" in message:
        assert type(make(f"{path}:Env")).__name__ == "Env", "a file that was mended is read again"


def test_file_without_a_class_says_which_there_are(mine: Path) -> None:
    with pytest.raises(ConfigError, match=r"say which class of the file: .*my_env.py:SayWord"):
        make(str(mine))


def test_register_refuses_a_taken_name_but_not_the_same_class_again() -> None:
    def define(name: str) -> type[MessageEnv]:
        return register("some_env")(type(name, (MessageEnv,), {"__module__": "notebook"}))

    define("SomeEnv")
    again = define("SomeEnv")
    assert type(make("some_env")) is again
    with pytest.raises(ValueError, match=r"'some_env' .* is registered already, by notebook:SomeEnv"):
        define("Other")
    with pytest.raises(ValueError, match=r"registered already, by latih\.envs\.tic_tac_toe:TicTacToe"):
        register("mine", id="latih/TicTacToe-v0")(again)


def test_describe_lists_what_a_user_chooses_from() -> None:
    listed = {each.name: each for each in describe()}
    assert list(listed) == sorted(listed)
    tic_tac_toe = listed["tic_tac_toe"]
    assert tic_tac_toe.summary == "Tic-tac-toe, either side, against a random or a perfect opponent."
    assert "opponent='random'" in tic_tac_toe.dials


def test_env_that_cannot_be_imported_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import latih.envs

    (tmp_path / "needs_extra.py").write_text("import no_such_extra\n")
    monkeypatch.setattr(latih.envs, "__path__", [*latih.envs.__path__, str(tmp_path)])
    listed = {each.name: each.summary for each in describe()}
    assert "unavailable: latih.envs.needs_extra cannot be imported" in listed["needs_extra"]
    assert "tic_tac_toe" in listed


def test_gymnasium_alone_can_be_told_where_an_env_is() -> None:
    code = "import gymnasium; print(gymnasium.make('latih.envs:latih/TicTacToe-v0', side='x').unwrapped.side)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, env={"PYTHONPATH": "src"}, capture_output=True, text=True
    )
    assert done.stdout == "x\n"


def test_import_is_light_and_lazy() -> None:
    code = """
        import sys
        import latih.envs, latih.data
        heavy = {"torch", "transformers", "pyarrow", "jsonschema", "latih.envs.tic_tac_toe"} & set(sys.modules)
        assert not heavy, heavy
        import gymnasium
        gymnasium.make("latih/TicTacToe-v0")
        assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, env={"PYTHONPATH": "src"})
