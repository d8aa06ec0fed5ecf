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
    """What a run brought: the extracted terms, and the work of each law family."""

    roots: list[tuple[TermDag, int]] = field(default_factory=list)
    families: dict[str, Family] = field(default_factory=dict)


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

    def run(
        self, facts: str, roots: Sequence[str], schedule: str, seconds: float = 60.0, later: Sequence[str] = ()
    ) -> Run:
        """Add `facts`, saturate `schedule`, extract `roots`; the session itself stays as it was.

        A schedule of `later` is run once when those before it bring nothing more; then the first has its turn again.

        Raises BudgetError if the terms are nested too deep, or when `seconds` are over.
        """
        if _nesting(facts) > DEEPEST:
            raise BudgetError(
                f"a term is nested more than {DEEPEST} levels deep", remedy="name parts of it: a = …, b = f(a), …"
            )
        with _guarded("a derivation"):
            self._do("(push)")
            try:
                return self._run(facts, roots, (schedule, *later), seconds)
            finally:
                self._do("(pop)")

    def explore(
        self, facts: str, schedule: str, rounds: int, read: Callable[[EGraph], Found], seconds: float = 60.0
    ) -> tuple[Found, dict[str, Family]]:
        """Add `facts`, run `schedule` at most `rounds` times, and `read` the e-graph; it stays as it was.

        Rounds end early when nothing changes any more, or when `seconds` are over.
        """
        from egglog.bindings import RunScheduleOutput

        deadline = time.perf_counter() + seconds
        families: dict[str, Family] = {}
        with _guarded("a derivation"):
            self._do("(push)")
            try:
                self._do(facts)
                updated = True
                while updated and rounds > 0 and time.perf_counter() < deadline:
                    updated = False
                    rounds -= 1
                    for output in self._do(f"(run-schedule {schedule})"):
                        if isinstance(output, RunScheduleOutput):
                            updated |= output.report.updated
                            _account(families, output.report)
                return read(self.egraph), families
            finally:
                self._do("(pop)")

    def _run(self, facts: str, roots: Sequence[str], schedules: Sequence[str], seconds: float) -> Run:
        from egglog.bindings import RunScheduleOutput

        deadline = time.perf_counter() + seconds
        result = Run()
        self._do(facts)
        turn = 0
        while turn < len(schedules):
            if time.perf_counter() > deadline:
                raise BudgetError("simplification takes longer than its budget allows", remedy="allow more seconds")
            updated = False
            for output in self._do(f"(run-schedule {schedules[turn]})"):
                if isinstance(output, RunScheduleOutput):
                    updated |= output.report.updated
                    _account(result.families, output.report)
            turn = 0 if updated else turn + 1
        result.roots = self._extracted(roots)
        return result

    def _extracted(self, roots: Sequence[str]) -> list[tuple[TermDag, int]]:
        from egglog.bindings import ExtractBest

        outputs = self._do("\n".join(f"(extract {root})" for root in roots))
        return [(output.termdag, output.term) for output in outputs if isinstance(output, ExtractBest)]

    def steps(
        self, facts: str, root: str, settling: Sequence[str], later: Sequence[str]
    ) -> Generator[tuple[str, TermDag, int]]:
        """The family that changed something and the term after it, one after the other; in the order of `run`."""
        from egglog.bindings import RunScheduleOutput

        with _guarded("a derivation"):
            self._do("(push)")
            try:
                self._do(facts)
                turns = [
                    [(name, f"(saturate (run {name}))") for name in settling],
                    *([(n, f"(run {n})")] for n in later),
                ]
                turn = 0
                while turn < len(turns):
                    updated = False
                    for name, schedule in turns[turn]:
                        reports = self._do(f"(run-schedule {schedule})")
                        if any(isinstance(r, RunScheduleOutput) and r.report.updated for r in reports):
                            updated = True
                            yield name, *self._extracted([root])[0]
                    turn = 0 if updated else turn + 1
            finally:
                self._do("(pop)")


_RULESET = re.compile(r":ruleset (\w+)")


def _account(families: dict[str, Family], report: object) -> None:
    matches: dict[str, int] = getattr(report, "num_matches_per_rule", {})
    seconds = getattr(report, "search_and_apply_time_per_rule", {})
    for rule, count in matches.items():
        found = _RULESET.search(rule)
        family = families.setdefault(found.group(1) if found else "laws", Family())
        family.matches += count
        took = seconds.get(rule)
        family.seconds += took.total_seconds() if took is not None else 0.0


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
