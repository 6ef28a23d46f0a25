import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import ConfigError, Message, ToolCall
from latih.envs import make
from latih.envs.game_2048 import MOVES, Board, Game2048, best_move, legal_moves, moved, render, slide
from tests.envs.playing import episodes_in_other_processes, play
from tests.soak import examples

boards = st.integers(2, 5).flatmap(
    lambda n: st.lists(
        st.lists(st.one_of(st.just(0), st.integers(1, 5)), min_size=n, max_size=n).map(tuple), min_size=n, max_size=n
    ).map(tuple)
)


def by_hand(row: tuple[int, ...]) -> list[int]:
    """An independent slide: drop the gaps, then merge equal neighbours from the front, by plain values."""
    tiles = [1 << tile for tile in row if tile]
    done: list[int] = []
    while tiles:
        if len(tiles) > 1 and tiles[0] == tiles[1]:
            done.append(tiles[0] * 2)
            tiles = tiles[2:]
        else:
            done.append(tiles.pop(0))
    return done + [0] * (len(row) - len(done))


def reference(board: Board, move: str) -> np.ndarray:
    """An independent move: turn the board so that the move is to the left, slide, and turn it back."""
    turns = {"left": 0, "up": 1, "right": 2, "down": 3}[move]
    turned = np.rot90(np.array(board), turns)
    return np.rot90(np.array([by_hand(tuple(int(tile) for tile in row)) for row in turned]), -turns)


def values(board: Board) -> np.ndarray:
    return np.array([[1 << tile if tile else 0 for tile in row] for row in board])


def test_every_row_of_four_slides_by_the_rules() -> None:
    for row in itertools.product(range(5), repeat=4):
        made, points = slide(row)
        assert [1 << tile if tile else 0 for tile in made] == by_hand(row)
        assert points == merged_points(row)


def merged_points(row: tuple[int, ...]) -> int:
    """What the game's score counts: the value of each tile that a merge made."""
    before, after = Counter(1 << tile for tile in row if tile), Counter(v for v in by_hand(row) if v)
    # Largest first: a tile that is there more often than before, plus those that merged into a larger one, was made.
    total, used = 0, 0
    for value in sorted({*before, *after}, reverse=True):
        made = after[value] - before[value] + used
        total, used = total + made * value, 2 * made
    return total


@pytest.mark.parametrize(
    ("row", "made", "points"),
    [
        ((1, 1, 0, 0), (2, 0, 0, 0), 4),
        ((1, 1, 1, 1), (2, 2, 0, 0), 8),  # four equal tiles make two, not one
        ((2, 1, 1, 0), (2, 2, 0, 0), 4),  # a tile that was just made merges no further
        ((1, 0, 0, 1), (2, 0, 0, 0), 4),
        ((0, 1, 2, 0), (1, 2, 0, 0), 0),
        ((3, 3, 3, 0), (4, 3, 0, 0), 16),  # the foremost pair merges
    ],
)
def test_slides_worked_out_by_hand(row, made, points) -> None:
    assert slide(row) == (made, points)


@settings(max_examples=examples(300), deadline=None)
@given(boards)
def test_moves_agree_with_a_reference_and_keep_the_sum(board: Board) -> None:
    for move in MOVES:
        made, points = moved(board, move)
        assert (values(made) == reference(board, move)).all()
        assert values(made).sum() == values(board).sum()
        assert points >= 0
    assert legal_moves(board) == [m for m in MOVES if (reference(board, m) != values(board)).any()]
    if legal_moves(board):
        assert best_move(board) in legal_moves(board)


def test_a_full_board_with_a_merge_left_is_not_over() -> None:
    full = ((1, 2), (2, 2))
    assert legal_moves(full) == ["up", "down", "left", "right"]
    assert legal_moves(((1, 2), (2, 1))) == []
    env = Game2048(size=2, goal=32)
    env.reset(seed=0)
    env.board, env.legal = full, legal_moves(full)
    _, _, terminated, _, _ = env.step("left")
    assert not terminated


