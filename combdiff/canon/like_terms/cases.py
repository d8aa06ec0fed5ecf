"""Sums of which one has a condition where the other one has the opposite are one sum of cases.

Σ_i where(u_i <= d, u_i) + d Σ_i where(d < u_i, 1)        is   Σ_i where(u_i <= d, u_i, d)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from combdiff.canon.like_terms.complements import opposite_of
from combdiff.terms.conditions.guards import Condition, condition_of, under
from combdiff.terms.network import conditions_apart, network
from combdiff.terms.terms import (
    ONE,
    Add,
    Delta,
    Indicator,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    holds,
    mul,
    substitute,
    total,
)
from combdiff.terms.types import Index

MOST_INDICES = 3
"""Indices of a sum whose orders are tried."""


def with_cases_in_one_sum(t: Term) -> Term:
    """`t` with such sums as one.

    >>> from combdiff.terms.conditions.comparing import compared
    >>> from combdiff.terms.terms import App, fresh
    >>> from combdiff.terms.types import REAL, Map
    >>> n = Index()
    >>> i, j, d, x = fresh("i", n), fresh("j", n), fresh("d", REAL), fresh("x", Map((n,), REAL))
    >>> low = total([i], compared(App(x, (i,)), "<=", d, App(x, (i,))))
    >>> high = total([j], compared(d, "<", App(x, (j,)), d))
    >>> isinstance(with_cases_in_one_sum(add(low, high)), Sum)
    True
    """
    if not holds(t, Indicator):
        return t
    return Traverser(lambda u: _joined(u) if isinstance(u, Add) and not isinstance(u.type, Index) else u, Add)(t)


def _joined(t: Add) -> Term:
    terms = list(t.terms)
    guarded = [n for n, u in enumerate(terms) if holds(u, Sum) and holds(u, Indicator)]
    for n in guarded:
        u = terms[n]
        for m in guarded[guarded.index(n) + 1 :]:
            found = next(_together(u, terms[m]), None)
            if found is not None:
                left = add(found, *terms[:n], *terms[n + 1 : m], *terms[m + 1 :])
                return _joined(left) if isinstance(left, Add) else left
    return t


def _together(u: Term, v: Term) -> Iterator[Term]:
    """One sum for two of opposite conditions."""
    one, other = _Guarded(u), _Guarded(v)
    if not one.indices or not one.marks or not other.marks or len(one.indices) != len(other.indices):
        return
    for order in permutations(one.indices) if len(one.indices) <= MOST_INDICES else ():
        if [i.kind for i in order] != [i.kind for i in other.indices]:
            continue
        names = dict(zip(other.indices, order, strict=True))
        marks = [c.at(names) for c in other.marks]
        mine, theirs = [c for c in one.marks if c not in marks], [c for c in marks if c not in one.marks]
        if len(mine) == len(theirs) == 1 and (_are_opposite(*mine, *theirs) or _are_opposite(*theirs, *mine)):
            yield total(one.indices, add(one.body(), substitute(other.body(), names)))


def _are_opposite(one: Condition, other: Condition) -> bool:
    """Whether one condition holds where the other one does not."""
    mark = one.over(ONE)
    return isinstance(mark, Indicator) and opposite_of(mark, ONE) == other.over(ONE)


class _Guarded:
    """A sum with its conditions apart."""

    def __init__(self, t: Term) -> None:
        whole = network(t, conditions_apart)
        marks = [f for f in whole.factors if isinstance(f, Indicator | Delta) and f.body == ONE]
        self.indices: Sequence[Var] = whole.indices
        self.marks = [condition_of(f) for f in marks]
        self.core = mul(whole.coefficient, *(f for f in whole.factors if f not in marks))

    def body(self) -> Term:
        """What is summed."""
        return under(self.marks, self.core)
