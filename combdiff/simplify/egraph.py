"""The one door to egglog: rule files are read once, every run works on a copy, and no egglog failure gets out raw.

A `Session` is an e-graph that knows the vocabulary (`rules/terms.egg`) and some families of laws. `run` adds facts,
runs a schedule, returns the extracted terms and says how often each family fired and for how long.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from combdiff.errors import BudgetError, CheckError
from combdiff.resources import resource
from combdiff.simplify.budget import Budget

if TYPE_CHECKING:
    from egglog.bindings import EGraph, TermDag

Found = TypeVar("Found")

DEEPEST = 4_000
"""egglog 13.2 overflows its stack on terms nested some 10,000 deep."""


@dataclass(slots=True)
class Family:
    """How often the laws of one family fired, and the seconds they took."""

    matches: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Run:
    """What a run brought: the extracted terms, the work of each law family, and whether it came to an end."""

    roots: list[tuple[TermDag, int]] = field(default_factory=list)
    families: dict[str, Family] = field(default_factory=dict)
    finished: bool = False


@contextmanager
def _guarded(what: str) -> Iterator[None]:
    """egglog reports bad rules as errors and its own bugs as panics, which are no `Exception`s."""
    from egglog.bindings import EggSmolError

    try:
        yield
    except EggSmolError as problem:
        raise CheckError(f"egglog refused {what}: {problem}") from problem
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise CheckError(f"egglog failed inside {what}: {problem}") from problem


class Session:
    """An e-graph with `families` of laws loaded (files of `rules/`, without `.egg`).

    With `watched`, what laws leave for other laws, such as a substitution, is extracted too where nothing else can be.
    """

    def __init__(self, families: Sequence[str], watched: bool = False) -> None:
        from egglog.bindings import EGraph

        self.egraph: EGraph = EGraph()
        for family in families:
            text = resource("rules", f"{family}.egg")
            with _guarded(f"rules/{family}.egg"):
                self._do(text.replace(":unextractable", ":cost 1000") if watched else text, f"{family}.egg")

    def _do(self, text: str, name: str | None = None) -> list[object]:
        outputs: list[object] = []
        for command in self.egraph.parse_program(text, name):
            outputs += self.egraph.run_program(command)
        return outputs

    def run(self, facts: str, roots: Sequence[str], *passes: str, budget: Budget | None = None) -> Run:
        """Add `facts`, run the laws until nothing changes, extract `roots`; the session itself stays as it was.

        A pass is a row of rulesets, each run once, or with a star as long as it changes something: "index* meet". A
        later pass is run when those before it bring nothing more; then the first has its turn again. The budget is
        looked at between any two iterations; where it is spent, the run has no roots.

        Raises BudgetError if the terms are nested too deep.
        """
        if _nesting(facts) > DEEPEST:
            raise BudgetError(
                f"a term is nested more than {DEEPEST} levels deep", remedy="name parts of it: a = …, b = f(a), …"
            )
        result = Run()
        with self._aside():
            self._do(facts)
            result.finished = self._saturated(passes, budget or Budget(), result)
            if result.finished:
                result.roots = self._extracted(roots)
        return result

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Inside, the e-graph may be changed; afterwards it is as it was, or is not used again."""
        unharmed = False
        try:
            with _guarded("a derivation"):
                self._do("(push)")
                yield
                self._do("(pop)")
            unharmed = True
        finally:
            if not unharmed:
                # an interruption may fall between any two commands, so nobody knows what was taken back
                session.cache_clear()

    def explore(
        self,
        facts: str,
        once: str,
        rounds: int,
        read: Callable[[EGraph], Found],
        budget: Budget | None = None,
        nodes: int = 10_000,
    ) -> tuple[Found, dict[str, Family]]:
        """Add `facts`, run a pass (as in `run`) at most `rounds` times, and `read` the e-graph; it stays as it was.

        Rounds end early when nothing changes any more, when there are more than `nodes`, or when the budget is spent.
        """
        budget = budget or Budget()
        families: dict[str, Family] = {}
        with self._aside():
            self._do(facts)
            updated = True
            while updated and rounds > 0 and not budget.over() and not budget.exceeded(self._size()):
                if self._size() > nodes:
                    break
                rounds -= 1
                updated = False
                for step in once.split():
                    updated |= self._passed(step, families)
            found = read(self.egraph)
        return found, families

    def _saturated(self, passes: Sequence[str], budget: Budget, result: Run) -> bool:
        """Whether the passes came to their end within the budget."""
        turn = 0
        grown = True
        while turn < len(passes):
            updated = False
            for step in passes[turn].split():
                again = True
                while again:
                    if budget.over() or (grown and budget.exceeded(self._size())):
                        return False
                    grown = self._ran(step.rstrip("*"), result.families)
                    updated |= grown
                    again = grown and step.endswith("*")
            turn = 0 if updated else turn + 1
        return True

    def _ran(self, family: str, families: dict[str, Family]) -> bool:
        """Whether one run of a family of laws changed anything."""
        from egglog.bindings import RunScheduleOutput

        start = time.perf_counter()
        account = families.setdefault(family, Family())
        updated = False
        for output in self._do(f"(run-schedule (run {family}))"):
            if isinstance(output, RunScheduleOutput):
                updated |= output.report.updated
                account.matches += sum(output.report.num_matches_per_rule.values())
        account.seconds += time.perf_counter() - start
        return updated

    def _passed(self, step: str, families: dict[str, Family]) -> bool:
        """Whether a step of a pass changed anything: a family that is run once, or with a star as long as it does."""
        updated = self._ran(step.rstrip("*"), families)
        if updated and step.endswith("*"):
            while self._ran(step.rstrip("*"), families):
                pass
        return updated

    def _size(self) -> int:
        """How many nodes the e-graph has."""
        from egglog.bindings import PrintAllFunctionsSize

        outputs = self._do("(print-size)")
        return sum(n for o in outputs if isinstance(o, PrintAllFunctionsSize) for _, n in o.sizes)

    def _extracted(self, roots: Sequence[str]) -> list[tuple[TermDag, int]]:
        from egglog.bindings import ExtractBest

        outputs = self._do("\n".join(f"(extract {root})" for root in roots))
        return [(o.termdag, o.term) for o in outputs if isinstance(o, ExtractBest)]

    def steps(
        self, facts: str, root: str, settling: Sequence[str], later: Sequence[str]
    ) -> Generator[tuple[str, TermDag, int]]:
        """The family that changed something and the term after it, one after the other; in the order of `run`."""
        with self._aside():
            self._do(facts)
            turns = [[f"{name}*" for name in settling], *([name] for name in later)]
            turn = 0
            while turn < len(turns):
                updated = False
                for step in turns[turn]:
                    if self._passed(step, {}):
                        updated = True
                        yield step.rstrip("*"), *self._extracted([root])[0]
                turn = 0 if updated else turn + 1


def _nesting(text: str) -> int:
    deepest = depth = 0
    for part in re.findall(r"[()]", text):
        depth += 1 if part == "(" else -1
        deepest = max(deepest, depth)
    return deepest


@cache
def session(families: tuple[str, ...]) -> Session:
    """The session for these families, loaded once in a process."""
    return Session(families)
