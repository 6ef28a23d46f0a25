"""2048: slide tiles on a small board until one of them reaches the goal."""

import functools
import itertools
import random
from typing import Annotated, Any, TypeAlias

from pydantic import Field, validate_call

from latih.core import ConfigError, Message
from latih.envs.base import MessageEnv
from latih.envs.registry import register
from latih.envs.spaces import Item, text_of

Row: TypeAlias = tuple[int, ...]
Board: TypeAlias = tuple[Row, ...]
"""Rows from the top; a tile 2^k is k, an empty square 0."""

MOVES = ("up", "down", "left", "right")
FOURS = 0.1
"""How often a 4 appears instead of a 2."""
START = 2
"""Tiles on the first board."""


@functools.lru_cache(maxsize=2**18)
def slide(row: Row) -> tuple[Row, int]:
    """A row pushed to its beginning, and the points of its merges. Each tile merges once at most, the foremost first.

    >>> slide((1, 1, 1, 0)), slide((2, 1, 1, 1))
    (((2, 1, 0, 0), 4), ((2, 2, 1, 0), 4))
    """
    made: list[int] = []
    points, merged = 0, False
    for tile in row:
        if not tile:
            continue
        if made and made[-1] == tile and not merged:
            made[-1], merged = tile + 1, True
            points += 2 << tile
        else:
            made.append(tile)
            merged = False
    return (*made, *(0,) * (len(row) - len(made))), points


def moved(board: Board, move: str) -> tuple[Board, int]:
    """The board after a move, before a tile appears, and the points of the merges."""
    lines = board if move in ("left", "right") else tuple(zip(*board, strict=True))
    backwards = move in ("right", "down")
    done = [slide(line[::-1] if backwards else line) for line in lines]
    made = tuple(row[::-1] if backwards else row for row, _ in done)
    if move in ("up", "down"):
        made = tuple(zip(*made, strict=True))
    return made, sum(points for _, points in done)


def legal_moves(board: Board) -> list[str]:
    """The moves that change something; none where the game is over."""
    return [move for move in MOVES if moved(board, move)[0] != board]


def empty_squares(board: Board) -> list[tuple[int, int]]:
    """Row and column of each."""
    return [(i, j) for i, row in enumerate(board) for j, tile in enumerate(row) if not tile]


def put(board: Board, square: tuple[int, int], tile: int) -> Board:
    """The board with a tile more."""
    i, j = square
    row = board[i]
    return (*board[:i], (*row[:j], tile, *row[j + 1 :]), *board[i + 1 :])


def render(board: Board) -> str:
    """The board as the policy sees it.

    >>> print(render(((1, 0), (0, 5))))
    2 .
    . 32
    """
    return "\n".join(" ".join(str(1 << tile) if tile else "." for tile in row) for row in board)


@functools.lru_cache(maxsize=2**18)
def _order(row: Row) -> float:
    """How well a row is kept: room, pairs of neighbours to merge, and no large tile between smaller ones."""
    neighbours = list(itertools.pairwise(row))
    pairs = sum(a == b != 0 for a, b in neighbours)
    rising = sum(max(0, b - a) * (a + b) for a, b in neighbours)
    falling = sum(max(0, a - b) * (a + b) for a, b in neighbours)
    return 12.0 * row.count(0) + 10.0 * pairs - 1.5 * min(rising, falling)


def _worth(board: Board) -> float:
    return sum(map(_order, board)) + sum(map(_order, zip(*board, strict=True)))


def _prospect(board: Board) -> float:
    """The mean worth after the best answer to each tile that may appear; low where there is none."""
    squares, total = empty_squares(board), 0.0
    for square in squares:
        for tile, chance in ((1, 1 - FOURS), (2, FOURS)):
            after = put(board, square, tile)
            best = max((_worth(moved(after, move)[0]) for move in legal_moves(after)), default=-1000.0)
            total += chance * best
    return total / len(squares)


def best_move(board: Board) -> str:
    """The move of a player who looks one tile ahead where room is scarce, and at the moved board alone elsewhere."""
    boards = {move: moved(board, move)[0] for move in legal_moves(board)}
    judge = _prospect if min(len(empty_squares(each)) for each in boards.values()) <= 4 else _worth
    return max(boards, key=lambda move: judge(boards[move]))


