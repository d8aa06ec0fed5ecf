"""Moves signs in front of products, so that sums that differ by a sign are computed once.

x(i) - alpha * (-r(i) - beta * p(i))   becomes   x(i) + alpha * (r(i) + beta * p(i))
"""

from __future__ import annotations

from combdiff.terms.terms import (
    MINUS_ONE,
    Add,
    Const,
    Mul,
    Pow,
    Sum,
    Term,
    Traverser,
    add,
    mul,
    power,
    split_coefficient,
)
from combdiff.terms.types import Index


def signs_in_front(t: Term) -> Term:
    """`t` with the signs of sums whose terms are all negative before the products that these stand in.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> a, b, c = (fresh(name, REAL) for name in "abc")
    >>> minus = add(mul(MINUS_ONE, a), mul(MINUS_ONE, b))
    >>> signs_in_front(mul(MINUS_ONE, minus, c)) == mul(add(a, b), c)
    True
    """
    return Traverser(_turned)(t)


def _turned(t: Term) -> Term:
    match t:
        case Mul(factors):
            turned = [_opposite(f) for f in factors]
            if not any(turned):
                return t
            signs = [MINUS_ONE for o in turned if o is not None]
            return mul(*signs, *(f if o is None else o for f, o in zip(factors, turned, strict=True)))
        case Sum(indices, body) if (found := _opposite(body)) is not None:
            return mul(MINUS_ONE, Sum(indices, found))
        case Pow(base, Const() as n) if n.is_integer and (found := _opposite(base)) is not None:
            return power(found, n) if not n.real % 2 else mul(MINUS_ONE, power(found, n))
        case _:
            return t


def _opposite(t: Term) -> Term | None:
    """-t for a sum of negative terms, and None for any other."""
    if not isinstance(t, Add) or isinstance(t.type, Index):
        return None
    if not all(_is_negative(u) for u in t.terms):
        return None
    return add(*(mul(MINUS_ONE, u) for u in t.terms))


def _is_negative(t: Term) -> bool:
    size, _ = split_coefficient(t)
    return size.real < 0 and not size.imag
