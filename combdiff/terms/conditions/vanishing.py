"""Factors that are 0 wherever a condition beside them does not hold, so that it need not be asked.

y where(y != 0, e)              is   y e
max(0, y) where(0 < y, e)       is   max(0, y) e
(x(i) - x(j)) where(i != j, e)  is   (x(i) - x(j)) e       for an e that is finite
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.terms.conditions.comparing import comparison_of
from combdiff.terms.conditions.guards import Condition
from combdiff.terms.terms import ZERO, Call, Const, Pow, Term, Var, add, neg, substitute
from combdiff.terms.types import Index


def vanishes(factor: Term, condition: Condition) -> bool:
    """Whether a factor is 0 wherever a condition does not hold.

    >>> from combdiff.terms.terms import ONE, fresh, indicator
    >>> from combdiff.terms.types import REAL
    >>> y = fresh("y", REAL)
    >>> below = Condition(indicator(y, ZERO, ONE), ZERO)  # 0 < y
    >>> vanishes(Call("max", (ZERO, y)), below), vanishes(y, below)
    (True, False)
    """
    told = comparison_of(condition)
    base = _base(factor)
    if base is None:
        return False
    match told.sign:
        case "!=":
            return any(_is_zero_if_equal(part, told.left, told.right) for part in (base, *_within(base)))
        case "<" | "<=" if told.left == ZERO:
            match base:
                case Call("max", args) if ZERO in args:
                    return told.right in args
                case Call("relu", (u,)):
                    return u == told.right
    return False


def _base(factor: Term) -> Term | None:
    """What is raised to a power above 0."""
    match factor:
        case Pow(base, Const(n, imag)):
            return base if n > 0 and not imag else None
        case _:
            return factor


def _within(base: Term) -> Iterator[Term]:
    """The arguments of functions that are 0 at 0."""
    match base:
        case Call("abs" | "abs2" | "sign" | "sin" | "tanh" | "sinh" | "sqrt" | "expm1" | "log1p", (u,)):
            yield u


def _is_zero_if_equal(t: Term, left: Term, right: Term) -> bool:
    if isinstance(left, Var) and isinstance(left.type, Index) and left.type == right.type:
        return substitute(t, {left: right}) == ZERO
    difference = add(left, neg(right))
    return t in (difference, neg(difference))
