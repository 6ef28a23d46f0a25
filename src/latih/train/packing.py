"""Packing: rows laid into micro-batches by token budget, a prefix that several rows share being laid once.

The games of a group begin alike, and so do the prompts of one environment; the hidden states of a shared prefix are the
same for all that continue it, so they are computed once and the gradients of the continuations add up in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from latih.train.batch import Row

SHORTEST_SHARED = 3
"""Tokens. Sharing less costs more in small products than it saves."""


def shared_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens are the same."""
    if a[: len(b)] == b:
        return len(b)
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def pack(rows: Iterable[Row], micro_batch_tokens: int) -> list[list[Row]]:
    """Rows into micro-batches that take at most `micro_batch_tokens` tokens once shared prefixes are laid once.

    Rows are sorted by their tokens, so that those with the longest shared prefixes meet; the order in which they come
    does not matter. A row longer than the budget gets a micro-batch of its own.
    """
    parts: list[list[Row]] = []
    room = 0
    for row in sorted(rows, key=lambda row: (row.ids, row.targets, row.trajectory)):
        size = len(row.ids)
        if parts:
            # what is shared but too short to be a segment of its own is laid again: less than SHORTEST_SHARED tokens
            new = size - max(0, shared_prefix(parts[-1][-1].ids, row.ids) - SHORTEST_SHARED + 1)
            if new <= room:
                parts[-1].append(row)
                room -= new
                continue
        parts.append([row])
        room = micro_batch_tokens - size
    return parts


@dataclass
class Layout:
    """The tokens of one micro-batch, in segments that may continue earlier ones."""

    ids: list[int] = field(default_factory=list)
    """[N]"""
    positions: list[int] = field(default_factory=list)
    """Of each token in its row. [N]"""
    lengths: list[int] = field(default_factory=list)
    """Of each segment."""
    parents: list[int] = field(default_factory=list)
    """The segment that each segment continues, or -1."""
    at: list[list[int]] = field(default_factory=list)
    """Of each row: where in `ids` the hidden states lie that predict its targets. [rows][M]"""

    def add(self, ids: Sequence[int], start: int, parent: int) -> int:
        """Lay a segment that begins at position `start` of its rows; its number."""
        self.ids += ids
        self.positions += range(start, start + len(ids))
        self.lengths.append(len(ids))
        self.parents.append(parent)
        return len(self.lengths) - 1


def lay_out(rows: Sequence[Row]) -> Layout:
    """Lay the rows of one micro-batch, sorted as `pack` leaves them, as a radix tree of segments."""
    layout = Layout(at=[[] for _ in rows])
    # (first row, last row + 1, the segment they continue, the packed index of each token they have so far)
    groups: list[tuple[int, int, int, list[int]]] = [(0, len(rows), -1, [])] if rows else []
    while groups:
        low, high, parent, places = groups.pop()
        first, last = rows[low].ids, rows[high - 1].ids
        common = shared_prefix(first, last)
        alike = common == len(last)  # and so, being sorted, are all between
        if alike or common - len(places) >= SHORTEST_SHARED:
            if common > len(places):
                start = len(layout.ids)
                parent = layout.add(first[len(places) : common], len(places), parent)
                places = [*places, *range(start, len(layout.ids))]
            if alike:
                for i in range(low, high):
                    layout.at[i] = [places[at] for at in rows[i].at]
                continue
        branches = [rows[i].ids[common] if len(rows[i].ids) > common else -1 for i in range(low, high)]
        edges = [i for i in range(len(branches)) if i == 0 or branches[i] != branches[i - 1]]
        for begin, end in zip(edges, [*edges[1:], len(branches)], strict=True):
            groups.append((low + begin, low + end, parent, places))
    return layout
