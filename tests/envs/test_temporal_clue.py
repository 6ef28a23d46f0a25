import hashlib
import json
import random
import threading
import time
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.cli.baseline import measure
from latih.cli.main import main
from latih.core import ConfigError, LatihError, Task
from latih.data import DataSettings, write_tasks
from latih.envs import make
from latih.envs.temporal_clue import TemporalClue, solver
from latih.envs.temporal_clue.clues import KINDS, Witness, clock
from latih.envs.temporal_clue.options import read_options
from latih.envs.temporal_clue.puzzle import _make, puzzle
from latih.envs.temporal_clue.solver import Solver
from latih.envs.temporal_clue.world import Size, draw
from latih.rewards.letters import grade, normal, read_answers
from latih.rollout import read_rows
from latih.train.config import resolve
from tests.envs.detective import Detective
from tests.envs.playing import episodes_in_other_processes, play
from tests.soak import examples

ROOT = Path(__file__).parents[2]
PUBLIC = ROOT.parent / "shared" / "data" / "temporal_clue" / "val.json"
TINY = Size(suspects=2, weapons=2, rooms=2, times=2, bonus=2, direct=0)


def test_a_puzzle_worked_out_by_hand() -> None:
    detective = Detective(
        "Suspects: Ada, Ben\nMotives: Greed, Fear\nWeapons: Knife, Rope\nRooms, west to east:\nHall | Attic\nClues:\n"
        "- Ada was in the Hall.\n"  # With the victim in the Attic, and the murderer there: it was Ben,
        "- The victim was in the room just east of Ada.\n"
        "- The Rope was never in the same room as Ben.\n"  # and with the Knife,
        "- The motive of Ada was not Greed.\n"  # and Greed is his.
        "Questions:\nA. Who was the murderer?\nB. What was the murder weapon?\nC. Where was the murder?\n"
        "D. What was the murderer's motive?\nE. Where was the Rope?"
    )
    assert detective.solve() == {("Ben", "Knife", "Attic", "Greed", "Hall")}
    # Two suspects and two weapons in two rooms, no time: the murderer and its room, what is there, and the motives.
    # 2 murderers x 2 rooms x (2 with either weapon, and both of them named in the world where both are there: 4) x 2.
    assert sum(1 for _ in detective.stories()) == 2 * 2 * 4 * 2


@pytest.mark.parametrize("seed", range(25))
def test_the_smallest_puzzles_have_one_answer_by_brute_force(seed: int) -> None:
    made = puzzle(TINY, seed)
    assert Detective(made.prompt).solve() == {tuple(made.answers.values())}


@pytest.mark.parametrize(
    "size", [Size(2, 3, 3, 1, 2, 0), Size(3, 2, 3, 1, 1, 0), Size(2, 2, 4, 1, 3, 2), Size(2, 2, 2, 2, 0, 3)]
)
def test_other_shapes_have_one_answer_by_brute_force(size: Size) -> None:
    for seed in range(5):
        made = puzzle(size, seed)
        assert Detective(made.prompt).solve() == {tuple(made.answers.values())}


@pytest.mark.parametrize("seed", range(5))
def test_no_clue_can_be_left_out(seed: int) -> None:
    made = puzzle(TINY, seed)
    detective = Detective(made.prompt)
    worlds = [
        ([detective.holds(clue, story) for clue in detective.clues], detective.answer(story))
        for story in detective.stories()
    ]
    for left_out in range(len(detective.clues)):
        answers = {answer for held, answer in worlds if all(h for i, h in enumerate(held) if i != left_out)}
        assert len(answers) > 1


sizes = st.builds(
    Size,
    st.integers(2, 4),
    st.integers(2, 4),
    st.integers(2, 6),
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(0, 2),
)


@pytest.mark.parametrize(
    ("size", "seed"),
    [
        (Size(2, 4, 2, 2, 0, 1), 43),
        (Size(4, 2, 2, 3, 3, 0), 178),
        (Size(4, 4, 2, 1, 0, 2), 1565003297251341187),
        (Size(4, 4, 5, 1, 4, 0), 89),
    ],
)
def test_a_world_that_no_clue_settles_is_replaced(size: Size, seed: int) -> None:
    made = puzzle(size, seed)  # it took for ever
    assert Solver(size, made.clues, [each.atom for each in made.questions]).unique(range(len(made.clues)))


