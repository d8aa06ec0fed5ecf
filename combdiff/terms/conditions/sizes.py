"""Decides conditions on sizes, as in where(n > 4, x(4)), once the sizes are known: what is not read need not exist."""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.terms.terms import Indicator, Sum, Term, Traverser, indicator, number
from combdiff.terms.types import Domain


def with_sizes_decided(t: Term, sizes: Mapping[Domain, int]) -> Term:
    """`t` where conditions on `sizes` alone, and on numbers, hold or do not.

    >>> from combdiff.terms.terms import TWO, fresh, size
    >>> from combdiff.terms.types import REAL
    >>> n, x = Domain("n"), fresh("x", REAL)
    >>> t = indicator(TWO, size(n), x)
    >>> [with_sizes_decided(t, {n: count}) == x for count in (1, 2)]
    [False, True]
    """

    def known(u: Term) -> Term:
        if not isinstance(u, Sum) or u.counted is None or not {*u.counted.measured} <= sizes.keys():
            return u
        return number(u.counted.extent(sizes))

    def visit(u: Term) -> Term:
        if isinstance(u, Indicator) and not u.left.free | u.right.free:
            return indicator(Traverser(known, Sum)(u.left), Traverser(known, Sum)(u.right), u.body)
        return u

    return Traverser(visit, Indicator)(t)