def test_a_move_that_changes_nothing_is_invalid_and_spawns_nothing() -> None:
    env = Game2048()
    for seed in range(50):
        env.reset(seed=seed)
        stuck = [move for move in MOVES if move not in legal_moves(env.board)]
        if stuck:
            before = env.board
            observation, reward, terminated, truncated, info = env.step(stuck[0])
            assert env.board == before
            assert (reward, terminated, truncated) == (-0.5, True, False)
            assert (info["metrics"]["invalid"], info["metrics"]["moves"]) == (1.0, 0.0)
            assert observation == f"Invalid move.\n{render(before)}"
            return
    raise AssertionError("no first board with a move that changes nothing")


def test_tiles_appear_on_empty_squares_nine_twos_to_a_four() -> None:
    env, rng, tiles, places = Game2048(goal=2048), random.Random(0), Counter(), []
    for seed in range(100):
        env.reset(seed=seed)
        while not env.over:
            move = env.scripted("random", rng)
            after, _ = moved(env.board, move)
            env.step(move)
            [(i, j)] = [(i, j) for i in range(4) for j in range(4) if env.board[i][j] != after[i][j]]
            empty = [(i, j) for i in range(4) for j in range(4) if not after[i][j]]
            tiles[env.board[i][j]] += 1
            places.append((empty.index((i, j)) + rng.random()) / len(empty))
    total = tiles.total()
    assert set(tiles) == {1, 2}
    assert abs(tiles[2] - 0.1 * total) < 4 * math.sqrt(0.09 * total)
    for tenth in range(10):  # the place among the empty squares is uniform
        share = sum(tenth <= 10 * place < tenth + 1 for place in places)
        assert abs(share - 0.1 * total) < 4 * math.sqrt(0.09 * total)


def test_first_boards() -> None:
    env, seen = Game2048(size=3, goal=32), Counter()
    for seed in range(2000):
        messages, info = env.reset(seed=seed)
        tiles = [tile for row in env.board for tile in row if tile]
        assert len(tiles) == 2
        assert info == {}
        seen.update(tiles)
    assert abs(seen[2] - 400) < 80
    assert [each.role for each in messages] == ["system", "user"]
    assert messages[0].text == ("2048 on 3x3 squares. Slide the tiles; equal ones merge. Make 32. Reply with one move.")


def test_what_is_shown() -> None:
    assert render(((0, 1, 2), (5, 0, 10), (0, 0, 0))) == ". 2 4\n32 . 1024\n. . ."
    env = Game2048(size=2, goal=32)
    env.reset(seed=0)
    env.board = ((1, 0), (2, 0))
    env.legal = legal_moves(env.board)
    assert env._show() == "2 .\n4 .\nright"
    env = Game2048(size=2, goal=32, list_moves=False)
    messages, _ = env.reset(seed=0)
    assert messages[0].text.endswith("Reply with one move. Moves: up down left right")
    assert messages[1].text == render(env.board)


def test_the_reward_of_a_game_worked_out_by_hand() -> None:
    env = Game2048(size=2, goal=8)
    env.reset(seed=0)
    env.board = ((1, 1), (0, 0))
    env.legal = legal_moves(env.board)
    _, reward, over, _, _ = env.step("left")
    appeared = int(values(env.board).sum()) - 4
    assert appeared in (2, 4)
    assert reward == appeared / 8 / 2
    assert not over
    env.board = ((2, 2), (0, 0))
    env.legal = legal_moves(env.board)
    _, last, over, _, info = env.step("left")
    assert over
    assert reward + last == 1.0
    assert info["metrics"] == {"reached": 1.0, "invalid": 0.0, "max_tile": 8.0, "score": 12.0, "moves": 2.0}


def test_the_shaped_part_is_capped_below_the_goal() -> None:
    env = Game2048(size=2, goal=32)
    env.reset(seed=0)
    env.appeared, env.paid = 31, 31 / 64
    env.board = ((3, 0), (2, 0))
    env.legal = legal_moves(env.board)
    assert env.step("right")[1] == pytest.approx(0.5 - 31 / 64)
    env.appeared = 1000
    env.board = ((3, 0), (2, 0))
    env.legal = legal_moves(env.board)
    assert env.step("right")[1] == 0.0