@settings(max_examples=examples(8), deadline=None)
@given(sizes, st.integers(0, 2**63 - 1))
def test_clues_are_true_needed_and_enough(size: Size, seed: int) -> None:
    made = puzzle(size, seed)
    detective = Detective(made.prompt)
    story = detective.story(made.world)
    assert detective.lawful(story)
    assert all(detective.holds(clue, story) for clue in detective.clues)
    assert detective.answer(story) == tuple(made.answers.values())
    assert len(made.questions) == (5 if size.times > 1 else 4) + size.bonus
    assert all(answer in made.options[letter] for letter, answer in made.answers.items())
    # A solver that knows nothing from the making.
    count, atoms = len(made.clues), [each.atom for each in made.questions]
    fresh = Solver(size, made.clues, atoms)
    assert not any(fresh.unique(set(range(count)) - {each}) for each in range(count))
    assert fresh.unique(range(count))
    assert set(grade(made.prompt, made.answers).values()) <= {None, False}
    assert set(grade(made.rules, made.answers).values()) == {None}


@settings(max_examples=examples(10), deadline=None)
@given(sizes, st.integers(0, 2**63 - 1))
def test_what_a_sentence_says_and_what_its_clauses_mean_agree(size: Size, seed: int) -> None:
    # Statements of one world, judged in another.
    one, other = puzzle(size, seed), draw(size, random.Random(seed + 1))
    detective = Detective(one.prompt)
    mine, foreign = detective.story(one.world), detective.story(other)
    witness = Witness(one.cast, one.world, random.Random(seed))
    for clue in [clue for _ in range(5) for kind in KINDS if (clue := kind(witness))]:
        assert detective.holds(clue.text.removesuffix("."), mine)
        assert clue.holds(one.world)
        assert clue.holds(other) == detective.holds(clue.text.removesuffix("."), foreign), clue.text


def test_the_example_of_the_docs_is_real() -> None:
    page = (ROOT / "docs" / "envs" / "temporal_clue.md").read_text(encoding="utf-8")
    made = puzzle(Size(2, 2, 2, 2, 0, 0), 0)
    assert all(line in page for line in made.prompt.splitlines())
    assert made.rules in " ".join(page.split())


def test_answers_are_not_told_unless_asked_for() -> None:
    for seed in range(20):
        made = puzzle(TINY, seed)
        told = {made.cast.state(each.atom) for each in made.questions}
        assert told.isdisjoint(clue.text for clue in made.clues)
    kept = 0
    for seed in range(20):
        made = puzzle(Size(2, 2, 2, 2, 0, 2), seed)
        told = {made.cast.state(each.atom) for each in made.questions}
        kept += len(told & {clue.text for clue in made.clues})
    assert kept > 20  # the rest follow from other clues
    every = puzzle(Size(3, 2, 4, 2, 2, 7), 0)
    assert len(every.clues) <= len(every.questions)


