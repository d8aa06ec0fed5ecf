"""Holds a result in equal forms, of which the cheapest for the sizes at hand is run.

    4 Σ_q C(q,i) (h(p,q) + …)   reads best; the same multiplied out, or with other parentheses and other parts that are
    computed once, may take less time

The formula is lowered, and what derivatives are before they are collected (`flats`: of the program with its definitions
written out, and with others), each as it is and as the graph of forms says is cheapest. The formula is run unless
another form is clearly quicker, or takes fewer operations in no more time: code looks like what is read, where that
costs little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

from combdiff.arrays.costs import operations, seconds
from combdiff.arrays.liveness import peak
from combdiff.arrays.lower.cumulative import is_running_share
from combdiff.arrays.lower.lower import lower
from combdiff.arrays.lower.signature import Result, guessed_sizes, result_of
from combdiff.arrays.passes.angles import with_angles_apart
from combdiff.arrays.passes.contiguous import with_contiguous_operands
from combdiff.arrays.passes.contractions.divided import with_divisors_apart
from combdiff.arrays.passes.contractions.turned import with_differences_turned
from combdiff.arrays.passes.distances import Distances, expanded
from combdiff.arrays.plan import Plan
from combdiff.budget import Budget, OutOfTime
from combdiff.errors import CombDiffError
from combdiff.records import dataclass
from combdiff.simplify.choose import is_cheap, place
from combdiff.simplify.graph.running import AllForms
from combdiff.simplify.known import is_opaque
from combdiff.simplify.laws.distributed import distributed
from combdiff.terms.archive import Archive
from combdiff.terms.conditions.sizes import with_sizes_decided
from combdiff.terms.terms import Add, App, Lam, Term, inlined, let, subterms, tuple_of
from combdiff.terms.types import Domain

BETTER = 0.9
"""Another form is run where it takes less than this share of the time of the formula."""

FEWER = 0.99
"""Another form that takes no more time is run where it takes less than this share of the operations."""

SECONDS = 3.0
"""The time that may go into finding the cheapest form of one result."""


@dataclass(frozen=True, slots=True)
class Forms:
    """A result as it is read, and `flats`, equal ones before common factors are put in front, where these are tried.

    `check` raises for two terms that do not have the same value: the chosen form is compared with the formula.
    `agree` says whether two terms have the same value: what differs from the formula is not run.
    `distances` says whether squared distances are made of differences or multiplied out, `checkpoint` whether loops
    keep some of their states only. `least` are the sizes that ranges have at least, because the program reads entries
    there.
    """

    formula: Term
    flats: tuple[Term, ...] = ()
    check: Callable[[Term, Term], object] | None = None
    agree: Callable[[Term, Term], bool] | None = None
    distances: Distances = "differences"
    least: Mapping[Domain, int] = field(default_factory=dict)
    checkpoint: bool = False
    _found: dict[Term, AllForms | None] = field(default_factory=dict, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        # what was found is found again; in one table, all forms keep their parameters in common
        how = self.check, self.agree, self.distances, dict(self.least), self.checkpoint
        return _stored, (Archive.of([self.formula, *self.flats]), *how)

    def plan(self, sizes: Mapping[Domain, int] | None = None, memory: int | None = None) -> Plan:
        """The plan of the form that takes least time; that of the formula where this one takes more than `memory`.

        What is quickest shares the most, and holds the most at once.
        """
        plan = self._lowered(self.formula, sizes)
        quicker = self._quicker(plan, sizes)
        if quicker is None or (memory is not None and peak(quicker).bytes > memory):
            return plan
        return quicker

    def decided(self, sizes: Mapping[Domain, int]) -> Forms:
        """The formula alone, with its conditions on sizes decided: for arrays that lack what they guard."""
        return replace(self, formula=with_sizes_decided(self.formula, sizes), flats=())

    def of_formula(self) -> Plan:
        """The plan of the formula for guessed sizes, without a comparison."""
        return self._lowered(self.formula, None)

    def _lowered(self, form: Term, sizes: Mapping[Domain, int] | None) -> Plan:
        plan = replace(lower(form, sizes), checkpoint=self.checkpoint)
        plan = with_angles_apart(expanded(plan) if self.distances == "expanded" else plan)
        return with_contiguous_operands(with_differences_turned(with_divisors_apart(plan)))

    def _quicker(self, plan: Plan, sizes: Mapping[Domain, int] | None) -> Plan | None:
        """The plan of another form that is better than that of the formula."""
        others: list[tuple[Plan, Term, Term | None]] = []
        flats = [_without_products(flat) for flat in self.flats]
        flats += filter(None, [_without_shares(self.formula)])
        for flat in dict.fromkeys((*flats, *map(distributed, flats), *filter(None, map(_without_brackets, flats)))):
            found = self._cheapest(flat, sizes)
            for form in (flat, found):
                if form is None or form == self.formula:
                    continue
                with suppress(CombDiffError):  # the formula can be computed, and that is enough
                    other = self._lowered(form, sizes)
                    if _is_better(other, plan) and _is_called_alike(plan, other):
                        others.append((other, form, flat if form is found else None))
        for best, form, origin in sorted(others, key=lambda entry: seconds(entry[0])):
            with suppress(OutOfTime):  # what was not compared in time is not run
                if self._is_equal(form, origin):
                    return best
        return None

    def _is_equal(self, form: Term, origin: Term | None) -> bool:
        """Whether a form has the value of the formula; `check` raises if it has not that of its `origin`."""
        if origin is not None and self.check is not None:
            result = result_of(origin)
            self.check(Lam(result.params, let(result.bindings, tuple_of(result.outputs))), form)
        # flat forms may be of other programs, which were never held against the formula
        return self.agree is None or self.agree(self.formula, form)

    def _cheapest(self, flat: Term, sizes: Mapping[Domain, int] | None) -> Term | None:
        """The form that the graph of all forms of `flat` says is cheapest."""
        known = {**guessed_sizes(flat), **(sizes or {})}
        budget = Budget.of(SECONDS)
        if flat not in self._found:
            result = result_of(flat)
            self._found[flat] = AllForms.of(result.params, result.bindings, result.outputs, budget)
        every = self._found[flat]
        return every.cheapest(known, budget) if every is not None else None


def _stored(terms: Archive, *how: Any) -> Forms:
    formula, *flats = terms.terms()
    return Forms(formula, tuple(flats), *how)


def _without_products(flat: Term) -> Term:
    """`flat` without values that are plain products: nobody makes the array of one to sum over it."""
    result = result_of(flat)
    assert isinstance(flat, Lam), "a result is a map of its parameters"
    kept = [var for var, value in result.bindings if is_opaque(value) or not is_cheap(value)]
    if len(kept) == len(result.bindings):
        return flat
    bindings, outputs = place(result.bindings, result.outputs, kept)
    return Lam(tuple(result.params), let(bindings, tuple_of(outputs)))


def _without_shares(form: Term) -> Term | None:
    """`form` with shares in sums up to an index written out: sums over them need no array with two indices."""
    result = result_of(form)
    return _without(result, {v: e for v, e in result.bindings if isinstance(e, Lam) and is_running_share(e)})


def _without_brackets(flat: Term) -> Term | None:
    """`flat` with sums of sums in the place of a sum over the entries of a value that is read nowhere else.

    The value, Σ_kl B(i, k) C(k, l) B(l, j) + a(i) b(j) say, is never made: each of its terms may be a chain of its own.
    """
    result = result_of(flat)
    whole = (*(value for _, value in result.bindings), *result.outputs)
    read = Counter(u.function for u in {u: None for t in whole for u in subterms(t, App)})
    sums: dict[Term, Lam] = {
        v: e for v, e in result.bindings if isinstance(e, Lam) and isinstance(e.body, Add) and read[v] == 1
    }
    written = _without(result, sums)
    apart = written and distributed(written)
    return None if apart == written else apart


def _without(result: Result, values: Mapping[Term, Lam]) -> Term | None:
    """A result with some of its values written out; None where there are none, or one is used as a whole array."""
    if not values:
        return None
    bindings = [(var, inlined(value, values)) for var, value in result.bindings if var not in values]
    outputs = tuple(inlined(t, values) for t in result.outputs)
    whole = any(not t.free.isdisjoint(values) for t in (*(value for _, value in bindings), *outputs))
    return None if whole else Lam(tuple(result.params), let(bindings, tuple_of(outputs)))


def _is_better(other: Plan, plan: Plan) -> bool:
    """Whether it takes clearly less time, or fewer operations in no more time."""
    time, least = seconds(other), seconds(plan)
    return time < BETTER * least or (time <= least and operations(other) < FEWER * operations(plan))


def _is_called_alike(a: Plan, b: Plan) -> bool:
    return [x.name for x in a.arguments] == [x.name for x in b.arguments] and a.tupled == b.tupled
