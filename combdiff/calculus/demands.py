"""Finds where definitions are used: one that is used only under a guard is guarded by it.

    r = (i, j) -> sqrt(u(i, j));  sum((i, j), indicator(i + 1, j, 1 / r(i, j)))      r matters where i + 1 ≤ j

The conditions speak of the definition's own indices: of others it matters whether there are values of them for which
the conditions hold (`orders.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

from combdiff.calculus.definitions.naming import is_worth_a_name
from combdiff.records import dataclass
from combdiff.terms.conditions.choices import is_guard
from combdiff.terms.conditions.guards import (
    Condition,
    Guard,
    both,
    condition_of,
    is_finite,
    partial_values,
    under,
    unguarded,
)
from combdiff.terms.conditions.ordering import existing, never_exceeds, united
from combdiff.terms.terms import (
    Add,
    App,
    Delta,
    Indicator,
    Lam,
    Mul,
    Term,
    Var,
    add,
    bound_by,
    can_fill_slot,
    children,
    params_of,
    substitute,
    subterms,
)
from combdiff.terms.types import Index

Binding = tuple[Var, Term]


@dataclass(frozen=True, slots=True)
class Use:
    """An entry that is asked for: its indices, the conditions there, and the variables that are bound around it."""

    args: tuple[Term, ...]
    guard: Guard
    bound: frozenset[Var]


def demanded(bindings: Sequence[Binding], results: Sequence[Term], slopes: bool = False) -> dict[Var, Guard]:
    """For each definition that matters under conditions only, these; in the variables of its own map.

    With `slopes` it is its cotangent that is asked for, which is nothing where a definition is only compared, or where
    what it is multiplied by is guarded.
    """
    if not has_guards(bindings, results):
        return {}
    place = {var: n for n, (var, _) in enumerate(bindings)}
    uses = _Uses(place.keys(), slopes)
    for t in results:
        uses.collect(t, (), frozenset())
    found: dict[Var, Guard] = {}
    for var, value in reversed(bindings):
        later = () if slopes else [v for v in place if place[v] >= place[var]]
        guard = united(_spoken(use, value, later) for use in uses.found[var])
        if guard:
            found[var] = guard
        uses.collect(value, guard, frozenset())
    return found


def has_guards(bindings: Sequence[Binding], results: Sequence[Term]) -> bool:
    """Whether anything stands under a condition."""
    return any(is_guard(u) for t in (*(e for _, e in bindings), *results) for u in subterms(t))


@dataclass(frozen=True, slots=True)
class Guarded:
    """Definitions and results, the definitions that may be infinite, and what guards their cotangents."""

    bindings: list[Binding]
    results: list[Term]
    partial: set[Var]
    guards: dict[Var, Guard]


def guarded_definitions(bindings: Sequence[Binding], results: Sequence[Term]) -> Guarded | None:
    """Definitions that may be infinite, with what guards them; None where nothing is guarded.

    A short one that is guarded by what its own indices do not say is written out where it is used.
    """
    if not has_guards(bindings, results):
        return None
    bindings, results = list(bindings), list(results)
    while True:
        partial = partial_values(bindings)
        guards = demanded(bindings, results, slopes=True)
        found = {var: guard for var, guard in guards.items() if var in partial}
        n = next((n for n, (var, e) in enumerate(bindings) if _is_written_out(e, found.get(var, ()))), None)
        if n is None:
            return Guarded(bindings, results, partial, found)
        var, value = bindings.pop(n)
        bindings[n:] = [(v, substitute(e, {var: value})) for v, e in bindings[n:]]
        results = [substitute(t, {var: value}) for t in results]


def as_used(value: Term, guard: Guard, partial: Collection[Var]) -> Term:
    """A value with those of its terms guarded that may be infinite, where `guard` is all around its uses."""

    def guarded(t: Term) -> Term:
        match t:
            case Lam(params, body):
                return Lam(params, guarded(body))
            case Add(terms) if not isinstance(t.type, Index):
                return add(*map(guarded, terms))
            case _:
                return t if is_finite(t, partial) else under(guard, t)

    return guarded(value) if guard else value


def _is_written_out(value: Term, guard: Guard) -> bool:
    return any(c.counts for c in guard) and not is_worth_a_name(value)


@dataclass(slots=True)
class _Uses:
    """The uses of some variables, in the terms that have been walked through so far."""

    wanted: Collection[Var]
    slopes: bool
    found: dict[Var, list[Use]] = field(default_factory=lambda: defaultdict(list))
    seen: set[tuple[Term, Guard]] = field(default_factory=set)

    def collect(self, t: Term, guard: Guard, bound: frozenset[Var]) -> None:
        if t.free.isdisjoint(self.wanted) or (t, guard) in self.seen:
            return
        self.seen.add((t, guard))
        match t:
            case Var():
                self.found[t].append(Use((), guard, bound))
            case App(Var() as f, args) if f in self.wanted and all(map(can_fill_slot, args)):
                self.found[f].append(Use(args, guard, bound))
                self.each(args, guard, bound)
            case Indicator(left, right, body) | Delta(left, right, body) if is_guard(t):
                self.each(() if self.slopes else (left, right), guard, bound)
                self.collect(body, both(guard, (condition_of(t),)), bound)
            case Mul(factors) if self.slopes:
                guards = [unguarded(f)[0] for f in factors]
                for n, factor in enumerate(factors):
                    beside = [c for m, other in enumerate(guards) if m != n for c in other]
                    self.collect(factor, both(guard, beside), bound)
            case _:
                self.each(children(t), guard, bound.union(bound_by(t)))

    def each(self, terms: Iterable[Term], guard: Guard, bound: frozenset[Var]) -> None:
        for u in terms:
            self.collect(u, guard, bound)


def _spoken(use: Use, value: Term, later: Collection[Var]) -> Guard:
    """The conditions of a use in the variables of the map that is used."""
    params = params_of(value)
    if len(params) != len(use.args):
        return ()
    own: dict[Var, Term] = {}
    ties: list[Condition] = []
    for p, a in zip(params, use.args, strict=True):
        if isinstance(a, Var) and a in use.bound and a not in own:
            own[a] = p
        else:
            ties.append(Condition(p, a, equal=True))
    guard = tuple(c for c in use.guard if c.free.isdisjoint(later))
    spoken = (c.at(own) for c in existing(guard, use.bound.difference(own), ties))
    # a range may be so short that it says what the condition does
    return tuple(c for c in spoken if c.equal or not never_exceeds(c.left, c.right))