@pytest.mark.parametrize(
    "parameters",
    [
        {"num_workers": 4},
        {"random_seed": 77},
        {"cp_model_presolve": True, "linearization_level": 2},
    ],
)
def test_puzzles_do_not_depend_on_how_the_solver_searches(
    parameters: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    size = Size(3, 2, 4, 3, 2, 0)
    usual = [_make.__wrapped__(size, seed) for seed in range(3)]
    monkeypatch.setattr(solver, "PARAMETERS", solver.PARAMETERS | parameters)
    assert [_make.__wrapped__(size, seed) for seed in range(3)] == usual


def test_puzzles_are_the_same_in_every_process_and_version() -> None:
    assert len(episodes_in_other_processes("temporal_clue", 3, suspects=3)) == 1
    # A change of this digest changes what a seed means: say so in CHANGELOG.md.
    prompts = [puzzle(TINY, seed).prompt for seed in range(10)]
    assert hashlib.sha256(json.dumps(prompts).encode()).hexdigest()[:16] == "4bc2b190021719af"


def test_members_of_a_group_share_one_puzzle() -> None:
    envs = [TemporalClue() for _ in range(16)]
    _make.cache_clear()
    threads = [threading.Thread(target=env.reset, kwargs={"seed": 5}) for env in envs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _make.cache_info().misses == 1
    assert len({json.dumps(env.answers) for env in envs}) == 1


def test_speed_of_small_puzzles() -> None:
    puzzle(TINY, 0)  # imports the solver
    started = time.process_time()
    for seed in range(1000, 1010):
        puzzle(TINY, seed)
    # 0.015 s each on a busy machine; bench/puzzles.py measures all sizes.
    assert time.process_time() - started < 2.0


def test_an_episode() -> None:
    env = TemporalClue(bonus=0)
    (system, prompt), info = env.reset(seed=0)
    assert (system.role, prompt.role, info) == ("system", "user", {})
    assert list(env.answers) == ["A", "B", "C", "D", "E"]
    observation, reward, terminated, truncated, info = env.step(f"A. {env.answers['A']}\nB. Banana")
    assert (observation, reward, terminated, truncated) == ("1 of 5 right.", 0.2, True, False)
    assert info["metrics"] == {"correct": 0.0, "accuracy": 0.2, "answered": 0.4}
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("A. Ada")


def test_check_env() -> None:
    check_env(make("temporal_clue"))
    assert "latih/TemporalClue-v0" in str(make("temporal_clue").spec)


def test_baselines_score_what_they_should() -> None:
    env = TemporalClue()
    assert all(
        play(env, "expert", seed).metrics == {"correct": 1.0, "accuracy": 1.0, "answered": 1.0} for seed in range(50)
    )
    aimless = [play(env, "random", seed) for seed in range(200)]
    # Each of the six answers is one of two.
    assert abs(sum(each.reward for each in aimless) / 200 - 0.5) < 4 * 0.5 / (6 * 200) ** 0.5
    assert all(each.metrics["answered"] == 1.0 for each in aimless)


@pytest.mark.parametrize("policy", ["empty", "echo", "rules", "all", "hedge", "letters"])
def test_do_nothing_policies_score_nothing(policy: str) -> None:
    env = TemporalClue()
    for seed in range(50):
        (system, prompt), _ = env.reset(seed=seed)
        reply = {
            "empty": "",
            "echo": prompt.text,
            "rules": system.text,
            "all": "\n".join(f"{letter}. {name}" for letter, names in env.options.items() for name in names),
            "hedge": "\n".join(f"{letter}. {' or '.join(names)}" for letter, names in env.options.items()),
            "letters": "\n".join(env.answers),
        }[policy]
        assert env.step(reply)[1] == 0.0


TRUTH = {"A": "Colonel Mustard", "B": "11:45 PM", "C": "Drawing Room", "D": "Sgt. Gray"}


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("A. Colonel Mustard\nB. 11:45 PM\nC. Drawing Room\nD. Sgt. Gray", [True, True, True, True]),
        ("**A.** colonel  mustard.\n- **B. 11:45pm**\n> C) the drawing room\n`D: Sgt Gray`", [True, True, True, True]),
        ('A. *Colonel Mustard*\nB. 11:45 p.m.\nC. "Drawing Room"\nD. SGT. GRAY!', [True, True, True, True]),
        ("A. Colonel Mustard B. 11:45 PM", [False, None, None, None]),
        ("A. Colonel Mustard\nA. Sgt. Gray", [False, None, None, None]),
        ("A. Sgt. Gray\nA. Colonel Mustard", [False, None, None, None]),
        ("A. Colonel Mustard\nSo, once more:\nA. Colonel Mustard", [True, None, None, None]),
        ("A. Colonel Mustard or Sgt. Gray", [False, None, None, None]),
        ("A. Colonel Mustard, Sgt. Gray", [False, None, None, None]),
        ("A. Colonel Mustard (or Sgt. Gray)", [False, None, None, None]),
        ("A. Who murdered Mr. Boddy?\nA. Colonel Mustard", [True, None, None, None]),
        ("A. Colonel Mustard?", [False, None, None, None]),
        ("<think>\nA. Sgt. Gray\n</think>\nA. Colonel Mustard", [True, None, None, None]),
        ("A. Colonel Mustard\n</think>", [None, None, None, None]),
        ("a. Colonel Mustard", [None, None, None, None]),
        ("Colonel Mustard did it at 11:45 PM", [None, None, None, None]),
        ("The answer is A. Colonel Mustard", [None, None, None, None]),
        ("A. Colonel", [False, None, None, None]),
        ("A. Colonel Mustards", [False, None, None, None]),
        ("A.\nB.  ", [None, None, None, None]),
        ("B. 11:45 AM", [None, False, None, None]),
        ("B. 11:45", [None, False, None, None]),
        ("B. 1:45 PM", [None, False, None, None]),
        ("B. 10:45 PM - 11:45 PM", [None, False, None, None]),
        ("B. 011:45 PM", [None, False, None, None]),
        ("Z. Colonel Mustard", [None, None, None, None]),
        ("", [None, None, None, None]),
    ],
)
def test_grading(text: str, marks: list[bool | None]) -> None:
    assert list(grade(text, TRUTH).values()) == marks


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("11:45 PM", "23:45"),
        ("11:45pm", "23:45"),
        ("12:05 AM", "00:05"),
        ("12:00 p.m.", "12:00"),
        ("08:00 PM", "20:00"),
        ("8 PM", "20:00"),
        ("13:00 PM", "13:00 pm"),
        ("0:30 AM", "0:30 am"),
        ("11:60 PM", "11:60 pm"),
        ("\u0661:00 PM", "\u0661:00 pm"),
        ("The Hall.", "hall"),
        ("Theodore", "theodore"),
    ],
)
def test_normal_form(written: str, plain: str) -> None:
    assert normal(written) == plain


