"""Multiplies sums in a product out, and counts what is written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from combdiff.terms.terms import ONE, Add, Call, Const, Term, factors_of, mul, split_coefficient


def multiplied_out(t: Term, most: int) -> Sequence[Term]:
    """The terms of a product of which factors are sums; the product alone if they are more than `most`.

    >>> from combdiff.terms.terms import ONE, add, fresh
    >>> from combdiff.terms.types import REAL
    >>> a, b = fresh("a", REAL), fresh("b", REAL)
    >>> multiplied_out(mul(a, add(ONE, b)), 2) == [a, mul(a, b)], len(multiplied_out(mul(a, add(ONE, b)), 1))
    (True, 1)
    """
    factors = factors_of(t)
    sums = [f for f in factors if isinstance(f, Add)]
    if not sums or prod(len(s.terms) for s in sums) > most:
        return (t,)
    beside = mul(*(f for f in factors if f not in sums))
    return [mul(beside, *chosen) for chosen in product(*(s.terms for s in sums))]


def factors_written(t: Term) -> int:
    """How many factors are written in a product, a sum as one and those of its terms.

    >>> from combdiff.terms.terms import ONE, add, fresh
    >>> from combdiff.terms.types import REAL
    >>> a, b = fresh("a", REAL), fresh("b", REAL)
    >>> factors_written(mul(a, b)), factors_written(mul(a, add(ONE, b)))
    (2, 4)
    """
    if isinstance(t, Add):
        return 1 + sum(map(factors_written, t.terms))
    factors = [f for f in factors_of(t) if not isinstance(f, Const)]
    return max(1, sum(factors_written(f) if isinstance(f, Add) else 1 for f in factors))


def has_signs_alone(t: Term) -> bool:
    """Whether a factor is a sum of signs and numbers, such as 1 + sign(x), which no rounding changes.

    >>> from combdiff.terms.terms import ONE, Call, add, fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> has_signs_alone(mul(x, add(ONE, Call("sign", (x,))))), has_signs_alone(mul(x, add(ONE, x)))
    (True, False)
    """
    return any(isinstance(f, Add) and all(map(_is_sign, f.terms)) for f in factors_of(t))


def _is_sign(t: Term) -> bool:
    _, rest = split_coefficient(t)
    return rest == ONE or (isinstance(rest, Call) and rest.primitive == "sign")
