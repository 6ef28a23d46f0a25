import functools
import itertools
import math
import random
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import Message, ToolCall
from latih.envs import message_of
from latih.envs.tic_tac_toe import LINES, SYSTEM, SYSTEM_LINES, TicTacToe, best_moves, prospects, render, value, winner
from tests.envs.playing import episodes_in_other_processes, play
from tests.soak import examples

ROOT = Path(__file__).parents[2]


def three_in_a_row(board: str) -> set[str]:
    """An independent check: by coordinates instead of a list of lines."""
    grid = {(i // 3, i % 3): mark for i, mark in enumerate(board)}
    lines = [[(r, c) for c in range(3)] for r in range(3)] + [[(r, c) for r in range(3)] for c in range(3)]
    lines += [[(i, i) for i in range(3)], [(i, 2 - i) for i in range(3)]]
    return {grid[line[0]] for line in lines if len({grid[square] for square in line}) == 1} - {"."}


def minimax(board: str, mover: str, known: dict[str, int]) -> int:
    """An independent value, from X's side, by plain minimax."""
    if board not in known:
        won = three_in_a_row(board)
        children = [board[:i] + mover + board[i + 1 :] for i in range(9) if board[i] == "."]
        if won or not children:
            known[board] = {"X": 1, "O": -1}[won.pop()] if won else 0
        else:
            values = [minimax(child, "O" if mover == "X" else "X", known) for child in children]
            known[board] = max(values) if mover == "X" else min(values)
    return known[board]


def test_solver_agrees_with_minimax_on_the_whole_game_tree() -> None:
    known: dict[str, int] = {}
    assert minimax("." * 9, "X", known) == 0
    assert len(known) == 5478
    decisive = 0
    for board, expected in known.items():
        mover = "X" if board.count("X") == board.count("O") else "O"
        assert value(board) == (expected if mover == "X" else -expected)
        assert ({winner(board)} - {None}) == three_in_a_row(board)
        decisive += winner(board) is not None
        if not three_in_a_row(board) and "." in board:
            children = {i: known[board[:i] + mover + board[i + 1 :]] for i in range(9) if board[i] == "."}
            assert best_moves(board) == [i for i, v in children.items() if v == expected]
    assert decisive == 626 + 316  # positions won by X and by O, a known count


def test_every_sequence_of_replies_is_played_right() -> None:
    # The policy's whole game tree: each line of play from one seed, legal or not, against the rules applied apart.
    env, endings = TicTacToe(side="x"), dict.fromkeys(("win", "draw", "loss", "invalid"), 0)
    for replies in itertools.permutations("123456789", 5):
        env.reset(seed=7)
        for reply in replies:
            before = env.board
            observation, reward, terminated, truncated, info = env.step(reply)
            assert not truncated
            if before[int(reply) - 1] != ".":
                outcome = "invalid"
                assert env.board == before
            else:
                won = three_in_a_row(env.board)
                outcome = {"X": "win", "O": "loss"}[won.pop()] if won else "" if "." in env.board else "draw"
                assert env.board[int(reply) - 1] == "X"
            assert terminated == bool(outcome)
            if terminated:
                endings[outcome] += 1
                metrics = info["metrics"]
                assert [name for name in endings if metrics[name]] == [outcome]
                assert reward == {"win": 1.0, "draw": 0.0, "loss": -1.0, "invalid": -1.5}[outcome]
                break
            assert (reward, info) == (0.0, {})
            assert str(observation).startswith("You:")
    assert min(endings.values()) > 0, endings


Rates = tuple[Fraction, Fraction, Fraction]
"""Of wins, draws and losses."""


@functools.cache
def exact_rates(policy: str, opponent: str, sides: str = "XO") -> Rates:
    """Of a player against another, by summing over all games; sides by a fair coin.

    `winning` is the player with the highest win rate against this opponent, and `earning` one of the highest reward, 1
    for a win and -1 for a loss, drawing lots among moves that are equal in that.
    """

    def moves(board: str, player: str) -> list[int]:
        return best_moves(board) if player == "minimax" else [i for i in range(9) if board[i] == "."]

    @functools.cache
    def rates(board: str, side: str) -> Rates:
        mover = "X" if board.count("X") == board.count("O") else "O"
        if won := three_in_a_row(board):
            return (Fraction(side in won), Fraction(0), Fraction(side not in won))
        if "." not in board:
            return (Fraction(0), Fraction(1), Fraction(0))
        player = policy if mover == side else opponent
        children = [rates(board[:i] + mover + board[i + 1 :], side) for i in moves(board, player)]
        if player == "winning":
            return max(children)
        if player == "earning":
            most = max(win - loss for win, _, loss in children)
            children = [each for each in children if each[0] - each[2] == most]
        return tuple(sum(each) / len(children) for each in zip(*children, strict=True))  # type: ignore[return-value]

    every = zip(*(rates("." * 9, side) for side in sides), strict=True)
    return tuple(sum(each) / len(sides) for each in every)  # type: ignore[return-value]


EXPERT = {"random": "earning", "minimax": "minimax"}
"""What the expert plays against each opponent."""


# The table of docs/envs/tic_tac_toe.md, in percent.
BASELINES = {
    ("random", "random"): (43.7, 12.7, 43.7),
    ("earning", "random"): (96.3, 3.3, 0.4),
    ("minimax", "random"): (87.3, 12.7, 0.0),
    ("winning", "random"): (96.7, 2.5, 0.8),
    ("random", "minimax"): (0.0, 12.7, 87.3),
    ("minimax", "minimax"): (0.0, 100.0, 0.0),
}


@pytest.mark.parametrize(("policy", "opponent"), BASELINES)
def test_baselines_of_the_docs_are_exact(policy: str, opponent: str) -> None:
    rates = exact_rates(policy, opponent)
    assert tuple(round(float(100 * each), 1) for each in rates) == BASELINES[policy, opponent]


def test_random_play_wins_737_of_1260_as_x_and_121_of_420_as_o() -> None:
    assert exact_rates("random", "random")[0] == (Fraction(737, 1260) + Fraction(121, 420)) / 2


def test_no_policy_earns_more_from_a_random_opponent_than_the_expert() -> None:
    most = [win - loss for win, _, loss in (exact_rates("earning", "random", side) for side in ("X", "O", "XO"))]
    assert [round(float(each), 4) for each in most] == [0.9948, 0.9249, 0.9598]
    first = prospects("." * 9, 1.0, 0.0, -1.0)
    assert max(first.values()) == pytest.approx(float(most[0]))
    replies = [prospects("." * i + "X" + "." * (8 - i), 1.0, 0.0, -1.0) for i in range(9)]
    assert sum(max(each.values()) for each in replies) / 9 == pytest.approx(float(most[1]))


def test_the_expert_takes_a_risk_that_pays_against_a_random_opponent() -> None:
    env = TicTacToe(side="o")
    env.reset(seed=0)
    env.board = "X.X..O..."
    # O at 5: X wins at 2, and O at 4 after X at 7, 8 or 9; after X at 4, O at 2 earns -1 (X at 7), 0 (8) or 1 (9). So
    # (-1 + 3 + 0) / 5, where blocking at 2 earns a third.
    earned = prospects(env.board, 1.0, 0.0, -1.0)
    assert (earned[4], max(earned.values())) == (pytest.approx(0.4), earned[4])
    assert earned[1] == pytest.approx(1 / 3)
    assert {env.scripted("expert", random.Random(i)) for i in range(9)} == {"5"}
    env.rewards["loss"] = -20.0  # a loss that costs as much is not worth the risk
    assert {env.scripted("expert", random.Random(i)) for i in range(9)} == {"2"}


@pytest.mark.parametrize("opponent", ["random", "minimax"])
@pytest.mark.parametrize("policy", ["random", "expert"])
def test_scripted_play_scores_what_it_should(policy: str, opponent: str) -> None:
    games = 4000
    env = TicTacToe(opponent=opponent)  # type: ignore[arg-type]
    metrics = [play(env, policy, i).metrics for i in range(games)]
    player = EXPERT[opponent] if policy == "expert" else policy
    for name, rate in zip(("win", "draw", "loss"), map(float, exact_rates(player, opponent)), strict=True):
        seen = sum(each[name] for each in metrics) / games
        assert abs(seen - rate) <= 3 * math.sqrt(rate * (1 - rate) / games), (name, seen)
    assert sum(each["invalid"] for each in metrics) == 0
    assert (policy, opponent) != ("expert", "minimax") or not any(each["loss"] for each in metrics)
    assert opponent != "minimax" or not any(each["win"] for each in metrics)


@pytest.mark.parametrize("policy", ["", "echo", "first", "all"])
def test_do_nothing_policies_score_a_loss_or_worse(policy: str) -> None:
    env = TicTacToe()
    for seed in range(200):
        (_, prompt), _ = env.reset(seed=seed)
        reply = {"": "", "echo": prompt.text, "first": "1", "all": "123456789"}[policy]
        total, over = 0.0, False
        while not over:
            _, reward, over, _, info = env.step(reply)
            total += reward
        assert (total, info["metrics"]["invalid"]) == (-1.5, 1.0)


@pytest.mark.parametrize(
    "text", ["0", "10", "12", "1 2", "5.", "five", "\u0665", "\uff15", "", " ", "-5", "square 5", "\x00"]
)
def test_anything_but_one_digit_is_invalid(text: str) -> None:
    env = TicTacToe(side="x")
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(text)
    assert (reward, terminated, truncated) == (-1.5, True, False)
    assert info["metrics"] == {"win": 0.0, "draw": 0.0, "loss": 0.0, "invalid": 1.0, "moves": 0.0}
    assert str(observation).startswith("Invalid move.")


@pytest.mark.parametrize("action", ["5", " 5\n", Message(role="assistant", content="5")])
def test_a_digit_is_a_move(action: str | Message) -> None:
    env = TicTacToe(side="x")
    env.reset(seed=0)
    assert env.step(action)[2] is False
    assert env.board[4] == "X"


def test_a_tool_call_is_no_move() -> None:
    env = TicTacToe()
    env.reset(seed=0)
    assert env.step(Message(role="assistant", tool_calls=[ToolCall(name="move", arguments={"square": 5})]))[1] == -1.5


def test_rendering() -> None:
    board = "X.O.X...."
    assert render(board, "X", True) == "You:15\nFoe:3\nFree:246789"
    assert render(board, "O", True) == "You:3\nFoe:15\nFree:246789"
    assert render("." * 9, "X", True) == "You:\nFoe:\nFree:123456789"
    assert render("XOXXOOOXX", "X", True) == "You:13489\nFoe:2567\nFree:"
    assert render(board, "O", False) == "You are O.\nX . O\n. X .\n. . ."
    assert render("." * 9, "X", False) == "You are X.\n. . .\n. . .\n. . ."


def test_lines_hold_their_marks_and_their_free_squares() -> None:
    board = "X.O.X...."
    assert render(board, "X", False, lines=True) == "Lines: +-2 +46 789 +47 +28 -69 ++9 +-7"
    assert render(board, "O", False, lines=True) == "Lines: +-2 -46 789 -47 -28 +69 --9 +-7"
    assert render(board, "X", True, lines=True).splitlines()[1] == "Free:246789"
    # the full ones (top and bottom row, both outer columns) are left out
    assert render("XOXX.OOXO", "X", False, lines=True) == "Lines: +-5 +-5 +-5 +-5"


def test_what_lines_show_is_what_can_be_played() -> None:
    messages, _ = TicTacToe(lines=True, list_empty=False, side="o").reset(seed=1)
    assert messages[0].text == SYSTEM_LINES
    game = play(TicTacToe(lines=True, list_empty=False), "random", 3)
    for shown, reply in zip(game.messages[1::2], game.messages[2::2], strict=True):
        assert reply.text in set(shown.text) & set("123456789")


def test_the_rules_name_the_lines() -> None:
    assert SYSTEM.endswith("Lines: " + " ".join("".join(str(i + 1) for i in line) for line in LINES) + ".")


def test_first_observation_by_side() -> None:
    env = TicTacToe(side="x")
    messages, info = env.reset(seed=1)
    assert [each.role for each in messages] == ["system", "user"]
    assert messages[1].text == "You:\nFoe:\nFree:123456789"
    assert info == {}
    messages, _ = TicTacToe(side="o", list_empty=False).reset(seed=1)
    assert messages[1].text.startswith("You are O.\n")
    assert messages[1].text.count("X") == 1


def test_later_observations_hold_only_what_is_new() -> None:
    game = play(TicTacToe(), "expert", 5)
    assert [each.role for each in game.messages[:2]] == ["system", "user"]
    assert {each.role for each in game.messages[2::2]} == {"assistant"}
    assert all(each.text.startswith("You:") for each in game.messages[3::2])
    assert game.messages[-1].role == "assistant"


def test_side_is_a_fair_coin_of_the_seed() -> None:
    env, sides = TicTacToe(), []
    for i in range(1000):
        env.reset(seed=i)
        sides.append(env.mark)
    assert abs(sides.count("X") - 500) < 50


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(0, 6), st.sampled_from(["random", "x", "o"]))
def test_openings_leave_a_game_to_play(seed: int, opening: int, side: str) -> None:
    env = TicTacToe(opening=opening, side=side)  # type: ignore[arg-type]
    env.reset(seed=seed)
    marks = 9 - env.board.count(".")
    assert marks <= opening + 1
    assert env.board.count("X") - env.board.count("O") == (0 if env.mark == "X" else 1)
    assert winner(env.board) is None
    assert play(env, "expert", seed).metrics["invalid"] == 0.0


def test_rewards_are_dials() -> None:
    env = TicTacToe(reward_win=2, reward_draw=0.5, reward_loss=-3, reward_invalid=-9)
    env.reset(seed=0)
    assert env.step("no")[1] == -9
    paid = {play(env, "random", i).reward for i in range(100)}
    assert paid == {2.0, 0.5, -3.0}


def test_a_game_cut_short_has_no_outcome() -> None:
    env = TicTacToe(side="x")
    env.reset(seed=0)
    env.step(env.scripted("random", random.Random(0)))
    metrics = {"win": 0.0, "draw": 0.0, "loss": 0.0, "invalid": 0.0, "moves": 1.0}
    assert env.truncate("context") == (0.0, {"metrics": metrics})
    with pytest.raises(RuntimeError, match="no episode is under way"):
        env.step("1")


def test_step_after_the_end_is_an_error() -> None:
    env = TicTacToe()
    env.reset(seed=0)
    env.step("no")
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("1")


def test_games_are_the_same_in_every_process() -> None:
    assert len(episodes_in_other_processes("tic_tac_toe", 20, opponent="minimax", opening=2)) == 1


def test_global_random_state_plays_no_part() -> None:
    random.seed(0)
    first = play(TicTacToe(), "random", 9)
    random.seed(1)
    assert play(TicTacToe(), "random", 9) == first
    assert message_of("5").role == "assistant"