@given(st.integers(0, 24 * 60 - 1), st.integers(0, 24 * 60 - 1))
def test_every_time_is_graded_right(one: int, other: int) -> None:
    assert grade(f"A. {clock(one)}", {"A": clock(other)})["A"] is (one == other)
    assert normal(clock(one)) == f"{one // 60:02d}:{one % 60:02d}"


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    assert all(len(letter) == 1 and found for letter, found in read_answers(text).items())


def test_a_long_reply_is_read_quickly() -> None:
    started = time.process_time()
    for text in (
        "A. " + "x " * 200_000,
        "*" * 400_000,
        "A." + " " * 400_000 + "?",
        "A. x\n" * 100_000,
        "<think>" * 60_000,
    ):
        read_answers(text)
    assert time.process_time() - started < 2.0


def test_tasks_bring_prompt_and_answers() -> None:
    env = TemporalClue()
    for column in ("answer", "solution"):
        messages, _ = env.reset(
            options={"task": Task(prompt="Who, and when?", **{column: {"A": "Ada", "B": "9:00 PM"}})}
        )
        assert [each.text for each in messages] == ["Who, and when?"]
        assert env.step("A. Ada\nB. 09:00 pm")[1] == 1.0
        # names that it does not list: its capitalised words, and what answers the other question
        said = {tuple(env.scripted("random", random.Random(i)).splitlines()) for i in range(50)}
        assert said == {(f"A. {a}", f"B. {b}") for a in ("Who", "9:00 PM") for b in ("Who", "Ada")}
        env.reset(options={"task": Task(prompt="who?", **{column: {"A": "Ada"}})})
        assert env.scripted("random", random.Random(0)) == "A. who?"
    for answer in (None, "Ada", {}, {"AB": "Ada"}, {"A": 5}):
        with pytest.raises(ValueError, match="task 'x' has no answers by letter"):
            env.reset(options={"task": Task(id="x", prompt="Who?", answer=answer)})
    for name in ("", " ", "Ada\nBo", "Why not?"):
        with pytest.raises(ValueError, match=r"task 'x': no line can answer B\."):
            env.reset(options={"task": Task(id="x", prompt="Who?", answer={"A": "Ada", "B": name})})
    for prompt in ("", []):
        with pytest.raises(ValueError, match="task 'x' asks nothing"):
            env.check_task(Task(id="x", prompt=prompt, answer={"A": "Ada"}))


