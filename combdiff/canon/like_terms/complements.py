"""Merges a value where a condition holds with the same value where it does not.

where(c < d, a) + where(d <= c, a)          is a
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from combdiff.terms.conditions.comparing import NEGATED, compared, comparison_of
from combdiff.terms.conditions.guards import condition_of, under
from combdiff.terms.conditions.ordering import excluded
from combdiff.terms.network import conditions_apart, network
from combdiff.terms.terms import ONE, Delta, Indicator, Term, delta, indicator, is_integer_valued, mul, total


class OneSide(NamedTuple):
    """A term that is 0 where a condition does not hold: the `other` one is 0 where it does, `both` has no condition."""

    other: Term
    both: Term


def sides_of(t: Term) -> Iterator[OneSide]:
    """For each condition on the factors of `t`, or of the sum that it is, that says that others do not all hold.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> (found,) = sides_of(compared(x, "<", y, x))
    >>> found.other == compared(y, "<=", x, x), found.both == x
    (True, True)
    """
    whole = network(t, conditions_apart)
    marks = [f for f in whole.factors if isinstance(f, Indicator | Delta) and f.body == ONE]
    beside = mul(*(f for f in whole.factors if f not in marks))
    for mark in marks:
        if not isinstance(mark, Indicator):
            continue
        both = beside
        for m in marks:
            both = both if m is mark else (delta if isinstance(m, Delta) else indicator)(m.left, m.right, both)
        other = opposite_of(mark, both)
        if other is not None:
            yield OneSide(*(mul(whole.coefficient, total(whole.indices, u)) for u in (other, both)))


def opposite_of(mark: Indicator, body: Term) -> Term | None:
    """`body` where the condition of a mark does not hold; None if that is no plainer."""
    condition = condition_of(mark)
    if denied := excluded(condition):
        return under(denied, body)
    told = comparison_of(condition)
    if told.sign not in ("<", "!=") or not (is_integer_valued(told.left) and is_integer_valued(told.right)):
        return None
    return compared(told.left, NEGATED[told.sign], told.right, body)