@register("game_2048")
class Game2048(MessageEnv):
    """2048: slide and merge tiles until one reaches the goal.

    A move is `up`, `down`, `left` or `right`. One that changes nothing is invalid, as is any other reply: it ends the
    game. The game ends at the goal, too, and where no move is left. Let E be the sum of the tiles that have appeared
    since the first board, and G the goal. The reward of the game, paid move by move as it grows, is

        R = [reached] + (1 - [reached])·min(1, E/G)/2 + reward_invalid·[invalid]

    Metrics: `reached` and `invalid` (0 or 1), `max_tile`, `score` (the game's own: the sum of all merged tiles) and
    `moves`, the valid ones. See docs/envs/game_2048.md.
    """

    policies = ("random", "expert")

    @validate_call
    def __init__(
        self,
        goal: Annotated[int, Field(ge=8)] = 128,
        size: Annotated[int, Field(ge=2, le=6)] = 4,
        list_moves: bool = True,
        reward_invalid: Annotated[float, Field(le=0.0)] = -0.5,
    ) -> None:
        """Set the dials.

        goal: the tile that ends the game, a power of two.
        size: rows and columns of the board.
        list_moves: the observation ends with the moves that are valid.
        reward_invalid: what an invalid move is paid, beside what the game has earned.
        """
        self.level = goal.bit_length() - 1
        if goal != 1 << self.level:
            raise ConfigError(f"goal={goal} is no tile: give a power of two, such as 64")
        if self.level > size * size + 1:
            raise ConfigError(f"goal={goal} cannot be reached on {size}x{size} squares: the most is {2 << size * size}")
        self.goal = goal
        self.size = size
        self.list_moves = list_moves
        self.reward_invalid = reward_invalid

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Start with two tiles."""
        super().reset(seed=seed, options=options)
        self.board: Board = ((0,) * self.size,) * self.size
        for _ in range(START):
            self._spawn()
        self.appeared = self.moves = self.score = 0
        self.paid = 0.0
        self.legal = legal_moves(self.board)
        n = self.size
        system = f"2048 on {n}x{n} squares. Slide the tiles; equal ones merge. Make {self.goal}. Reply with one move."
        if not self.list_moves:
            system += " Moves: " + " ".join(MOVES)
        return [Message(role="system", content=system), Message(role="user", content=self._show())], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Move, then let a tile appear. Raises RuntimeError after the end of the game."""
        self.check_playing()
        move = text_of(action).strip()
        if move not in self.legal:
            return self._end("Invalid move.", self.reward_invalid, invalid=1.0)
        self.board, points = moved(self.board, move)
        self.moves += 1
        self.score += points
        if max(map(max, self.board)) >= self.level:
            return self._end("You reached the goal.", 1.0 - self.paid)
        self.appeared += 1 << self._spawn()
        self.legal = legal_moves(self.board)
        worth = min(1.0, self.appeared / self.goal) / 2
        reward, self.paid = worth - self.paid, worth
        if not self.legal:
            return self._end("No move is left.", reward)
        return self._show(), reward, False, False, {}

    def truncate(self, reason: str) -> tuple[float, dict[str, Any]]:
        """A game that was cut short has been paid for its moves."""
        self.over = True
        return 0.0, self._info()

    def scripted(self, name: str, rng: random.Random) -> str:
        """A valid move: any (`random`), or a good one (`expert`)."""
        if name not in self.policies:
            super().scripted(name, rng)
        return best_move(self.board) if name == "expert" else rng.choice(self.legal)

    def _spawn(self) -> int:
        """Let a tile appear on an empty square; which."""
        squares = empty_squares(self.board)
        square = squares[self.np_random.integers(len(squares))]
        tile = 2 if self.np_random.random() < FOURS else 1
        self.board = put(self.board, square, tile)
        return tile

    def _show(self) -> str:
        return render(self.board) + ("\n" + " ".join(self.legal) if self.list_moves else "")

    def _end(self, text: str, reward: float, invalid: float = 0.0) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        self.over = True
        return f"{text}\n{render(self.board)}", reward, True, False, self._info(invalid)

    def _info(self, invalid: float = 0.0) -> dict[str, Any]:
        largest = max(map(max, self.board))
        metrics = {
            "reached": float(largest >= self.level),
            "invalid": invalid,
            "max_tile": float(1 << largest),
            "score": float(self.score),
            "moves": float(self.moves),
        }
        return {"metrics": metrics}
