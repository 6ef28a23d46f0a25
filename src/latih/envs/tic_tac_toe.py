"""Tic-tac-toe against a random or a perfect opponent."""

import functools
import random
from typing import Annotated, Any, Literal

from pydantic import Field, validate_call

from latih.core import Message
from latih.envs.base import MessageEnv
from latih.envs.registry import register
from latih.envs.spaces import Item, text_of

SYSTEM = "Tic-tac-toe on squares 1-9. Reply with one free square. Lines: 123 456 789 147 258 369 159 357."
SYSTEM_LINES = "Tic-tac-toe on squares 1-9, line by line: + you, - foe. Reply with one free square."
"""Short, as all that the policy reads: every token is paid for in every prompt."""
EMPTY = "."
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
OUTCOMES = {"win": "You win.", "draw": "Draw.", "loss": "You lose.", "invalid": "Invalid move."}


def empty_squares(board: str) -> list[int]:
    """Indices (0 to 8) of the empty squares of a board of nine characters, X, O or a dot."""
    return [square for square, mark in enumerate(board) if mark == EMPTY]


def put(board: str, square: int, mark: str) -> str:
    """The board after `mark` is put on `square` (0 to 8)."""
    return board[:square] + mark + board[square + 1 :]


def winner(board: str) -> str | None:
    """The mark that has three in a row."""
    for a, b, c in LINES:
        if board[a] == board[b] == board[c] != EMPTY:
            return board[a]
    return None


@functools.cache
def value(board: str) -> int:
    """The value of the position for the side to move under perfect play: 1 a win, 0 a draw, -1 a loss.

    Negamax over the 5,478 positions that can arise, each solved once.
    """
    if winner(board):
        return -1
    moves = empty_squares(board)
    if not moves:
        return 0
    mark = "XO"[len(moves) % 2 == 0]
    return max(-value(put(board, square, mark)) for square in moves)


@functools.cache
def best_moves(board: str) -> list[int]:
    """All perfect moves (0 to 8) of the side to move, in a position that is not over."""
    moves = empty_squares(board)
    mark = "XO"[len(moves) % 2 == 0]
    values = {square: -value(put(board, square, mark)) for square in moves}
    return [square for square in moves if values[square] == max(values.values())]


@functools.cache
def prospects(board: str, win: float, draw: float, loss: float) -> dict[int, float]:
    """What each move (0 to 8) of the side to move earns on average, in a position that is not over.

    The other side moves at random, and the mover's later moves are those that earn the most. It may risk a loss for a
    likelier win, which perfect play does not.
    """
    mark = "XO"[len(empty_squares(board)) % 2 == 0]
    return {square: _prospect(put(board, square, mark), win, draw, loss) for square in empty_squares(board)}


def _prospect(board: str, win: float, draw: float, loss: float) -> float:
    """What the side that has just moved earns on average."""
    if winner(board):
        return win
    replies = [put(board, square, "XO"[len(empty_squares(board)) % 2 == 0]) for square in empty_squares(board)]
    if not replies:
        return draw
    earned = [
        loss if winner(reply) else max(prospects(reply, win, draw, loss).values()) if EMPTY in reply else draw
        for reply in replies
    ]
    return sum(earned) / len(earned)


def system(lines: bool) -> Message:
    """What stands above every position."""
    return Message(role="system", content=SYSTEM_LINES if lines else SYSTEM)


def render(board: str, side: str, list_empty: bool, lines: bool = False) -> str:
    """What the policy, whose mark is `side`, sees when it is to move.

    With `list_empty`: who holds which squares, and which are free; without: the board drawn in three rows. With
    `lines`: instead of either, the lines that have a free square: the marks in each, then the numbers of the free ones.

    >>> print(render("X.O.X....", "X", True))
    You:15
    Foe:3
    Free:246789
    >>> render("X.O.X....", "X", False, lines=True)
    'Lines: +-2 +46 789 +47 +28 -69 ++9 +-7'
    """
    if lines:
        free = "\nFree:" + "".join(str(i + 1) for i in empty_squares(board))
        return "Lines:" + "".join(_line(board, side, line) for line in LINES) + (free if list_empty else "")
    if list_empty:
        held = {"You": side, "Foe": "O" if side == "X" else "X", "Free": EMPTY}
        return "\n".join(
            f"{who}:" + "".join(str(i + 1) for i in range(9) if board[i] == mark) for who, mark in held.items()
        )
    return "\n".join((f"You are {side}.", *(" ".join(board[start : start + 3]) for start in (0, 3, 6))))


def _line(board: str, side: str, line: tuple[int, ...]) -> str:
    """A space, the marks of a line, and the numbers of its free squares; nothing of a line that is full."""
    free = [str(i + 1) for i in line if board[i] == EMPTY]
    marks = sorted("+-"[board[i] != side] for i in line if board[i] != EMPTY)
    return " " + "".join(marks + free) if free else ""


