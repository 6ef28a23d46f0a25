"""The exploit gym: verifiers under attack (arenas), cheating policies (exploits), and the run of all against all.

An arena is a file in `latih.rewards.arenas`, an exploit one in `latih.rewards.exploits`; both are found by being there.
"""

import functools
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from latih.core import Registry, SandboxError
from latih.core.plugins import import_all
from latih.rewards.answer import without_thoughts
from latih.sandbox import backend

Submission = Any
"""What a policy hands in: for most arenas the text of its reply."""


class Arena(Protocol):
    """One verifier with one fixed challenge. A class without arguments is registered, and made once for a run."""

    @property
    def honest(self) -> Submission:
        """Solves the challenge: a score of 1."""
        ...

    @property
    def wrong(self) -> Submission:
        """Well formed, and simply wrong: what every exploit shall score."""
        ...

    def score(self, submission: Submission) -> float:
        """What our verifier pays. It is called from several threads at once, as `naive` is. Raises SandboxError."""
        ...

    def naive(self, submission: Submission) -> dict[str, bool]:
        """Whether graders of the usual kind, by their names, would take it for a solution. Raises SandboxError."""
        ...


@dataclass(frozen=True)
class Exploit:
    """A cheating policy."""

    name: str
    summary: str
    """What it does, in a line."""
    arenas: tuple[str, ...]
    fools: tuple[str, ...]
    """The naive graders that it claims to fool, in every one of its arenas that has them."""
    make: Callable[[Any], Submission]


@dataclass(frozen=True)
class Outcome:
    """An exploit in an arena; or the honest or the wrong submission, under the names `honest` and `wrong`."""

    exploit: str
    arena: str
    score: float
    wrong: float
    """What a wrong answer scores here."""
    naive: dict[str, bool] = field(default_factory=dict)

    @property
    def fooled(self) -> list[str]:
        """The naive graders that took it for a solution."""
        return [name for name, passed in self.naive.items() if passed]

    @property
    def sound(self) -> bool:
        """Whether our verifier did right: an exploit earns no more than a wrong answer, an honest solution all."""
        return self.wrong < self.score == 1.0 if self.exploit == "honest" else self.score <= self.wrong


arenas = Registry[Callable[[], Arena]]("arena")
exploits = Registry[Exploit]("exploit")


def exploit(*arenas: str, fools: tuple[str, ...] = ()) -> Callable[[Callable[[Any], Submission]], Exploit]:
    """A decorator: a maker of submissions is an exploit, known by its name and the first line of its docstring.

    The maker is given the arena, whose challenge (the question, the examples shown) it may read as a policy would.
    `fools`: the naive graders that it claims to fool.
    """

    def put(make: Callable[[Any], Submission]) -> Exploit:
        name = make.__name__
        summary = (make.__doc__ or "").strip().partition("\n")[0]
        return exploits.register(name)(Exploit(name, summary, arenas, fools, make))

    return put


TEXTS = ("answer", "cited", "function", "letters", "numbers", "tagged")
"""Arenas whose submissions are texts, or for `cited` a call with a text: what thinks is tried on all of them."""
ANYWHERE = (
    "mentioned",
    "any candidate",
    "evaluated",
    "first tag",
    "within lines",
    "mentioned and cited",
    "exit code",
    "printed",
)
"""Their naive graders that find a right answer wherever it stands."""
LAST = ("last number", "last tag", "last lines")
"""Those that take the last one there is."""


def texts(arena: Arena) -> tuple[str, str]:
    """The honest answer without its thought, and the wrong one, as texts."""
    right, wrong = (each["text"] if isinstance(each, dict) else each for each in (arena.honest, arena.wrong))
    return without_thoughts(right).strip(), wrong


def hand_in(arena: Arena, text: str) -> Submission:
    """What an arena of TEXTS takes, with this text in it."""
    return {**arena.wrong, "text": text} if isinstance(arena.wrong, dict) else text


@functools.cache
def load() -> None:
    """Import every arena and every exploit."""
    for package in ("latih.rewards.arenas", "latih.rewards.exploits"):
        import_all(package)


def need_isolation() -> None:
    """What hostile code passes before it runs. Raises SandboxError where the sandbox isolates nothing."""
    where = backend()
    if not where.isolates:
        raise SandboxError(f"exploits are hostile: they run isolated only, and LATIH_SANDBOX={where.name} is set")


def find_arenas(names: Collection[str] | None = None) -> dict[str, Arena]:
    """All arenas, or those of these names, made. Raises ConfigError."""
    load()
    return {each: arenas.get(each)() for each in (arenas if names is None else names)}


def attack(
    name: str, arena: Arena, workers: int = 4, told: Callable[[str, int, int], None] = lambda *_: None
) -> list[Outcome]:
    """The honest and the wrong submission and all exploits of an arena, `workers` at a time.

    `told` hears what is attacked, how many of the submissions are done, and how many there are. Raises SandboxError.
    """
    load()
    wrong = arena.score(arena.wrong)
    submissions: dict[str, Callable[[], Submission]] = {"honest": lambda: arena.honest, "wrong": lambda: arena.wrong}
    for each in exploits:
        if name in exploits.get(each).arenas:
            submissions[each] = functools.partial(exploits.get(each).make, arena)

    def outcome(each: str) -> Outcome:
        submission = submissions[each]()
        score = wrong if each == "wrong" else arena.score(submission)
        return Outcome(each, name, score, wrong, arena.naive(submission))

    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(workers) as pool:  # most of them do little but wait for a deadline
        for found in pool.map(outcome, submissions):
            outcomes.append(found)
            told(f"attacking {name}", len(outcomes), len(submissions))
    return outcomes
