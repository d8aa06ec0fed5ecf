"""Conditions of order, each stated once: what stands under one need not ask for it again.

indicator(i, j, a) * indicator(i, j, b)    becomes   indicator(i, j, a * b)
indicator(i, j, exp(indicator(i, j, a)))   becomes   indicator(i, j, exp(a))
indicator(i, j, 1 / a) - indicator(i, j, 1 / b)   becomes   indicator(i, j, 1 / a - 1 / b)
indicator(i, j, 3 / a)                     becomes   3 * indicator(i, j, 1 / a)
"""

from __future__ import annotations

from combdiff.terms.conditions.guards import Condition, condition_of, is_finite, under
from combdiff.terms.terms import (
    Add,
    Indicator,
    Mul,
    Term,
    Traverser,
    add,
    mul,
    split_coefficient,
    subterms,
)
from combdiff.terms.types import Index


def stated_once(t: Term) -> Term:
    """`t` with no condition under itself, and what stands under one condition together, a number in front.

    >>> from combdiff.terms.terms import ONE, fresh, indicator
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> stated_once(mul(indicator(ONE, x, x), indicator(ONE, x, y))) == indicator(ONE, x, mul(x, y))
    True

    Of a sum, only terms that may be infinite are put together: what is finite is collected by its factors.
    """
    if not any(isinstance(u, Indicator) for u in subterms(t)):
        return t

    def visit(u: Term) -> Term:
        match u:
            case Mul(factors) if not isinstance(u.type, Index):
                return _product(u, factors)
            case Add(terms) if not isinstance(u.type, Index):
                return _sum(u, terms)
            case Indicator(left, right, body):
                return _under(left, right, body)
            case _:
                return u

    return Traverser(visit)(t)


def _product(t: Mul, factors: tuple[Term, ...]) -> Term:
    """Two factors under one condition, as one; and so on."""
    guards = [f for f in factors if isinstance(f, Indicator)]
    for n, one in enumerate(guards):
        for other in guards[:n]:
            if (one.left, one.right) == (other.left, other.right):
                rest = [f for f in factors if f is not one and f is not other]
                together = mul(*rest, _under(one.left, one.right, mul(other.body, one.body)))
                return _product(together, together.factors) if isinstance(together, Mul) else together
    return t


def _sum(t: Add, terms: tuple[Term, ...]) -> Term:
    """Terms that are multiples of what may be infinite under one condition, as one."""
    found: dict[Condition, list[Term]] = {}
    others: list[Term] = []
    for term in terms:
        c, rest = split_coefficient(term)
        if isinstance(rest, Indicator) and not is_finite(rest.body):
            found.setdefault(condition_of(rest), []).append(mul(c, rest.body))
        else:
            others.append(term)
    if len(found) + len(others) == len(terms):
        return t
    return add(*others, *(_under(c.left, c.right, add(*parts)) for c, parts in found.items()))


def _under(left: Term, right: Term, body: Term) -> Term:
    """What stands under a condition that it need not ask for."""

    def visit(u: Term) -> Term:
        return u.body if isinstance(u, Indicator) and (u.left, u.right) == (left, right) else u

    return under((Condition(left, right),), Traverser(visit)(body))
