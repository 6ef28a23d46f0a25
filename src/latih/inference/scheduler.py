"""The scheduler: which rows of the cache hold what, who gets one next, and whose prefix is shared."""

from collections import deque
from dataclasses import dataclass, field

from latih.inference.cache import KVCache
from latih.inference.requests import Request

_WORTH_WAITING = 8
"""A request waits a step for a prefix that is being computed when it saves at least this many tokens."""


@dataclass(eq=False)
class Row:
    """A row of the cache: the tokens it stands for, and how many of them have their keys and values there."""

    slot: int
    tokens: list[int] = field(default_factory=list)
    computed: int = 0
    request: Request | None = None
    """None: idle, kept because a later prompt may go on from it."""
    used: int = 0


class Scheduler:
    """Rows and the queue for them."""

    def __init__(self, cache: KVCache) -> None:
        self.cache = cache
        self.rows: dict[int, Row] = {}
        self.waiting: deque[Request] = deque()
        self.clock = 0
        self.reused_tokens = 0

    @property
    def active(self) -> list[Row]:
        """Rows that a request runs in, by slot."""
        return sorted((row for row in self.rows.values() if row.request is not None), key=lambda row: row.slot)

    def forget(self) -> None:
        """The weights changed: idle rows are worthless, running ones compute their tokens again.

        Where none runs, the cache shrinks as well: what was played before bounds the rows of what comes next no more.
        """
        self.rows = {slot: row for slot, row in self.rows.items() if row.request and not row.request.cancelled}
        for row in self.rows.values():
            row.computed = 0
        if not self.rows:
            self.cache.clear()

    def clear(self) -> list[Request]:
        """Drop everything; the requests that were inside."""
        requests = [row.request for row in self.active if row.request is not None] + list(self.waiting)
        self.rows.clear()
        self.waiting.clear()
        return requests

    def admit(self) -> None:
        """Give rows to waiting requests, in their order; those that gain by a prefix in the making wait for it."""
        self.clock += 1
        self.waiting = deque(each for each in self.waiting if not each.cancelled)
        for running in self.active:
            if running.request is not None and running.request.cancelled:
                running.request = None
        held_back: list[Request] = []
        known: dict[tuple[int, ...], tuple[Row | None, int]] = {}
        while self.waiting:
            request = self.waiting[0]
            tokens = request.tokens
            key = tuple(tokens)
            source, shared = known.get(key) or self._longest_prefix(tokens)
            known[key] = source, shared
            ready = min(shared, source.computed) if source is not None else 0
            if source is not None and source.request is not None and shared - ready >= _WORTH_WAITING:
                held_back.append(self.waiting.popleft())
                continue
            row = self._place(len(tokens), source, ready)
            if row is None:
                break
            self.waiting.popleft()
            row.tokens, row.computed, row.request, row.used = tokens, ready, request, self.clock
            self.reused_tokens += ready
            known.clear()  # rows moved or grew
        self.waiting.extendleft(reversed(held_back))

    def _longest_prefix(self, tokens: list[int]) -> tuple[Row | None, int]:
        """The row that shares most of `tokens` but the last, whose output is needed; and how much it shares."""
        best: Row | None = None
        most, room = 0, len(tokens) - 1
        for row in self.rows.values():
            have = row.tokens
            if most >= room or len(have) <= most or have[most] != tokens[most] or have[:most] != tokens[:most]:
                continue
            low, high = most, min(len(have), room)
            while low < high:  # the longest common prefix, by halving
                middle = (low + high + 1) // 2
                if have[low:middle] == tokens[low:middle]:
                    low = middle
                else:
                    high = middle - 1
            if low > most:
                best, most = row, low
        return best, most

    def _place(self, tokens: int, source: Row | None, ready: int) -> Row | None:
        """A row for a request, holding the first `ready` tokens of `source`; None where all are taken."""
        if source is not None and source.request is None and ready >= len(source.tokens) - 1:
            return source  # goes on where it stopped
        slot = next((slot for slot in range(self.cache.max_rows) if slot not in self.rows), None)
        if slot is None:
            idle = [row for row in self.rows.values() if row.request is None]
            if not idle:
                return None
            victim = min((row for row in idle if row is not source), key=lambda row: row.used, default=idle[0])
            if victim is source:
                return source
            slot = victim.slot
        if slot >= self.cache.rows:
            # by a quarter at least: every growth copies all that is cached
            self.cache.resize(max(slot + 1, self.cache.rows * 5 // 4), self.cache.capacity)
        if source is not None and ready:
            self.cache.copy(source.slot, slot, ready)
            source.used = self.clock
        self.rows[slot] = Row(slot)
        return self.rows[slot]

    def make_room(self) -> None:
        """Grow the cache to hold every row; what no longer fits is dropped, or waits to start again."""
        running = self.active
        longest = max((len(row.tokens) for row in running), default=0)
        capacity = self.cache.capacity_for(longest)
        fits = self.cache.rows_at(capacity)
        if max(self.rows, default=0) >= fits:
            # move the running rows to the front, in order, so that none is overwritten; idle ones are dropped
            for slot, row in enumerate(running[:fits]):
                if row.slot != slot:
                    self.cache.copy(row.slot, slot, row.computed)
                    row.slot = slot
            for row in reversed(running[fits:]):
                assert row.request is not None
                self.waiting.appendleft(row.request)
            self.rows = {row.slot: row for row in running[:fits]}
        self.cache.resize(max(self.cache.rows, max(self.rows, default=0) + 1), capacity)
