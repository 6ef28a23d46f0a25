import functools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import ConfigError, Message
from latih.envs import make
from latih.envs.guess_number import GuessNumber
from tests.envs.playing import episodes_in_other_processes, play
from tests.soak import examples


def at(number: int, **dials) -> GuessNumber:
    env = GuessNumber(**dials)
    env.reset(seed=0)
    env.number = number
    return env


def test_a_game_worked_out_by_hand() -> None:
    env = at(37)
    assert env.step("50") == ("1-49", 0.0, False, False, {})
    assert env.step(" 25\n") == ("26-49", 0.0, False, False, {})
    assert env.step(Message(role="assistant", content="60")) == ("26-49", 0.0, False, False, {})  # wasted
    text, reward, terminated, truncated, info = env.step("37")
    assert (text, terminated, truncated) == ("Found.", True, False)
    assert reward == pytest.approx(1 - 0.2 * 3 / 6)
    assert info == {"metrics": {"correct": 1.0, "invalid": 0.0, "guesses": 4.0, "wasted": 1.0}}


def test_the_first_and_the_last_guess() -> None:
    assert at(50).step("50")[1] == 1.0
    env = at(9, guesses=2, hurry=0.3)
    env.step("8")
    assert env.step("9")[1] == 0.7
    env = at(9, guesses=2)
    env.step("8")
    text, reward, terminated, _, info = env.step("10")
    assert (text, reward, terminated) == ("It was 9.", 0.0, True)
    assert info["metrics"] == {"correct": 0.0, "invalid": 0.0, "guesses": 2.0, "wasted": 0.0}


def test_the_worst_answer_leaves_the_larger_part_and_bisection_needs_five_guesses() -> None:
    env = at(0, top=30, guesses=16, hidden="worst")
    assert [env.step(guess)[0] for guess in ("10", "29", "29", "19")] == ["11-30", "11-28", "11-28", "20-28"]
    assert [env.step(guess)[0] for guess in ("23", "25", "26", "27")] == ["24-28", "26-28", "27-28", "28-28"]
    text, reward, _, _, info = env.step("28")
    assert (text, reward, info["metrics"]["wasted"]) == ("Found.", pytest.approx(1 - 0.2 * 8 / 15), 1.0)
    lengths = [play(GuessNumber(top=30, hidden="worst"), "expert", seed).metrics["guesses"] for seed in range(20)]
    assert set(lengths) <= {4.0, 5.0}


def test_what_is_shown() -> None:
    messages, info = GuessNumber(top=30, guesses=5).reset(seed=3)
    assert [(each.role, each.text) for each in messages] == [
        ("system", "Guess my number from 1 to 30 in 5 tries. Reply with a number."),
        ("user", "1-30"),
    ]
    assert info == {}
    env = at(37, show="answer")
    assert [env.step(each)[0] for each in ("50", "20", "40")] == ["lower", "higher", "lower"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "101",
        "-5",
        "5.",
        "5 6",
        "five",
        "1e1",
        "+5",
        "\u0665",
        "\uff15",
        "\xb2",
        "9" * 5000,
        "1-100",
        "1, 2, 3",
    ],
)
def test_anything_but_a_number_in_range_ends_the_game_at_a_cost(text: str) -> None:
    _, reward, terminated, _, info = at(5).step(text)
    assert (reward, terminated, info["metrics"]["invalid"]) == (-0.5, True, 1.0)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(2, 10**6), st.integers(2, 20), st.integers(0, 2**63 - 1), st.sampled_from(["interval", "answer"]))
def test_the_interval_always_holds_the_number(top: int, guesses: int, seed: int, show: str) -> None:
    env, rng = GuessNumber(top=top, guesses=guesses, show=show), random.Random(seed)  # type: ignore[arg-type]
    env.reset(seed=seed)
    assert 1 <= env.number <= top
    reward, made = 0.0, 0
    while not env.over:
        assert env.low <= env.number <= env.high
        guess = rng.randint(1, top)
        made += 1
        said, reward, _, _, info = env.step(str(guess))
        if not env.over and show == "answer":
            assert said == ("higher" if guess < env.number else "lower")
    found = guess == env.number
    assert made <= guesses
    assert info["metrics"]["correct"] == found
    assert reward == pytest.approx(found * (1 - 0.2 * (made - 1) / (guesses - 1)))
    assert 0 <= reward <= 1


@pytest.mark.parametrize(("top", "guesses", "expected"), [(100, 7, 0.84), (30, 5, 0.8433), (7, 3, 0.857142)])
def test_bisection_finds_every_number_and_scores_what_the_docs_say(top: int, guesses: int, expected: float) -> None:
    total = 0.0
    for number in range(1, top + 1):
        env = at(number, top=top, guesses=guesses)
        while not env.over:
            _, reward, _, _, info = env.step(env.scripted("expert", random.Random(0)))
        assert info["metrics"]["correct"] == 1.0
        assert info["metrics"]["guesses"] <= math.ceil(math.log2(top + 1))
        total += reward
    assert total / top == pytest.approx(expected, abs=1e-4)


def best_expected(top: int, guesses: int, hurry: float = 0.2) -> float:
    """The most that any player can expect: over all first guesses, exactly, by dynamic programming."""
    pays = [1 - hurry * g / (guesses - 1) for g in range(guesses)]
    best = [0.0] * (top + 1)  # the sum over the numbers of an interval, once all guesses are spent
    for pay in reversed(pays):
        best = [0.0] + [pay + max(best[k] + best[n - 1 - k] for k in range(n)) for n in range(1, top + 1)]
    return best[top] / top


@pytest.mark.parametrize(("top", "guesses", "expert"), [(100, 7, 0.84), (30, 5, 0.8433)])
def test_no_player_can_expect_more_than_bisection(top: int, guesses: int, expert: float) -> None:
    assert best_expected(top, guesses) == pytest.approx(expert, abs=1e-4)


@functools.cache
def aimless_finds(left: int, guesses: int) -> float:
    """How likely a player who guesses any number that is left finds one of `left` numbers."""
    if not left or not guesses:
        return 0.0
    smaller = sum(2 * k * aimless_finds(k, guesses - 1) for k in range(left))
    return (left + smaller) / left**2


def test_random_play_is_valid_and_finds_half() -> None:
    assert aimless_finds(3, 1) == pytest.approx(1 / 3)
    assert aimless_finds(100, 7) == pytest.approx(0.510, abs=1e-3)
    assert aimless_finds(30, 5) == pytest.approx(0.554, abs=1e-3)
    games = [play(GuessNumber(), "random", seed) for seed in range(1000)]
    assert not any(game.metrics["invalid"] or game.metrics["wasted"] for game in games)
    assert sum(game.metrics["correct"] for game in games) / 1000 == pytest.approx(0.51, abs=0.05)


def test_numbers_are_spread_evenly_and_come_from_the_seed() -> None:
    env, seen = GuessNumber(top=10), [0] * 11
    for seed in range(2000):
        env.reset(seed=seed)
        seen[env.number] += 1
    assert all(140 < count < 260 for count in seen[1:])
    assert len(episodes_in_other_processes("guess_number")) == 1


def test_wrong_dials_and_steps_are_told() -> None:
    for dials, said in (
        ({"top": 1}, "greater than or equal to 2"),
        ({"hurry": 1.0}, "less than 1"),
        ({"show": "all"}, "'interval' or 'answer'"),
    ):
        with pytest.raises(ConfigError, match=said):
            make("guess_number", **dials)
    env = at(5)
    env.step("no")
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("5")
