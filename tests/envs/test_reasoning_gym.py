import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import ConfigError, GraderError
from latih.envs import describe, find, make
from latih.envs.reasoning_gym import EXCLUDED, ReasoningGym, create, excluded, names
from tests.envs.playing import play
from tests.soak import examples, forms

pytest.importorskip("reasoning_gym", reason="the extra latih[reasoning-gym] is not installed")

QUICK = ["leg_counting", "gcd", "graph_color", "propositional_logic", "syllogism", "chain_sum", "maze"]
HASHED = {"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"}


def env(name: str, **dials: object) -> ReasoningGym:
    made = make(f"reasoning_gym:{name}", **dials)
    assert isinstance(made, ReasoningGym)
    return made


@pytest.mark.parametrize("name", QUICK)
def test_the_expert_scores_the_maximum_and_others_nothing(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env(name))
    tried = env(name)
    assert all(play(tried, "expert", seed).reward == 1.0 for seed in range(20))
    aimless = [play(tried, "random", seed) for seed in range(20)]
    assert all(each.metrics["answered"] for each in aimless)
    assert sum(each.reward for each in aimless) < 20
    for seed in range(20):
        question = tried.reset(seed=seed)[0][1].text
        for reply in ("", question, f"<answer>{question}</answer>", "<answer></answer>", tried.answer):
            tried.reset(seed=seed)
            assert tried.step(reply)[1] == 0.0


def test_another_version_than_the_audited_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    audited = json.loads(EXCLUDED.read_text(encoding="utf-8"))["version"]
    assert pyproject.count(f'"reasoning-gym=={audited}"') == pyproject.count('"reasoning-gym=') == 2
    monkeypatch.setattr("latih.envs.reasoning_gym.version", lambda _: "0.2.0")
    with pytest.raises(ConfigError) as told:
        make("reasoning_gym:gcd")
    assert str(told.value) == (
        "reasoning-gym 0.2.0 is installed, but which of its tasks are safe is known of 0.1.25 only: "
        "pip install -c constraints.txt '.[reasoning-gym]' in latih's clone"
    )


def test_a_family_is_found_by_its_members() -> None:
    assert find("reasoning_gym:gcd") is find("reasoning_gym:gcd") is ReasoningGym.member("gcd")
    assert find("reasoning_gym:gcd").__doc__ == "gcd, a task of reasoning-gym."
    assert "reasoning_gym:NAME" in [each.name for each in describe()]
    assert len(names()) == 105
    assert len(set(names()) - set(excluded())) == 73


