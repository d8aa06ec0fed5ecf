"""The only interface to egglog: reads rule files once, runs on a copy, and turns its failures into our errors.

A `Session` is an e-graph that knows the vocabulary (`rules/terms.egg`) and some families of laws. `run` adds facts,
runs a schedule, returns the extracted terms and says how often each family fired and for how long. `session` lends one
that nobody else uses.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, TypeVar

from combdiff.budget import Budget, OutOfTime
from combdiff.errors import CheckError
from combdiff.records import dataclass
from combdiff.resources import resource
from combdiff.simplify.account import Family
from combdiff.simplify.contraction.egraph_thread import EGraphThread
from combdiff.simplify.contraction.engine import load_engine

if TYPE_CHECKING:
    from egglog.bindings import EGraph, RunSchedule, TermDag

Found = TypeVar("Found")

GRACE = 0.1
"""Seconds after the deadline that an iteration may still take to come to its end."""

IDLE = 4
"""Sessions of one kind that are kept for later, each of some 10 MB."""

FAMILIES = ("terms", "substitute", "index", "algebra", "contract", "conjugate")
"""The families of laws that contract a derivative."""


@dataclass(slots=True)
class Run:
    """What a run brought: the extracted terms, the work of each law family, and whether it came to an end."""

    roots: list[tuple[TermDag, int]] = field(default_factory=list)
    families: dict[str, Family] = field(default_factory=dict)
    finished: bool = False


@contextmanager
def _guarded(what: str) -> Iterator[None]:
    """egglog reports bad rules as errors and its own bugs as panics, which are no `Exception`s."""
    load_engine()
    from egglog.bindings import EggSmolError

    try:
        yield
    except EggSmolError as problem:
        raise CheckError(f"egglog refused {what}: {problem}") from problem
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise CheckError(f"egglog failed inside {what}: {problem}") from problem


LARGEST_MATCH = 100
"""Nodes that one match of a law may make, as the number of nodes is looked at; few laws make more than three."""


class _Size:
    """How large an e-graph may have become: it is counted where its matches might have made too many nodes."""

    def __init__(self, count: Callable[[], int], budget: Budget) -> None:
        self.count = count
        self.budget = budget
        self.matches = 0  # since it was counted

    def exceeded(self, matches: int | None = None) -> bool:
        """Whether it is too large after some more matches; without them, it is counted in any case."""
        self.matches += matches or 0
        if matches is not None and self.budget.largest + LARGEST_MATCH * self.matches <= self.budget.nodes:
            return False
        self.matches = 0
        return self.budget.exceeded(self.count())


class Session:
    """An e-graph with `families` of laws loaded (files of `rules/`, without `.egg`); used by one thread at a time.

    The laws are read in the session's own thread, and its maker goes on: what egglog refuses of them, `wait` raises, or
    the first run. With `watched`, what laws leave for other laws, such as a substitution, is extracted too where
    nothing else can be.
    """

    def __init__(self, families: Sequence[str], watched: bool = False) -> None:
        self._egraph = EGraphThread()
        self._within: EGraph | None = None  # while a run is at work in that thread
        self._rulesets: set[str] = set()
        self._tables: set[str] = set()
        self._schedules: dict[str, RunSchedule] = {}
        self._pairs = "terms" in families
        for family in families:
            text = resource("rules", f"{family}.egg")
            self._rulesets.update(re.findall(r"^\(ruleset (\S+)\)", text, re.MULTILINE))
            if "members" in self._rulesets:
                self._tables.update(re.findall(r"^\((?:function|relation) (\S+) ", text, re.MULTILINE))
            text = text.replace(":unextractable", ":cost 1000") if watched else text
            self._egraph.later(partial(_with_laws, family, text))
        self._egraph.later(_begin)
        self._ready = False

    def wait(self) -> None:
        """Wait until the laws are read: no budget pays for that."""
        if not self._ready:
            self._egraph(lambda _: None)
            self._ready = True

    @property
    def lost(self) -> bool:
        """Whether it is not to be used again: a run was interrupted, and its changes may not all be undone."""
        return self._egraph.lost

    def _do(self, commands: Sequence[str | RunSchedule], budget: Budget | None = None) -> list[object]:
        """The outputs of some commands. Raises OutOfTime if the budget ends before they do."""
        if self._within is not None:
            return _outputs(commands, None, self._within)
        return self._egraph(partial(_outputs, commands, None), _end(budget))

    def run(self, facts: Sequence[str], roots: Sequence[str], *passes: str, budget: Budget | None = None) -> Run:
        """Add `facts`, run the laws until nothing changes, extract `roots`; the session itself stays as it was.

        A pass is a row of rulesets, each run once, or with a star as long as it changes something: "index* meet". A
        later pass is run when those before it bring nothing more; then the first has its turn again. The budget is
        looked at between any two iterations; where it is spent, the run has no roots.
        """
        budget = budget or Budget()
        families: dict[str, Family] = {}
        found = None
        with suppress(OutOfTime), self._unless_lost():
            found = self._egraph(partial(self._run, facts, roots, passes, budget, families), _end(budget))
            self._egraph.later(_begin_again)
        # a copy: whoever was not waited for may still be writing
        return Run(found or [], dict(families), found is not None)

    def _run(
        self,
        facts: Sequence[str],
        roots: Sequence[str],
        passes: Sequence[str],
        budget: Budget,
        families: dict[str, Family],
        egraph: EGraph,
    ) -> list[tuple[TermDag, int]] | None:
        """What `run` does, all in the thread of the e-graph: a word between threads costs more than a small law."""
        self._within = egraph
        found = None
        try:
            self._do(facts)
            if not budget.exceeded(self._size()) and self._saturated(passes, budget, families):
                found = self._extracted(roots)
        finally:
            self._within = None
        return found

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Inside, the e-graph may be changed; afterwards it is as it was, or the session is lost."""
        with self._unless_lost():
            self._do(["(push)"])
            yield
            self._do(["(pop)"])

    @contextmanager
    def _unless_lost(self) -> Iterator[None]:
        """Inside, the e-graph is changed and changed back; if that is broken off, the session is lost."""
        unharmed = False
        try:
            with _guarded("a derivation"):
                yield
            unharmed = True
        finally:
            if not unharmed:
                self._egraph.lost = True

    def explore(
        self,
        facts: Sequence[str],
        once: str,
        rounds: int,
        read: Callable[[EGraph], Found],
        budget: Budget | None = None,
        nodes: int = 10_000,
    ) -> tuple[Found | None, dict[str, Family]]:
        """Add `facts`, run a pass (as in `run`) at most `rounds` times, and `read` the e-graph; it stays as it was.

        Rounds end early when nothing changes any more, when there are more than `nodes`, or when the budget is spent;
        nothing is found if a round does not come to its end within the budget.
        """
        budget = budget or Budget()
        families: dict[str, Family] = {}
        found: Found | None = None
        try:
            with self._aside():
                self._do(facts, budget)
                updated = True
                while updated and rounds > 0 and not budget.over() and not budget.exceeded(self._size()):
                    if self._size() > nodes:
                        break
                    rounds -= 1
                    updated = False
                    for step in once.split():
                        updated |= self._passed(step, families, budget)
                found = self._egraph(read)
        except OutOfTime:
            budget.spent = True
        return found, families

    def _saturated(self, passes: Sequence[str], budget: Budget, families: dict[str, Family]) -> bool:
        """Whether the passes came to their end within the budget, and while a caller waits for that."""
        turn = 0
        size = _Size(self._size, budget)
        idle: set[str] = set()  # families that change nothing until another one does
        while turn < len(passes):
            updated = False
            for step in passes[turn].split():
                family = step.rstrip("*")
                again = family not in idle
                while again:
                    if budget.over() or self._egraph.left:
                        return False
                    matches = families[family].matches if family in families else 0
                    grown = self._ran(family, families, budget)
                    if grown and size.exceeded(families[family].matches - matches):
                        return False
                    updated |= grown
                    again = grown and step.endswith("*")
                    idle = set() if grown else {*idle, family}
            turn = 0 if updated else turn + 1
        return not size.exceeded()

    def _ran(self, family: str, families: dict[str, Family], budget: Budget | None = None) -> bool:
        """Whether one run of a family of laws changed anything."""
        from egglog.bindings import RunScheduleOutput

        start = time.perf_counter()
        account = families.setdefault(family, Family())
        (output,) = self._do([self._schedule(family)], budget)
        assert isinstance(output, RunScheduleOutput), "a report"
        # the laws come last; what is before them only looks at terms
        last = output.report.iterations[-1].rule_set_report
        account.matches += sum(report.num_matches for rule in last.rule_reports.values() for report in rule)
        if not last.changed and f"done-{family}" in self._rulesets:
            self._do([self._schedule(f"done-{family}")], budget)
        account.seconds += time.perf_counter() - start
        return bool(last.changed)

    def _schedule(self, family: str) -> RunSchedule:
        """One run of a family, after what finds its terms and chooses among them."""
        found = self._schedules.get(family)
        if found is None:
            before = [name for name in ("members", f"choose-{family}") if name in self._rulesets]
            found = self._schedules[family] = _schedule(before if len(before) > 1 else (), family)
        return found

    def _passed(self, step: str, families: dict[str, Family], budget: Budget | None = None) -> bool:
        """Whether a step of a pass changed anything: a family that is run once, or with a star as long as it does."""
        updated = self._ran(step.rstrip("*"), families, budget)
        if updated and step.endswith("*"):
            while self._ran(step.rstrip("*"), families, budget):
                pass
        return updated

    def _size(self) -> int:
        """How many nodes the e-graph has; what laws keep in mind of them is not counted."""
        from egglog.bindings import PrintAllFunctionsSize

        (output,) = self._do(["(print-size)"])
        assert isinstance(output, PrintAllFunctionsSize), "a size for each table"
        return sum(n for name, n in output.sizes if name not in self._tables)

    def _extracted(self, roots: Sequence[str], budget: Budget | None = None) -> list[tuple[TermDag, int]]:
        from egglog.bindings import ExtractBest

        if not self._pairs or len(roots) < 2:
            outputs = self._do([f"(extract {root})" for root in roots], budget)
            return [(o.termdag, o.term) for o in outputs if isinstance(o, ExtractBest)]
        # all at once: each extraction looks at the whole e-graph
        *firsts, last = roots
        (found,) = self._do([f"(extract {' '.join(f'(Pair {r}' for r in firsts)} {last}{')' * len(firsts)})"], budget)
        assert isinstance(found, ExtractBest), "a term"
        return list(_apart(found.termdag, found.term, len(roots)))

    def steps(
        self, facts: Sequence[str], root: str, settling: Sequence[str], later: Sequence[str]
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


def _apart(dag: TermDag, node: int, count: int) -> Iterator[tuple[TermDag, int]]:
    """So many terms, out of pairs that are nested to the right."""
    from egglog.bindings import TermApp

    for _ in range(count - 1):
        pair = dag.get(node)
        assert isinstance(pair, TermApp), "a pair"
        first, node = pair.args
        yield dag, first
    yield dag, node


def _end(budget: Budget | None) -> float:
    """When the caller of an e-graph goes on without it."""
    return inf if budget is None else budget.deadline + GRACE


def _begin(egraph: EGraph) -> None:
    """Copy the e-graph, which is to be changed."""
    _outputs(["(push)"], None, egraph)


def _begin_again(egraph: EGraph) -> None:
    """Take the e-graph back to what it was; copying is a tenth of a run, and nobody waits for it."""
    _outputs(["(pop)", "(push)"], None, egraph)


def _schedule(before: Sequence[str], family: str) -> RunSchedule:
    """One run of a family after others have come to their end; its text, parsed, would take twice the time."""
    load_engine()
    from egglog.bindings import PanicSpan, Run, RunConfig, RunSchedule, Saturate
    from egglog.bindings import Sequence as Row

    span = PanicSpan()
    first = [Saturate(span, Run(span, RunConfig(name, None))) for name in before]
    return RunSchedule(Row(span, [*first, Run(span, RunConfig(family, None))]))


def _outputs(commands: Sequence[str | RunSchedule], name: str | None, egraph: EGraph) -> list[object]:
    """What the commands put out, each parsed alone: egglog keeps their whole text for every node in it."""
    outputs: list[object] = []
    for command in commands:
        parsed = egraph.parse_program(command, name) if isinstance(command, str) else [command]
        for one in parsed:
            outputs += egraph.run_program(one)
    return outputs


def _with_laws(family: str, text: str, egraph: EGraph) -> None:
    with _guarded(f"rules/{family}.egg"):
        _outputs(re.split(r"\n(?=\()", text), f"{family}.egg", egraph)


_idle: dict[tuple[str, ...], deque[Session]] = {}


def prepare(families: tuple[str, ...]) -> None:
    """Have a session read these families of laws, if none is idle, while its caller does something else."""
    idle = _idle.setdefault(families, deque(maxlen=IDLE))
    if not idle:
        idle.append(Session(families))


@contextmanager
def session(families: tuple[str, ...]) -> Iterator[Session]:
    """A session for these families that nobody else uses; laws are read again only where none is idle.

    >>> with session(("terms",)) as one, session(("terms",)) as other:
    ...     one is other
    False
    >>> with session(("terms",)) as again:
    ...     again is one
    True
    """
    idle = _idle.setdefault(families, deque(maxlen=IDLE))
    try:
        found = idle.pop()
    except IndexError:
        found = Session(families)
    found.wait()
    yield found
    if not found.lost:
        idle.append(found)