@register("tic_tac_toe")
class TicTacToe(MessageEnv):
    """Tic-tac-toe, either side, against a random or a perfect opponent.

    A move is exactly one digit, 1 to 9, of an empty square; anything else is invalid and ends the game.
    Each turn pays 0 but the last, so that the reward of the game is

        R = reward_win·[won] + reward_draw·[drawn] + reward_loss·[lost] + reward_invalid·[invalid]

    by default 1, 0, -1 and -1.5: an invalid move costs more than a loss. A game that was cut short pays 0. Metrics:
    `win`, `draw`, `loss`, `invalid` (one of them is 1, none in a game cut short), and `moves`, the policy's own valid
    ones. See docs/envs/tic_tac_toe.md.
    """

    policies = ("random", "expert")

    @validate_call
    def __init__(
        self,
        side: Literal["random", "x", "o"] = "random",
        opponent: Literal["random", "minimax"] = "random",
        list_empty: bool = True,
        lines: bool = False,
        opening: Annotated[int, Field(ge=0, le=6)] = 0,
        reward_win: float = 1.0,
        reward_draw: float = 0.0,
        reward_loss: float = -1.0,
        reward_invalid: float = -1.5,
    ) -> None:
        """Set the dials.

        side: the policy's side, drawn from the seed by default; X moves first.
        opponent: `random` plays a uniform legal move, `minimax` a uniform one among the perfect moves.
        list_empty: the observation lists the squares of both sides and the empty ones; otherwise it draws the board.
        lines: the observation writes every line that has a free square, instead of the squares of both sides or the
            board: its marks, + for the policy's and - for the opponent's, then the numbers of its free squares.
        opening: up to so many random moves (their number drawn uniformly, 0 included) are made before the game
            starts, drawn again where they would end it or leave the policy no turn.
        """
        self.side = side
        self.opponent = opponent
        self.list_empty = list_empty
        self.lines = lines
        self.opening = opening
        self.rewards = {"win": reward_win, "draw": reward_draw, "loss": reward_loss, "invalid": reward_invalid}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Start a game; the opponent has moved where it is the opponent's turn first."""
        super().reset(seed=seed, options=options)
        self.moves = 0
        self.mark = "XO"[self.np_random.integers(2)] if self.side == "random" else self.side.upper()
        self._open()
        while self._outcome():
            self._open()
        return [system(self.lines), Message(role="user", content=self._show())], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Put the policy's mark, then the opponent's. Raises RuntimeError after the end of the game."""
        self.check_playing()
        text = text_of(action).strip()
        if len(text) != 1 or text not in "123456789" or self.board[int(text) - 1] != EMPTY:
            return self._end("invalid")
        self._play(int(text) - 1)
        self.moves += 1
        if outcome := self._outcome():
            return self._end(outcome)
        self._reply()
        if outcome := self._outcome():
            return self._end(outcome)
        return self._show(), 0.0, False, False, {}

    def truncate(self, reason: str) -> tuple[float, dict[str, Any]]:
        """A game that was cut short has no outcome, and pays nothing."""
        self.over = True
        return 0.0, self._info(None)

    def scripted(self, name: str, rng: random.Random) -> str:
        """A legal move: any (`random`), or one that earns the most against the opponent at hand (`expert`)."""
        if name not in self.policies:
            super().scripted(name, rng)
        if name == "random":
            moves = empty_squares(self.board)
        elif self.opponent == "minimax":
            moves = best_moves(self.board)
        else:
            earned = prospects(self.board, *(self.rewards[each] for each in ("win", "draw", "loss")))
            moves = [move for move, value in earned.items() if value > max(earned.values()) - 1e-9]
        return str(rng.choice(moves) + 1)

    def _open(self) -> None:
        """Play up to the policy's first turn."""
        self.board = EMPTY * 9
        for _ in range(self.np_random.integers(self.opening + 1) if self.opening else 0):
            self._play(self._draw(empty_squares(self.board)))
        if self._to_move() != self.mark and not self._outcome():
            self._reply()

    def _to_move(self) -> str:
        return "XO"[len(empty_squares(self.board)) % 2 == 0]

    def _play(self, square: int) -> None:
        self.board = put(self.board, square, self._to_move())

    def _draw(self, squares: list[int]) -> int:
        return squares[self.np_random.integers(len(squares))]

    def _reply(self) -> None:
        self._play(self._draw(best_moves(self.board) if self.opponent == "minimax" else empty_squares(self.board)))

    def _show(self) -> str:
        return render(self.board, self.mark, self.list_empty, self.lines)

    def _outcome(self) -> str | None:
        if won := winner(self.board):
            return "win" if won == self.mark else "loss"
        return None if empty_squares(self.board) else "draw"

    def _end(self, outcome: str) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        self.over = True
        return f"{OUTCOMES[outcome]}\n{self._show()}", self.rewards[outcome], True, False, self._info(outcome)

    def _info(self, outcome: str | None) -> dict[str, Any]:
        metrics = {name: float(name == outcome) for name in self.rewards} | {"moves": float(self.moves)}
        return {"metrics": metrics}