@settings(max_examples=examples(100), deadline=None)
@given(
    st.integers(0, 2**63 - 1), st.sampled_from([(2, 16), (3, 32), (3, 64), (4, 64)]), st.sampled_from([0, 0.01, 0.2])
)
def test_the_reward_of_any_game_is_the_formula(seed: int, dials: tuple[int, int], slip: float) -> None:
    size, goal = dials
    env, rng = Game2048(size=size, goal=goal), random.Random(seed)
    env.reset(seed=seed)
    start = int(values(env.board).sum())
    total, over, said = 0.0, False, ""
    while not over:
        said = "no" if rng.random() < slip else env.scripted("random", rng)
        _, reward, over, truncated, info = env.step(said)
        total += reward
        assert not truncated
    metrics = info["metrics"]
    largest, summed = int(values(env.board).max()), int(values(env.board).sum())
    assert metrics["reached"] == (largest == goal)
    assert metrics["max_tile"] == largest <= goal
    assert metrics["invalid"] == (said == "no")
    expected = 1.0 if metrics["reached"] else min(1, (summed - start) / goal) / 2 - 0.5 * metrics["invalid"]
    assert total == pytest.approx(expected)
    assert metrics["reached"] or metrics["invalid"] or not legal_moves(env.board)
    assert -0.5 <= total <= 1


@pytest.mark.parametrize("text", ["", "UP", "up down", "up.", "move up", "0", "\x00", "up down left right"])
def test_anything_but_a_move_ends_the_game_at_a_cost(text: str) -> None:
    env = Game2048()
    env.reset(seed=0)
    assert env.step(text)[1:3] == (-0.5, True)
    env = Game2048(reward_invalid=-2)
    env.reset(seed=0)
    assert env.step(text)[1] == -2


def test_moves_as_text_or_message() -> None:
    env = Game2048()
    for form in ("{}", " {}\n"):
        env.reset(seed=0)
        assert env.step(form.format(env.legal[0]))[2] is False
    env.reset(seed=0)
    assert env.step(Message(role="assistant", content=env.legal[0]))[2] is False
    env.reset(seed=0)
    assert env.step(Message(role="assistant", tool_calls=[ToolCall(name=env.legal[0], arguments={})]))[1] == -0.5


def test_step_after_the_end_is_an_error() -> None:
    env = Game2048()
    env.reset(seed=0)
    env.step("no")
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("up")


@pytest.mark.parametrize(
    ("dials", "said"),
    [
        ({"goal": 100}, "goal=100 is no tile: give a power of two"),
        ({"goal": 64, "size": 2}, "cannot be reached on 2x2 squares: the most is 32"),
        ({"size": 1}, "greater than or equal to 2"),
        ({"reward_invalid": 1}, "less than or equal to 0"),
        ({"gaol": 8}, "did you mean 'goal'"),
    ],
)
def test_wrong_dials_are_told(dials: dict[str, int], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make("game_2048", **dials)


@pytest.mark.parametrize(("size", "goal", "games"), [(4, 128, 100), (4, 256, 20), (3, 32, 100)])
def test_the_expert_reaches_the_goal_and_random_play_is_valid(size: int, goal: int, games: int) -> None:
    env = Game2048(size=size, goal=goal)
    played = [play(env, "expert", seed) for seed in range(games)]
    assert sum(game.metrics["reached"] for game in played) >= 0.98 * games
    aimless = [play(env, "random", seed).metrics for seed in range(50)]
    assert not any(metrics["invalid"] for metrics in aimless)
    assert sum(metrics["reached"] for metrics in aimless) < 45


def test_a_habit_of_corners_beats_random_play() -> None:
    # What the recipe's README says of it: there is something to learn that one board at a time tells.
    env, reached = Game2048(size=3, goal=32), 0
    for seed in range(300):
        env.reset(seed=seed)
        while not env.over:
            _, _, _, _, info = env.step(next(move for move in ("down", "left", "right", "up") if move in env.legal))
        reached += info["metrics"]["reached"]
    assert reached / 300 == pytest.approx(0.92, abs=0.02)


def test_the_same_seed_and_moves_give_the_same_tiles() -> None:
    assert play(Game2048(), "random", 5) == play(Game2048(), "random", 5)
    assert play(Game2048(), "random", 5) != play(Game2048(), "random", 6)
    assert len(episodes_in_other_processes("game_2048", seeds=4)) == 1
