"""Entries that stand beside a condition on one of their indices, and under it.

    2 * x(i) * where(i < n - 1, y(i + 1))   is   2 * where(i < n - 1, x(i) * y(i + 1))

So a sum is read that runs over a shorter range, and its array is made of slices.
"""

from __future__ import annotations

from combdiff.terms.conditions.guards import reads_beyond, under, unguarded
from combdiff.terms.terms import (
    ONE,
    App,
    Call,
    Const,
    Indicator,
    Mul,
    Pow,
    Term,
    Traverser,
    Var,
    factors_of,
    holds_entries,
    mul,
)
from combdiff.terms.types import Map


def with_entries_under_conditions(t: Term) -> Term:
    """`t` with entries under a condition on an index of theirs where entries stand, or one that it keeps in range.

    >>> from combdiff.terms.terms import fresh, indicator
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> i = fresh("i", Index(Domain("n")))
    >>> x, y = (App(fresh(name, Map((i.kind,), REAL)), (i,)) for name in "xy")
    >>> with_entries_under_conditions(mul(x, indicator(ONE, i, y))) == indicator(ONE, i, mul(x, y))
    True
    """
    return Traverser(_inside, Mul)(t)


def _inside(t: Term) -> Term:
    guards = [f for f in factors_of(t) if isinstance(f, Indicator)]
    if len(guards) != 1:
        return t
    (guard,), around = guards, [f for f in factors_of(t) if not isinstance(f, Indicator | Const)]
    conditions, body = unguarded(guard)
    if any(holds_entries(side) for c in conditions for side in (c.left, c.right)):
        return t
    free = {v for c in conditions for v in c.free}
    beside = [f for f in around if not free.isdisjoint(f.free)]
    entries = [f for f in beside if is_entry(f) and not _divides(f)]
    if not entries or not _holds_entries(body) or (body == ONE and len(entries) < len(beside)):
        return t
    rest = [f for f in factors_of(t) if f is not guard and f not in entries]
    return mul(*rest, under(conditions, mul(*entries, body)))


def _holds_entries(t: Term) -> bool:
    """Whether a value is made of entries alone, or of one that exists under a condition only, among other factors."""
    factors = [f for f in factors_of(t) if f != ONE]
    return all(map(is_entry, factors)) or any(is_entry(f) and reads_beyond(f) for f in factors)


def _divides(t: Term) -> bool:
    """Whether it is one over an entry: what is divided by in any case is not asked about."""
    return isinstance(t, Pow) and isinstance(t.exponent, Const) and t.exponent.real < 0


def is_entry(t: Term) -> bool:
    """Whether it is a number, such as √2, or an entry of the program, or a power of one."""
    match t:
        case Call() if not t.free:
            return True
        case Pow(base, Const()):
            return is_entry(base)
        case App(Var(kind=Map() as kind), _):
            return kind.is_array
        case _:
            return isinstance(t, Var)
