"""Whether clues leave one answer, by CP-SAT."""

from collections.abc import Collection, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from latih.core import ConfigError
from latih.core.pip import extra
from latih.envs.temporal_clue.clues import Clue
from latih.envs.temporal_clue.world import At, Atom, Is, Size, World

PARAMETERS = {"num_workers": 1, "random_seed": 0, "cp_model_presolve": False, "linearization_level": 0}
"""Of CP-SAT. The questions are many and easy: what prepares a search costs more than it saves."""


def require() -> None:
    """Raises ConfigError where OR-tools are not installed."""
    if find_spec("ortools") is None:
        raise ConfigError(
            f"temporal_clue makes its puzzles with OR-tools: {extra('puzzles')}, or name files of puzzles, which need "
            "none, in data.train and data.eval"
        )


class Solver:
    """All worlds of a size as a model of booleans, and questions about them.

    Its answers are yes and no, facts about the clues: they depend neither on time nor on how the search went, so
    that a puzzle made by asking it is the same with every version and number of threads. The worlds and cores that
    it meets on the way only save it from searching again.
    """

    def __init__(self, size: Size, clues: Sequence[Clue], answers: Sequence[Atom]) -> None:
        self.size = size
        self.clues = clues
        require()
        self.cp: Any = import_module("ortools.sat.python.cp_model")  # takes a second, so not above
        self.model = self.cp.CpModel()
        self.solver = self.cp.CpSolver()
        for name, value in PARAMETERS.items():
            setattr(self.solver.parameters, name, value)
        self._literals: dict[Atom, Any] = {}
        self._described: set[tuple[str, int]] = set()
        self._rules()
        self.clause([~self.literal(each) for each in answers])
        self.said = []
        for clue in clues:
            said = self.model.new_bool_var("")
            self.said.append(said)
            for clause in clue.clauses:
                self.clause([~said, *(self.literal(atom) if so else ~self.literal(atom) for atom, so in clause)])
        self.number = {said.index: i for i, said in enumerate(self.said)}
        self.worlds: list[set[int]] = []
        """Of each other answer's world that was met, the clues that are false in it."""
        self.cores: list[set[int]] = []
        """Sets of clues that leave one answer."""

    def unique(self, clues: Collection[int]) -> bool:
        """Whether no world with another answer satisfies the clues of these numbers."""
        chosen = set(clues)
        if any(not false & chosen for false in self.worlds):
            return False
        if any(core <= chosen for core in self.cores):
            return True
        self.model.clear_assumptions()
        self.model.add_assumptions([said if i in chosen else ~said for i, said in enumerate(self.said)])
        status = self.solver.solve(self.model)
        if status in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            world = self._world()
            self.worlds.append({i for i, clue in enumerate(self.clues) if not clue.holds(world)})
            return False
        if status != self.cp.INFEASIBLE:
            raise RuntimeError(f"CP-SAT gave up: {self.solver.status_name(status)}")
        core = {self.number.get(each, -1) for each in self.solver.sufficient_assumptions_for_infeasibility()} & chosen
        self.cores.append(core or chosen)
        return True

    def clause(self, literals: Sequence[Any]) -> None:
        """One of the literals holds."""
        self.model.add_bool_or(literals)

    def literal(self, atom: Atom) -> Any:
        """The variable of an atom; a description's are made when first asked for."""
        if isinstance(atom, At) and atom.of in ("motive", "murderer", "murder weapon"):
            self._describe(atom.of, atom.which)
        return self._literals[atom]

    def _one_of(self, atoms: Sequence[Atom]) -> None:
        for atom in atoms:
            self._literals[atom] = self.model.new_bool_var("")
        self.model.add_exactly_one([self._literals[atom] for atom in atoms])

    def _rules(self) -> None:
        size, at, rooms, times = self.size, self._literals, range(self.size.rooms), range(self.size.times)
        people = [("suspect", index) for index in range(size.suspects)] + [("victim", 0)]
        things = [("weapon", index) for index in range(size.weapons)]
        for subject in people + things:
            for time in times:
                self._one_of([At(*subject, time, room) for room in rooms])
        for subject in people + things:
            for time in times[1:]:
                for room in rooms:
                    before = [at[At(*subject, time - 1, each)] for each in size.reach(room)]
                    self.clause([~at[At(*subject, time, room)], *before])
        for time in times[1:]:
            for start in rooms:
                for end in size.reach(start)[1:]:
                    self._carry(things, time, start, end)
        for suspect in range(size.suspects):
            self._one_of([Is("motive", suspect, motive) for motive in range(size.suspects)])
        for motive in range(size.suspects):
            self.model.add_exactly_one([at[Is("motive", suspect, motive)] for suspect in range(size.suspects)])
        for of, count in (("who", size.suspects), ("weapon", size.weapons), ("room", size.rooms), ("time", size.times)):
            self._one_of([Is(of, 0, value) for value in range(count)])
        self._one_of([Is("why", 0, motive) for motive in range(size.suspects)])
        for suspect in range(size.suspects):
            for motive in range(size.suspects):
                who, why = at[Is("who", 0, suspect)], at[Is("why", 0, motive)]
                self.clause([~who, ~why, at[Is("motive", suspect, motive)]])
        self._murder()

    def _carry(self, things: Sequence[tuple[str, int]], time: int, start: int, end: int) -> None:
        """A weapon goes from a room to the next only along with a suspect."""
        at, carriers = self._literals, []
        for suspect in range(self.size.suspects):
            goes = self.model.new_bool_var("")
            carriers.append(goes)
            for when, room in ((time - 1, start), (time, end)):
                self.clause([~goes, at[At("suspect", suspect, when, room)]])
        for thing in things:
            self.clause([~at[At(*thing, time - 1, start)], ~at[At(*thing, time, end)], *carriers])

    def _murder(self) -> None:
        """Murderer, victim and weapon in one room, no other suspect there, and the body stays."""
        size, at = self.size, self._literals
        for time in range(size.times):
            for room in range(size.rooms):
                scene = [~at[Is("time", 0, time)], ~at[Is("room", 0, room)]]
                for later in range(time, size.times):
                    self.clause([*scene, at[At("victim", 0, later, room)]])
                for weapon in range(size.weapons):
                    self.clause([*scene, ~at[Is("weapon", 0, weapon)], at[At("weapon", weapon, time, room)]])
                for suspect in range(size.suspects):
                    there, did = at[At("suspect", suspect, time, room)], at[Is("who", 0, suspect)]
                    self.clause([*scene, ~did, there])
                    self.clause([*scene, did, ~there])

    def _describe(self, of: str, index: int) -> None:
        if (of, index) in self._described:
            return
        self._described.add((of, index))
        kind, count = ("weapon", self.size.weapons) if of == "murder weapon" else ("suspect", self.size.suspects)
        for time in range(self.size.times):
            self._one_of([At(of, index, time, room) for room in range(self.size.rooms)])
        for which in range(count):
            fact = {"motive": Is("motive", which, index), "murderer": Is("who", 0, which)}
            given = self._literals[fact.get(of, Is("weapon", 0, which))]
            for time in range(self.size.times):
                for room in range(self.size.rooms):
                    # One direction is enough: both are in exactly one room.
                    here = self._literals[At(of, index, time, room)]
                    self.clause([~given, ~here, self._literals[At(kind, which, time, room)]])

    def _world(self) -> World:
        size, times = self.size, range(self.size.times)

        def path(of: str, index: int) -> list[int]:
            return [self._true([At(of, index, time, room) for room in range(size.rooms)]) for time in times]

        facts = {
            of: [Is(of, 0, value) for value in range(n)]
            for of, n in (("who", size.suspects), ("weapon", size.weapons), ("time", size.times))
        }
        return World(
            [path("suspect", index) for index in range(size.suspects)],
            [path("weapon", index) for index in range(size.weapons)],
            path("victim", 0),
            [self._true([Is("motive", s, value) for value in range(size.suspects)]) for s in range(size.suspects)],
            *(self._true(facts[of]) for of in ("who", "weapon", "time")),
        )

    def _true(self, atoms: Sequence[Atom]) -> int:
        return next(i for i, atom in enumerate(atoms) if self.solver.boolean_value(self._literals[atom]))
