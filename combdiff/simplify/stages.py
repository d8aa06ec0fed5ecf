"""Simplification of a derivative: contract, merge like terms, choose what keeps a name. Each stage is checked.

    a. contract    rules/*.egg: Σ and δ meet, conj moves to the leaves         simplify/contraction/contract.py
    b. merge       canonical names under symmetry, like terms gathered         canon/canonical.py
    c. choose      which values keep a name, what indices are called           simplify/choose.py

After each stage its result is compared with its input, by the argument `gate` (`gate/gate.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from math import inf
from time import perf_counter

from combdiff.budget import NODES, SECONDS, SPENT, Budget, OutOfTime
from combdiff.calculus.definitions.floating import float_lets, unfold
from combdiff.calculus.definitions.naming import name_arguments
from combdiff.calculus.functions.intervals import with_intervals_again
from combdiff.calculus.functions.points import Points
from combdiff.calculus.implicit import Affine, is_implicit, with_solutions
from combdiff.calculus.jumps.peaks import without_bending_peaks
from combdiff.calculus.loops.joining import joined_loops
from combdiff.calculus.loops.read_states import with_read_states
from combdiff.calculus.loops.recurrences import as_step
from combdiff.canon.canonical import Symmetries, normal_form
from combdiff.canon.like_terms.cases import with_cases_in_one_sum
from combdiff.canon.like_terms.nested import without_fractions_in_sums
from combdiff.canon.repeats import once_a_form
from combdiff.errors import BudgetError, CheckError, UnsupportedError
from combdiff.language.printing.anchors import domains_of
from combdiff.language.printing.letters import with_letters
from combdiff.language.printing.names import names_in
from combdiff.language.printing.written_order import WrittenOrder
from combdiff.records import dataclass
from combdiff.simplify.account import CANCELS, COLLECT, JOIN, SOLVE, UNREAD, Family, Progress, Step
from combdiff.simplify.check import Check
from combdiff.simplify.choose import index_names, place, rename_indices
from combdiff.simplify.conditions import stated_once
from combdiff.simplify.contraction.bisection import accusation
from combdiff.simplify.contraction.contract import contract
from combdiff.simplify.contraction.denominators import over_one_denominator
from combdiff.simplify.contraction.diagonals import without_diagonals
from combdiff.simplify.contraction.ranges import solved_within_ranges
from combdiff.simplify.fallback import INDISPENSABLE, UNDONE, undone
from combdiff.simplify.graph.choice import chosen
from combdiff.simplify.known import Known, is_opaque, joined, parts_of, with_entry
from combdiff.simplify.laws.commuting import with_commuting_matrices
from combdiff.simplify.laws.linear import real_parts_by_term, with_plain_parts
from combdiff.simplify.laws.named_in_loops import with_names_in_loops
from combdiff.simplify.laws.stationary import vanishing
from combdiff.simplify.laws.vector_products import with_common_vectors, with_signs_turned
from combdiff.simplify.lost import called_as_defined
from combdiff.simplify.mirrored import in_both_orders
from combdiff.simplify.order import CAPTURED, COTANGENT, UNKNOWN, ReadingOrder
from combdiff.simplify.shifts.sums import with_sums_shifted
from combdiff.simplify.shifts.values import is_function, is_product, with_values_at_shifts
from combdiff.terms.conditions.divided import Divisor
from combdiff.terms.conditions.entries import with_entries_under_conditions
from combdiff.terms.conditions.guards import FiniteButForOverflow, partial_values
from combdiff.terms.conditions.kinks import with_whole_norms, without_needless_conditions
from combdiff.terms.laws.inclusion import written_where_needed
from combdiff.terms.laws.shares import asked_once, with_whole_shares
from combdiff.terms.listings import with_entries_together
from combdiff.terms.terms import (
    Lam,
    Let,
    Loop,
    Term,
    Var,
    alpha_equal,
    body_of,
    let,
    substitute,
    subterms,
    tuple_of,
)
from combdiff.terms.types import Domain, Interval, Type


@dataclass(slots=True)
class Simplifier:
    """Simplifies derivatives and keeps an account of it in `steps`.

    `gate` compares the term before and after each stage; `expand` multiplies products and shared values out (Eq. 57);
    `full_space` leaves the symmetries of the unknowns unused in the last derivative too, so that it holds outside of
    the symmetric subspace; without `collect`, common factors are not collected, in a result that is only run;
    `seconds` and `nodes` are the budget; `names`, `definitions` and `rank` are the user's index
    names, the names of the user's definitions, and the parameters in order; `defined` are the definitions themselves;
    `least` are the sizes that ranges have at least, because the program reads entries there, `read` those below which
    it has no value, because it reads entries at constants; `written` is the program, in whose order terms are put;
    `divided` is what it divides by in any case;
    `infinite` are definitions around a step that may be infinite; `intervals` are those of the program; `progress` is
    called when a stage begins.
    `longest` are the nodes of a derivative beyond which it is given up, with a BudgetError.
    `raw` is what the last derivative is called before it is simplified, `end` when the time is up for all of it, the
    deadline of the budget for what is at work.
    """

    gate: Check | None = None
    expand: bool = False
    seconds: float = SECONDS
    nodes: float = NODES
    longest: float = inf
    full_space: bool = False
    collect: bool = True
    names: dict[Type, list[str]] = field(default_factory=dict)
    definitions: Collection[str] = ()
    defined: Mapping[str, Term] = field(default_factory=dict)
    rank: dict[Var, int] = field(default_factory=dict)
    least: Mapping[Domain, int] = field(default_factory=dict)
    read: Mapping[Domain, int] = field(default_factory=dict)
    divided: Sequence[Divisor] = ()
    infinite: Collection[Var] = ()
    written: Sequence[Term] = ()
    intervals: Collection[Interval] = ()
    steps: list[Step] = field(default_factory=list)
    budget: Budget = field(init=False)
    derived: Symmetries = field(default_factory=dict)
    progress: Progress | None = None
    raw: str = "raw pullback"
    unused: tuple[str, ...] = field(init=False, default=())
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.budget = Budget.of(self.seconds, self.nodes)
        self.end = self.budget.deadline
        if self.gate is not None:
            self.gate.budget = Budget(self.budget.deadline)

    def announce(self, stage: str) -> None:
        """Tell who follows that a stage begins, and go on telling them while it asks for its budget."""
        follow = self.progress
        if follow is not None:
            start = perf_counter()
            self.budget.observer = lambda: follow(stage, perf_counter() - start)
            if self.gate is not None:
                self.gate.budget.observer = self.budget.observer
            self.budget.observer()

    def ask(self) -> None:
        """Called while a derivative is taken, which cannot be left half done.

        Raises BudgetError if even that takes longer than all of it may.
        """
        self._demand(self._allowance())

    def _ask_again(self) -> None:
        """Called while sums over numbers leave a derivative for which time is up; that cannot be left half done either.

        There is half as much time again: else no derivative that took its whole time would be of use.
        """
        self._demand(1.5 * self._allowance())

    def _demand(self, more: float) -> None:
        if perf_counter() > self.end + more:
            raise BudgetError(
                "differentiation takes more than its budget of time allows",
                remedy="allow more seconds, or give names to parts of the program: a = …, b = f(a), …",
            )

    def _allowance(self) -> float:
        """Seconds beyond the budget that may go into checks, and into the derivative itself: it is whole or nothing."""
        return (self.seconds + 1) / 4

    def __call__(self, f: Lam, unused: Collection[Var], points: Points | None = None) -> Lam:
        """`f` simplified, without using the declared symmetries of the variables in `unused`.

        Its arrays that stand for functions, of `points`, are ordered as these are, and steps show the functions.
        """
        if points is not None:
            self.rank |= {array: self.rank[f] for array, f in points.functions.items() if f in self.rank}
        begin = len(self.steps)
        # what is differentiated again leaves time for what becomes of it
        with self.budget.halved() if unused else nullcontext():
            result = self._simplified(f, unused)
        if points is not None:
            self.steps[begin:] = [_shown(step, points) for step in self.steps[begin:]]
        return result

    def _simplified(self, f: Lam, unused: Collection[Var]) -> Lam:
        rank = {v: (UNKNOWN if v in f.params else CAPTURED, n) for v, n in self.rank.items()}
        rank |= {p: (COTANGENT, n) for n, p in enumerate(f.params) if p not in rank}
        last = not unused
        unused = {*unused, *f.params} if self.full_space else unused
        order = ReadingOrder(rank, unused, collect=last)
        self.unused = tuple(sorted({v.name for v in unused}))
        if sum(1 for _ in subterms(f)) > self.longest:
            raise BudgetError("the derivative is longer than it may be")
        self.steps.append(Step(self.raw if last else "raw pullback", f))
        f = self._stage("contract", f, lambda body: self._contracted(body, expand=False))
        f = self._with_steps(f, unused)
        f = self._stage("merge like terms", f, self._merged(unused))
        f = self._without_vanishing(f)
        f = self._with_solutions(f, unused) if last else f
        kept = {
            var
            for var, e in parts_of(f.body)[0]
            if var.name in self.definitions or is_implicit(e) or isinstance(e, Loop)
        }
        f = self._with_commuting_matrices(f)
        # a sum that holds a diagonal may become one, once it is contracted
        while not self.budget.over() and without_diagonals(*parts_of(f.body), kept) is not None:
            f = self._stage("diagonals", f, lambda body: self._diagonal(body, kept))
            f = self._stage("merge like terms", f, self._merged(unused))
        if self.expand:
            f = self._stage("expand", f, self._expanded, CANCELS)
            f = self._stage("merge like terms", f, self._merged(unused))
        elif any(var not in kept for var, _ in parts_of(f.body)[0]):
            f = self._stage("place cotangents", f, lambda body: self._placed(body, kept, unused))
            f = self._stage("merge like terms", f, self._merged(unused))
            f = self._with_commuting_matrices(f)
        if last and self.collect and not self.expand:
            f = self._stage(COLLECT, f, lambda body: self._nested(body, kept, unused))
        f = self._with_read_states(f)
        names = {**index_names(f), **self.names}
        return self._stage("order and names", f, lambda body: (self._ordered(body, order, names, last), {}))

    def value(self, f: Lam) -> Lam:
        """The value of an objective in the form that its derivatives have, so that what both need is computed once.

        exp(-s / (2 h^2)) and its derivative by h, which holds exp(-1/2 s / h^2), take one exponential.
        """
        bindings, results = name_arguments(f.params, *float_lets(f.body), self.ask)
        f = Lam(f.params, let(bindings, results))
        f = self._stage("contract", f, lambda body: self._contracted(body, expand=False))
        f = self._with_steps(f, ())
        f = self._with_solutions(f, ())
        if self.expand:
            f = self._stage("expand", f, self._expanded, CANCELS)
            f = self._stage("expand", f, lambda body: (real_parts_by_term(body), {}))
        return self._stage("merge like terms", f, self._merged(()))

    def _stage(
        self, name: str, f: Lam, rewrite: Callable[[Term], tuple[Term, dict[str, Family]]], about: str = ""
    ) -> Lam:
        self.announce(name)
        start = perf_counter()
        self.budget.spent, self.budget.largest = False, 0
        families: dict[str, Family] = {}
        try:
            body, families = rewrite(f.body)
        except OutOfTime:
            body = undone(name, f.body)
        seconds = perf_counter() - start
        start = perf_counter()
        self.announce(f"{name}, checked on numbers")
        notes: list[str] = []
        try:
            notes = self._checked(name, f.body, body, families)
        except OutOfTime:
            # what there is no time to check is not used, unless what would be left could not be computed
            self.budget.spent = True
            if name in INDISPENSABLE:
                notes = ["not checked on numbers: there was no time"]
            else:
                body = f.body
        checking = perf_counter() - start
        spent = self.budget.spent
        notes = [f"{SPENT}: {UNDONE[name]}", *notes] if spent else [about, *notes] if about else notes
        result = Lam(f.params, body)
        most, told = self.budget.largest, "; ".join(notes)
        about_it = families, seconds, told, checking, spent, most, f, self.unused, explained
        self.steps.append(Step(name, result, *about_it))
        return result

    def _without_vanishing(self, f: Lam) -> Lam:
        """Values that are zero by the equation that another one solves; that they are its multiples is checked."""
        bindings, results = parts_of(f.body)
        found = {v.var: v for v in vanishing(bindings)}
        if not found:
            return f
        try:
            notes = [n for v in found.values() for n in self._checked("stationary point", v.value, v.multiple, {})]
        except OutOfTime:
            return f
        values = [found[var].zero if var in found else value for var, value in bindings]
        result = Lam(f.params, joined([var for var, _ in bindings], [*values, *results]))
        names = ", ".join(var.name for var in found)
        note = "; ".join([f"{names}: zero at the root", *notes])
        self.steps.append(Step("stationary point", result, note=note, before=f))
        return result

    def _with_solutions(self, f: Lam, unused: Collection[Var]) -> Lam:
        """`f` with the roots of affine equations solved for, when no derivative needs them as roots any more."""
        found: list[Affine] = []
        body = with_solutions(f.body, found.append)
        if not found:
            return f
        try:
            notes = [n for e in found for n in self._checked(SOLVE, e.equation, e.form, {})]
        except OutOfTime:
            return f
        result = Lam(f.params, body)
        self.steps.append(Step(SOLVE, result, note="; ".join(dict.fromkeys(notes)), before=f))
        f = result
        f = self._stage("contract", f, lambda body: self._contracted(body, expand=False))
        return self._stage("merge like terms", f, self._merged(unused))

    def _checked(self, name: str, before: Term, after: Term, families: dict[str, Family]) -> list[str]:
        """Evaluate both; a note where it could not be done, that says why.

        Raises OutOfTime if it takes longer than what is left.
        """
        gate = self.gate
        fired = [family for family, laws in families.items() if laws.matches]
        loose = sorted(v.name for v in after.free - before.free)
        if loose:
            who = accusation(name, before, fired, gate.agree) if gate is not None else ""
            raise CheckError(
                f"{name} changed the value of the derivative ({', '.join(loose)} without what binds it); "
                f"{who}this is a bug of combdiff",
                remedy="report the program",
            )
        if gate is None or before is after:
            return []
        gate.budget.deadline = self.budget.deadline + self._allowance()
        gate.intervals, gate.divided = tuple(self.intervals), self._divided(parts_of(before)[0])
        gate.budget.check()
        try:
            if not gate.same(before, after, name, lambda: accusation(name, before, fired, gate.agree)):
                return ["not checked on numbers: no value is finite on what was drawn"]
        except UnsupportedError as problem:
            return [f"not checked on numbers: {problem.message}"]
        except OverflowError:
            return ["not checked on numbers: it holds a number beyond those of floating point"]
        return []

    def _merged(self, unused: Collection[Var]) -> Callable[[Term], tuple[Term, dict[str, Family]]]:
        def rewrite(body: Term) -> tuple[Term, dict[str, Family]]:
            if self.budget.over():
                return body, {}
            known = Known(unused, self.budget)
            result = known.all(body)
            self.derived = known.derived
            return result, {}

        return rewrite

    def _contracted(self, body: Term, expand: bool, settled: Collection[Term] = ()) -> tuple[Term, dict[str, Family]]:
        """`body` contracted value by value, but for the values in `settled`, which are as they should be."""
        bindings, results = parts_of(body)
        values = [value for _, value in bindings] + results
        families: dict[str, Family] = {}
        divided, infinite = self._divided(bindings), partial_values(bindings, self.infinite)
        overflowing = infinite - partial_values(bindings, self.infinite, FiniteButForOverflow)

        def rewrite(entries: list[Term]) -> list[Term]:
            entries = asked_once([*map(written_where_needed, entries)], infinite, bindings)
            terms, account = contract(entries, expand=expand, budget=self.budget, ask=self._ask_again)
            families.update(account)
            terms = [without_bending_peaks(solved_within_ranges(t, self.read)) for t in terms]
            terms = [with_whole_shares(with_intervals_again(t, self.intervals), self.read) for t in terms]
            terms = [stated_once(t, self.least, divided, infinite, overflowing) for t in terms]
            terms = asked_once(terms, infinite, bindings)
            # what is left of conditions on an index may be one value of it
            terms = [solved_within_ranges(t, self.read) for t in terms]
            terms = [with_whole_norms(t) for t in terms]
            return [without_needless_conditions(t, infinite) for t in terms] if divided else terms

        open_ = [n for n, v in enumerate(values) if v not in settled and (n >= len(bindings) or not is_opaque(v))]
        for n, entry in zip(open_, once_a_form([body_of(values[n]) for n in open_], rewrite), strict=True):
            values[n] = with_entry(values[n], entry)
        known = dict(zip((var for var, _ in bindings), values, strict=False))
        for n in open_:
            values[n] = with_entry(values[n], over_one_denominator(with_whole_norms(body_of(values[n]), known), known))
        return joined([var for var, _ in bindings], values), families

    def _with_steps(self, f: Lam, unused: Collection[Var]) -> Lam:
        """`f` with the steps of its loops simplified, if it has any."""
        if not any(isinstance(e, Loop) for _, e in parts_of(f.body)[0]):
            return f
        f = self._with_read_states(f)
        return self._stage("steps of loops", f, lambda body: (self._stepwise(body, unused), {}))

    def _with_read_states(self, f: Lam) -> Lam:
        """`f` without states that nothing reads, and with each state in one loop."""
        body = with_read_states(f.body)
        f = f if body is f.body else self._stage(UNREAD, f, lambda _: (body, {}))
        joint = joined_loops(f.body)
        return f if joint is f.body else self._stage(JOIN, f, lambda _: (joint, {}))

    def _stepwise(self, body: Term, unused: Collection[Var]) -> Term:
        """`body` with steps simplified, each a program of its own; loops of one recurrence keep one step."""
        bindings, results = parts_of(body)
        known: dict[tuple[str, ...], list[tuple[Term, Lam]]] = defaultdict(list)
        infinite = partial_values(bindings, self.infinite)

        def simplified(loop: Loop) -> Loop:
            alike = known[tuple(s.name for s in loop.states)]
            step = next((new for old, new in alike if alpha_equal(old, loop.step)), None)
            if step is None:
                inner = replace(self, gate=None, steps=[], progress=None, derived={}, infinite=infinite)
                inner.budget, inner.end = self.budget, self.end
                assert isinstance(loop.step, Lam), "a step is a map"
                step = as_step(inner._simplified(loop.step, unused))
                alike.append((loop.step, step))
            return Loop(loop.kind, loop.item, loop.backward, step, loop.start)

        values = [simplified(e) if isinstance(e, Loop) else e for _, e in bindings]
        return joined([var for var, _ in bindings], [*values, *results])

    def _nested(self, body: Term, kept: Collection[Var], unused: Collection[Var]) -> tuple[Term, dict[str, Family]]:
        if self.budget.over():
            return body, {}
        bindings, results = parts_of(with_sums_shifted(with_common_vectors(with_entries_together(body))))
        bindings, results = self._at_shifts(bindings, results, is_function)
        kept = {*kept, *(var for var, value in bindings if is_opaque(value))}
        bindings, results, families = chosen(
            bindings, results, kept, self.derived, unused, self.names, self.budget, 2 * self._allowance()
        )
        # a definition that was recognised in a value may stand beside its inverse
        values = with_names_in_loops([(var, without_fractions_in_sums(value)) for var, value in bindings])
        results = [*map(without_fractions_in_sums, results)]
        values, results = self._at_shifts(values, results, is_product)
        return let(values, tuple_of(results)), families

    def _at_shifts(
        self, bindings: Sequence[tuple[Var, Term]], results: Sequence[Term], named: Callable[[Term], bool]
    ) -> tuple[list[tuple[Var, Term]], list[Term]]:
        return with_values_at_shifts(bindings, results, named, self.definitions, self.defined.values())

    def _diagonal(self, body: Term, kept: Collection[Var]) -> tuple[Term, dict[str, Family]]:
        """`body` without values that are 0 but on diagonals, their entries contracted where they are used."""
        found = without_diagonals(*parts_of(body), kept)
        if found is None or self.budget.over():
            return body, {}
        bindings, results = found
        return self._contracted(
            joined([var for var, _ in bindings], [*(e for _, e in bindings), *results]), expand=False
        )

    def _with_commuting_matrices(self, f: Lam) -> Lam:
        """`f` with products for derivatives of exponentials along matrices that they commute with."""
        bindings, results = parts_of(f.body)
        known = dict(bindings)
        values = [
            e if is_opaque(e) else with_commuting_matrices(e, known) for e in (*(e for _, e in bindings), *results)
        ]
        if all(new is e for new, e in zip(values, (*(e for _, e in bindings), *results), strict=True)):
            return f
        body = joined([var for var, _ in bindings], values)
        return self._stage("commuting matrices", f, lambda _: self._contracted(body, expand=False))

    def _expanded(self, body: Term) -> tuple[Term, dict[str, Family]]:
        """`body` multiplied out, or as it was: part of it would be neither short nor without products."""
        with self.budget.halved():
            result, families = self._contracted(_without_definitions(body), expand=True)
        return (body if self.budget.spent else result), families

    def _ordered(self, body: Term, order: ReadingOrder, names: dict[Type, list[str]], last: bool) -> Term:
        if self.budget.over():
            return body
        order = replace(order, derived=self.derived, ask=self.budget.check)
        ordered = order(with_cases_in_one_sum(with_plain_parts(self._turned(body))) if last else body)
        bindings = parts_of(ordered)[0]
        infinite = partial_values(bindings, self.infinite)
        overflowing = infinite - partial_values(bindings, self.infinite, FiniteButForOverflow)
        stated = stated_once(ordered, self.least, self._divided(bindings), infinite, overflowing)
        (stated,) = asked_once([stated], infinite, bindings)
        stated = with_entries_under_conditions(stated) if last else stated
        together = with_entries_together(with_whole_norms(stated, dict(bindings)))
        given = {name for own in self.names.values() for name in own}
        domains = {d for v in self.rank for d in domains_of(v.kind)}
        sizes = {d.name for d in domains if d.sized}
        result = ordered if together is ordered else order(together)
        result = rename_indices(result, names, sizes - given, self.budget.check)
        result = WrittenOrder.of(*self.written)(result) if last else result
        return self._lettered(result, {*given, *(d.name for d in domains)}) if last else result

    def _turned(self, body: Term) -> Term:
        """`body` with v × u for −(u × v), but for the definitions of the program."""
        bindings, results = parts_of(body)
        values = [(v, value if v.name in self.definitions else with_signs_turned(value)) for v, value in bindings]
        return let(values, tuple_of([*map(with_signs_turned, results)]))

    def _divided(self, bindings: Sequence[tuple[Var, Term]]) -> Sequence[Divisor]:
        """What the program divides by, of the values that its definitions have become."""
        values = {(v.name, v.kind): v for v, _ in bindings}
        return [d.of_values(values) for d in self.divided]

    def _lettered(self, body: Term, given: Collection[str]) -> Term:
        """`body` with letters for the values that differentiation has numbered; `given` are names of indices."""
        taken = {*given, *names_in(body), *(v.name for v in self.rank)}
        if not isinstance(body, Let):
            return body
        values, results, again = called_as_defined(body.bindings, [body.body], self.defined, self.definitions)
        own = {*self.definitions, *again}
        bindings, (result,) = with_letters(values, results, own, taken, self.defined.keys() - again)
        return Let(tuple(bindings), result)

    def _placed(self, body: Term, kept: Collection[Var], unused: Collection[Var]) -> tuple[Term, dict[str, Family]]:
        if self.budget.over():
            return body, {}
        before, results = parts_of(body)
        settled = {*(value for _, value in before), *results}
        placed = place(before, results, kept, self.budget.check)
        bindings, results = in_both_orders(*placed, kept, lambda t: normal_form(t, self.derived, unused, self.budget))
        values = [value for _, value in bindings] + results
        return self._contracted(joined([var for var, _ in bindings], values), expand=False, settled=settled)


def _shown(step: Step, points: Points) -> Step:
    term, before = (points.back(t) if isinstance(t, Lam) else t for t in (step.term, step.before))
    assert term is not None, "a step has a term"
    return replace(step, term=term, before=before)


def _without_definitions(body: Term) -> Term:
    """`body` with all definitions written out but loops, whose steps stay as they are."""
    bindings, results = parts_of(body)
    known: dict[Var, Term] = {}
    loops: list[tuple[Var, Term]] = []
    for var, value in bindings:
        value = substitute(value, known)
        if isinstance(value, Loop):
            loops.append((var, value))
        else:
            known[var] = unfold(value)
    return let(loops, tuple_of([unfold(substitute(t, known)) for t in results]))


def explained(step: Step) -> list[str]:
    """What a stage did, in words; what finds them is imported when somebody asks."""
    from combdiff.simplify.provenance.words import words_of

    return words_of(step)
