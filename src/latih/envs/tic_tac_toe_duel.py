"""Tic-tac-toe for two policies, or for one that plays against itself."""

import random
from typing import Annotated, Any

from pydantic import Field, validate_call

from latih.core import Message
from latih.envs.registry import register
from latih.envs.roles import RolesEnv
from latih.envs.spaces import Item, text_of
from latih.envs.tic_tac_toe import EMPTY, OUTCOMES, best_moves, empty_squares, put, render, system, winner

OTHER = {"x": "o", "o": "x"}


@register("tic_tac_toe_duel")
class TicTacToeDuel(RolesEnv):
    """Tic-tac-toe, one role a side: `x` moves first, `o` second.

    A role sees what the policy of `tic_tac_toe` sees, and answers as it does: one digit of an empty square. The reward
    of a role's game is

        R = reward_win·[won] + reward_draw·[drawn] + reward_loss·[lost] + reward_invalid·[its own invalid move]

    by default 1, 0, -1 and -1.5. An invalid move ends the game, and pays nothing to the other side: nobody shall win by
    another's stammer. Metrics of each role: `win`, `draw`, `loss`, `invalid`, `walkover` (the other side's move was
    invalid), one of which is 1, none in a game cut short, and `moves`, its own valid ones. See
    docs/envs/tic_tac_toe_duel.md.
    """

    roles = ("x", "o")
    policies = ("random", "expert")

    @validate_call
    def __init__(
        self,
        opening: Annotated[int, Field(ge=0, le=4)] = 0,
        list_empty: bool = True,
        lines: bool = False,
        reward_win: float = 1.0,
        reward_draw: float = 0.0,
        reward_loss: float = -1.0,
        reward_invalid: float = -1.5,
    ) -> None:
        """Set the dials.

        opening: up to so many random moves (their number drawn uniformly, 0 included) are made before the game starts.
            Four moves can end no game.
        list_empty: the observation lists the squares of both sides and the empty ones; otherwise it draws the board.
        lines: it writes every line that has a free square instead: its marks, + for the role's own and - for the other
            side's, then the numbers of its free squares.
        """
        self.opening = opening
        self.list_empty = list_empty
        self.lines = lines
        self.payoffs = {"win": reward_win, "draw": reward_draw, "loss": reward_loss, "invalid": reward_invalid}

    def start(self) -> None:
        """An empty board, but for the opening."""
        self.board = EMPTY * 9
        self.moves = dict.fromkeys(self.roles, 0)
        for _ in range(self.np_random.integers(self.opening + 1) if self.opening else 0):
            free = empty_squares(self.board)
            self.board = put(self.board, free[self.np_random.integers(len(free))], self._mover().upper())
        for role in self.roles:
            self.tell(role, system(self.lines))
        self._hand_over()

    def act(self, role: str, action: Item | None) -> None:
        """Put the role's mark; the other side's turn."""
        text = text_of(action).strip()
        if len(text) != 1 or text not in "123456789" or self.board[int(text) - 1] != EMPTY:
            return self._over({role: "invalid", OTHER[role]: "walkover"})
        self.board = put(self.board, int(text) - 1, role.upper())
        self.moves[role] += 1
        if winner(self.board):
            return self._over({role: "win", OTHER[role]: "loss"})
        if not empty_squares(self.board):
            return self._over(dict.fromkeys(self.roles, "draw"))
        return self._hand_over()

    def truncate(self, role: str, reason: str) -> tuple[float, dict[str, Any]]:
        """A game that was cut short has no outcome, and pays nothing."""
        return 0.0, {"metrics": self._metrics(role, None)}

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """A legal move: any (`random`), or a perfect one (`expert`)."""
        if name not in self.policies:
            return super().scripted(name, rng)
        return str(rng.choice(best_moves(self.board) if name == "expert" else empty_squares(self.board)) + 1)

    def _mover(self) -> str:
        return self.roles[len(empty_squares(self.board)) % 2 == 0]

    def _hand_over(self) -> None:
        role = self._mover()
        self.tell(role, render(self.board, role.upper(), self.list_empty, self.lines))
        self.turn(role)

    def _over(self, outcomes: dict[str, str]) -> None:
        for role, outcome in outcomes.items():
            self.pay(role, self.payoffs.get(outcome, 0.0))
            position = render(self.board, role.upper(), self.list_empty, self.lines)
            self.tell(role, f"{OUTCOMES.get(outcome, 'The other side made an invalid move.')}\n{position}")
        self.end({role: self._metrics(role, outcome) for role, outcome in outcomes.items()})

    def _metrics(self, role: str, outcome: str | None) -> dict[str, float]:
        kinds = (*self.payoffs, "walkover")
        return {kind: float(kind == outcome) for kind in kinds} | {"moves": float(self.moves[role])}
