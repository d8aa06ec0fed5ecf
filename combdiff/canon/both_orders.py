"""Merges a value under i < j with the same value under j < i to one under i != j."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from combdiff.terms.conditions.comparing import compared, comparison_of
from combdiff.terms.conditions.guards import condition_of
from combdiff.terms.terms import Indicator, Sum, Term, Var, factors_of, mul, split_coefficient, total
from combdiff.terms.types import Index


class OneOrder(NamedTuple):
    """A term that is 0 but where `lesser` < `greater`; it is `mirrored` with these exchanged there, `both` with !=."""

    lesser: Var
    greater: Var
    mirrored: Term
    both: Term


def orders_of(t: Term) -> Iterator[OneOrder]:
    """For each condition i < j on the factors of `t`, or of the sum that it is.

    >>> from combdiff.terms.terms import fresh, mul
    >>> from combdiff.terms.types import REAL, Domain
    >>> n = Index(Domain("n"))
    >>> i, j, x = fresh("i", n), fresh("j", n), fresh("x", REAL)
    >>> (found,) = orders_of(mul(x, compared(i, "<", j, x)))
    >>> found.mirrored == mul(x, compared(j, "<", i, x)), found.both == mul(x, compared(i, "!=", j, x))
    (True, True)
    """
    c, rest = split_coefficient(t)
    indices, body = (rest.indices, rest.body) if isinstance(rest, Sum) else ((), rest)
    factors = factors_of(body)

    def with_guard(guarded: Term, beside: Term) -> Term:
        return mul(c, total(indices, mul(beside, guarded)))

    for f in factors:
        if not isinstance(f, Indicator):
            continue
        told = comparison_of(condition_of(f))
        i, j = told.left, told.right
        if told.sign == "<" and _is_plain(i) and _is_plain(j):
            assert isinstance(i, Var) and isinstance(j, Var), "plain indices"
            beside = mul(*(g for g in factors if g is not f))
            mirrored, both = (compared(*sides, f.body) for sides in ((j, "<", i), (i, "!=", j)))
            yield OneOrder(i, j, with_guard(mirrored, beside), with_guard(both, beside))


def _is_plain(t: Term) -> bool:
    return isinstance(t, Var) and isinstance(t.type, Index)
