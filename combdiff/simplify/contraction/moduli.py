"""Conditions modulo the size of a range keep an index of that range: Σ_i δ(i, 0) δ(i, 2) is δ(0, 2) modulo the size.

No number says modulo what it is compared with another one. So a δ is not solved for an index of a periodic domain, with
a number as the solution, where another condition would be left of numbers alone: the sum stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import prod

from combdiff.terms.terms import (
    Add,
    Delta,
    Term,
    Var,
    children,
    compares_indices,
    domains_compared,
    neg,
    split_coefficient,
    sub,
    subterms,
    terms_of,
)
from combdiff.terms.types import Index

MOST = 32
"""Sets of conditions that are told apart; beyond, all of them count as one."""


def kept_for_their_sizes(t: Term) -> frozenset[Var]:
    """The indices that no number must replace, for else a condition that tells more of them would be one of numbers.

    >>> from combdiff.terms.terms import ONE, TWO, ZERO, delta, fresh
    >>> from combdiff.terms.types import Domain
    >>> i, j = (fresh(name, Index(Domain("Z", declared=True, periodic=True))) for name in "ij")
    >>> [v.name for v in kept_for_their_sizes(delta(i, ZERO, delta(i, TWO, ONE)))]
    ['i']
    >>> [v.name for v in kept_for_their_sizes(delta(i, ZERO, delta(i, j, ONE)))]
    []
    """
    if not any(map(_is_around, subterms(t, Delta))):
        return frozenset()
    return frozenset[Var]().union(*map(_numbered, _Meetings()(t)))


def _is_around(d: Delta) -> bool:
    return compares_indices(d.left, d.right) and any(domain.periodic for domain in domains_compared(d.left, d.right))


Conditions = frozenset[Term]
"""What is 0 where each of them holds; of x and −x one."""


class _Meetings:
    """The sets of conditions that may stand around one term once it is multiplied out."""

    def __init__(self) -> None:
        self.seen: dict[Term, frozenset[Conditions]] = {}

    def __call__(self, t: Term) -> frozenset[Conditions]:
        known = self.seen.get(t)
        if known is None:
            known = self.seen[t] = self._of(t)
        return known

    def _of(self, t: Term) -> frozenset[Conditions]:
        below = [self(c) for c in children(t)]
        if isinstance(t, Add) and not isinstance(t.type, Index):
            found = frozenset[Conditions]().union(*below)
        else:
            own = Conditions([_difference(t)] if isinstance(t, Delta) and _is_around(t) else ())
            met = product(*below) if prod(map(len, below)) <= MOST else [[c for each in below for c in each]]
            found = frozenset(own.union(*each) for each in met)
        return found if len(found) <= MOST else frozenset([Conditions().union(*found)])


def _difference(d: Delta) -> Term:
    difference = sub(d.left, d.right)
    coefficient, _ = split_coefficient(terms_of(difference)[0])
    return neg(difference) if coefficient.real < 0 else difference


def _numbered(conditions: Conditions) -> Iterable[Var]:
    """The indices that are equal to numbers, if there are more conditions than they tell; by Gauß and Jordan."""
    rows: dict[Var, dict[Var, Fraction]] = {}
    dependent = False
    for condition in conditions:
        row = _coefficients(condition)
        for v, other in rows.items():
            row = _without(v, row, other)
        if not row:
            dependent = True
            continue
        v, c = next(iter(row.items()))
        row = {u: d / c for u, d in row.items()}
        rows = {u: _without(v, other, row) for u, other in rows.items()} | {v: row}
    return [v for v, row in rows.items() if len(row) == 1] if dependent else []


def _without(v: Var, row: dict[Var, Fraction], other: dict[Var, Fraction]) -> dict[Var, Fraction]:
    """The row less so much of another one, in which v has 1, that v is gone."""
    c = row.get(v)
    if c is None:
        return row
    found = {u: row.get(u, Fraction(0)) - c * other.get(u, Fraction(0)) for u in [*row, *other]}
    return {u: d for u, d in found.items() if d}


def _coefficients(condition: Term) -> dict[Var, Fraction]:
    """What stands before the indices of periodic domains."""
    parts = [split_coefficient(u) for u in terms_of(condition)]
    return {
        u: c.real
        for c, u in parts
        if isinstance(u, Var) and isinstance(u.kind, Index) and u.kind.domain is not None and u.kind.domain.periodic
    }