@pytest.mark.parametrize(
    ("spec", "dials", "message"),
    [
        ("reasoning_gym:leg_countin", {}, "unknown task reasoning_gym:leg_countin: did you mean 'leg_counting'"),
        ("reasoning_gym", {}, "say which, such as reasoning_gym:leg_counting"),
        ("tic_tac_toe:x", {}, "tic_tac_toe is one environment and no family of them: write tic_tac_toe"),
        ("reasoning_gym:gcd", {"config": {"min_numbres": 2}}, "unexpected keyword argument 'min_numbres'"),
        ("reasoning_gym:gcd", {"config": {"min_numbers": 1}}, "reasoning_gym:gcd cannot be made"),
        ("reasoning_gym:countdown", {}, "is left out (unsafe): its scorer hands the reply to eval; take another"),
        ("reasoning_gym:countdown", {"exploitable": True}, "is left out (unsafe)"),
        (
            "reasoning_gym:word_ladder",
            {"exploitable": True},
            "(unstable): its puzzles depend on PYTHONHASHSEED",
        ),
        ("reasoning_gym:boxnet", {}, "is left out (no oracle)"),
        ("reasoning_gym:complex_arithmetic", {}, "set env.args.exploitable=true"),
    ],
)
def test_bad_specs_get_one_line(spec: str, dials: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(spec, **dials)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from latih.envs import reasoning_gym

    reasoning_gym._library.cache_clear()
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    try:
        with pytest.raises(
            ConfigError, match=r"pip install -c constraints\.txt '\.\[reasoning-gym\]' in latih's clone"
        ):
            make("reasoning_gym:gcd")
    finally:
        reasoning_gym._library.cache_clear()


def test_exploitable_tasks_pay_for_nonsense_and_can_be_had_all_the_same() -> None:
    cheated = env("complex_arithmetic", exploitable=True)
    cheated.reset(seed=0)
    assert cheated.step("<answer>nan</answer>")[1] == 1.0
    cheated = env("game_of_life_halting", exploitable=True)
    cheated.reset(seed=1)
    assert cheated.step("<answer>A or B or C</answer>")[1] == 1.0


def test_dials_shape_the_puzzle() -> None:
    for seed in range(5):
        (_, question), _ = env("gcd", config={"min_numbers": 4, "max_numbers": 4}).reset(seed=seed)
        assert question.text.partition(":")[2].count(",") == 3


def test_neighbouring_seeds_share_nothing() -> None:
    # of the library itself, they do: the second puzzle of one seed is the first of the next
    from reasoning_gym import create_dataset

    assert create_dataset("gcd", seed=7, size=2)[1]["question"] == create_dataset("gcd", seed=8, size=2)[0]["question"]
    asked = [env("gcd").reset(seed=seed)[0][1].text for seed in range(200)]
    assert len(set(asked)) == 200


def test_scorers_that_raise_are_errors_and_no_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = env("gcd")
    tried.reset(seed=0)

    def broken(answer: str, entry: dict[str, Any]) -> float:
        raise KeyError("metadata")

    monkeypatch.setattr(tried.dataset, "score_answer", broken)
    with pytest.raises(GraderError, match="the scorer of reasoning_gym:gcd: KeyError"):
        tried.step("<answer>4</answer>")
    tried.reset(seed=0)
    monkeypatch.setattr(tried.dataset, "score_answer", lambda answer, entry: float("nan"))
    with pytest.raises(GraderError, match="pays nan"):
        tried.step("<answer>4</answer>")


def test_puzzles_without_an_answer_are_drawn_again_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = 0

    def sometimes(name: str, seed: int, config: object = None) -> tuple[Any, dict[str, Any]]:
        nonlocal drawn
        drawn += 1
        dataset, entry = create(name, seed)
        if drawn == 1:
            return dataset, entry | {"answer": None}
        if drawn == 2:
            return SimpleNamespace(score_answer=lambda answer, entry: 0.5), entry
        return dataset, entry

    tried = env("gcd")
    monkeypatch.setattr("latih.envs.reasoning_gym.create", sometimes)
    tried.reset(seed=0)
    assert tried.step(tried.scripted("expert", None))[4]["metrics"] == {  # type: ignore[arg-type]
        "correct": 1.0,
        "score": 1.0,
        "answered": 1.0,
        "redrawn": 2.0,
    }
    monkeypatch.setattr(
        "latih.envs.reasoning_gym.create", lambda *_: (create("gcd", 1)[0], {"answer": "", "metadata": {}})
    )
    with pytest.raises(RuntimeError, match="none of 20 puzzles of gcd has an answer"):
        tried.reset(seed=0)


def test_the_list_of_excluded_tasks() -> None:
    kinds = {name: found["kind"] for name, found in excluded().items()}
    assert set(kinds.values()) <= {"unsafe", "unstable", "no oracle", "exploitable", "broken", "fragile"}
    hashed = {name for name, found in excluded().items() if "PYTHONHASHSEED" in found["why"]}
    assert hashed | {"polynomial_multiplication"} == HASHED
    assert kinds["polynomial_multiplication"] == "unsafe"
    assert {"countdown", "puzzle24", "n_queens", "string_insertion"} <= {n for n, k in kinds.items() if k == "unsafe"}
    assert all(found["why"] for found in excluded().values())


CODE = """
import hashlib, sys
from latih.envs import make
text = ""
for name in sys.argv[1:]:
    for seed in range(3):
        env = make(f"reasoning_gym:{name}")
        text += env.reset(seed=seed)[0][1].text + env.answer
print(hashlib.sha256(text.encode()).hexdigest())
"""


@forms("tasks", "some", "all")
def test_puzzles_are_the_same_in_every_process(tasks: str) -> None:
    asked = QUICK if tasks == "some" else sorted(set(names()) - set(excluded()))

    def digest(seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
        done = subprocess.run(
            [sys.executable, "-c", CODE, *asked], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()[-1]

    assert len({digest(seed) for seed in ("0", "1", "2")}) == 1


@settings(max_examples=examples(50), deadline=None)
@given(
    st.sampled_from(["leg_counting", "gcd", "chain_sum", "propositional_logic", "syllogism"]),
    st.integers(0, 2**31 - 1),
    st.text(max_size=20),
)
def test_the_oracle_is_paid_and_any_other_text_is_not(name: str, seed: int, said: str) -> None:
    tried = env(name)
    tried.reset(seed=seed)
    assert tried.step(f"<answer>{tried.answer}</answer>")[1] == 1.0
    tried.reset(seed=seed)
    reward = tried.step(said)[1]  # without the tags it is no answer, whatever it says
    assert reward == 0.0 or "<answer>" in said
    tried.reset(seed=seed)
    wrong = "no" if not tried.answer.isdigit() else str(int(tried.answer) + 1)
    assert tried.step(f"<answer>{wrong} {wrong}</answer>")[1] == 0.0


@pytest.mark.slow
def test_every_other_task_can_be_played_to_its_maximum() -> None:
    for name in sorted(set(names()) - set(excluded())):
        tried = env(name)
        tried.reset(seed=1)
        reward = tried.step(tried.scripted("expert", None))[1]  # type: ignore[arg-type]
        assert reward == 1.0, name
        tried.reset(seed=1)
        assert tried.step("<answer>A or B or C</answer>")[1] == 0.0, name
        assert json.dumps(tried.config) == "{}"