def test_a_data_set_of_puzzles(tmp_path: Path) -> None:
    env, path = TemporalClue(), tmp_path / "own.jsonl"
    write_tasks(path, [Task(prompt=f"Who {n}?", solution={"A": f"Nr. {n}"}) for n in range(5)])
    rows = read_rows(DataSettings(), str(path), env)
    games = [play(env, "expert", 0, row) for row in rows]
    assert [game.messages[0].text for game in games] == [f"Who {n}?" for n in range(5)]
    assert {game.reward for game in games} == {1.0}
    (tmp_path / "bad.json").write_text('[{"prompt": "Who?"}]')
    with pytest.raises(LatihError, match=r"bad\.json, row 0: task '0' has no answers by letter"):
        read_rows(DataSettings(), str(tmp_path / "bad.json"), env)


def test_without_the_extra_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(solver, "find_spec", lambda name: None)
    monkeypatch.setattr("latih.cli.baseline.builtin_names", lambda: ["temporal_clue"])
    puzzle_of_no_other_test = ["evaluation.seed=77123"]
    with pytest.raises(
        ConfigError,
        match=r"pip install -c constraints\.txt '\.\[puzzles\]' in .*, or name files .* in data.train and data.eval",
    ):
        measure("temporal_clue", puzzle_of_no_other_test)
    assert main(["baseline", "--all", *puzzle_of_no_other_test]) == 2, (
        "left out with a warning, and nothing else is there"
    )
    write_tasks(tmp_path / "own.jsonl", [Task(prompt="Who?", solution={"A": "Ada"})])
    _, results = measure("temporal_clue", [f"data.eval={tmp_path / 'own.jsonl'}"], policies=["expert"])
    assert results["expert"] is not None
    assert results["expert"].reward.value == 1.0


@pytest.mark.parametrize(("dial", "value"), [("suspects", 1), ("suspects", 11), ("times", 9), ("bonus", -1)])
def test_dials_have_bounds(dial: str, value: int) -> None:
    with pytest.raises(ConfigError, match=dial):
        make("temporal_clue", **{dial: value})


@pytest.mark.skipif(not PUBLIC.is_file(), reason="the public puzzles (shared/data/temporal_clue/val.json) are absent")
def test_the_public_puzzles_are_graded_right() -> None:
    rows = json.loads(PUBLIC.read_text(encoding="utf-8"))
    assert len(rows) == 64
    times = 0
    for row in rows:
        truth = row["solution"]
        expert = "\n".join(f"{letter}. {answer}" for letter, answer in truth.items())
        assert set(grade(expert, truth).values()) == {True}
        assert not any(grade(row["prompt"], truth).values())
        options = read_options(row["prompt"])
        assert options.keys() == truth.keys()
        for letter, answer in truth.items():
            assert answer in options[letter]
            # Each other name is wrong, in whatever form it is normalized.
            assert [x for x in options[letter] if grade(f"{letter}. {x}", truth)[letter]] == [answer]
            times += answer.endswith(("AM", "PM"))
    assert times == 32
    _, results = measure("temporal_clue", [f"data.eval={PUBLIC}"])
    scored = {name: result.reward.value for name, result in results.items() if result}
    assert {result.episodes for result in results.values() if result} == {64}
    assert (scored["expert"], scored["echo"], scored["no-op"]) == (1.0, 0.0, 0.0)
    assert 0.1 < scored["random"] < 0.35


def test_recipes_are_sound() -> None:
    folder = ROOT / "src" / "latih" / "recipes" / "temporal_clue"
    cpu, gpu = resolve("temporal_clue"), resolve(str(folder / "gpu.yaml"))
    env = cpu.env.make()
    assert isinstance(env, TemporalClue)
    # Short enough for a small model on a CPU: some 190 tokens at four characters each.
    assert max(sum(len(each.text) for each in env.reset(seed=seed)[0]) for seed in range(20)) < 800
    assert isinstance(gpu.env.make(), TemporalClue)
    # The published settings.
    assert gpu.trainer.policy.model.path.startswith("Qwen/Qwen2.5-7B")
    assert (gpu.rollout.groups, gpu.rollout.group_size, gpu.trainer.optimizer.lr) == (4, 50, 5e-5)
