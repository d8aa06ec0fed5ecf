"""Numbers that are real only by their symmetry: functions with a branch cut, log and roots, need not be real there.

z' A z is real for a Hermitian A, but its type is complex, and below zero its logarithm is log|z' A z| + iπ, which is
not its own conjugate. So a value that is known to be real is taken for a real number everywhere but there, unless it is
known not to be negative either, as z' z is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from combdiff.terms.branches import leaves_them_at
from combdiff.terms.terms import Call, Pow, Term, Var, call, children, power, rebuild


def taken_for_real(t: Term, twins: Mapping[Var, Term], positive: Collection[Term]) -> Term:
    """`t` with the real `twins` of variables in their place, but where a function leaves the real numbers below zero.

    `positive` are twins that are not negative.

    >>> from combdiff.terms.terms import call, fresh
    >>> from combdiff.terms.types import COMPLEX, REAL
    >>> u, twin = fresh("u", COMPLEX), fresh("u", REAL)
    >>> taken_for_real(call("exp", u), {u: twin}, ()) == call("exp", twin)
    True
    >>> taken_for_real(call("log", u), {u: twin}, ()) == call("log", u)
    True
    >>> taken_for_real(call("log", u), {u: twin}, {twin}) == call("log", twin)
    True
    """
    known: dict[Term, Term] = {}

    def go(u: Term) -> Term:
        if u.free.isdisjoint(twins):
            return u
        if isinstance(u, Var):
            return twins[u]
        if u not in known:
            below = [go(c) for c in children(u)]
            cut = leaves_them_at(u, below[0], positive)
            known[u] = u if cut else _made(u, below)
        return known[u]

    return go(t)


def _made(t: Term, parts: Sequence[Term]) -> Term:
    """`t` with other children; where a function has a cut, its argument does not lie on it."""
    match t:
        case Call(name, _):
            return call(name, *parts)
        case Pow():
            return power(*parts)
        case _:
            return rebuild(t, parts)
