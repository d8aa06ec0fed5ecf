"""Questions about products: what equal terms have in common, and the number in front of a sum."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from math import gcd

from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    Call,
    Conj,
    Const,
    Pow,
    Term,
    Var,
    add,
    mul,
    neg,
    number,
    reciprocal,
    split_coefficient,
)
from combdiff.terms.types import Index

Look = tuple[str, tuple[int, ...]]


def look(t: Term, bound: Collection[Var] | None = None) -> Look:
    """What terms have in common that are equal but for the names of the indices in `bound`, conj and numbers.

    Without `bound` all indices are left out.

    >>> from combdiff.terms.terms import App, conj, fresh
    >>> from combdiff.terms.types import COMPLEX, Index, Map
    >>> n = Index()
    >>> x, i, j = fresh("x", Map((n,), COMPLEX)), fresh("i", n), fresh("j", n)
    >>> look(App(x, (i,)), (i, j)) == look(conj(App(x, (j,))), (i, j))
    True
    """
    _, t = split_coefficient(t)
    while isinstance(t, Conj | Pow):
        t = t.term if isinstance(t, Conj) else t.base
    node = t.primitive if isinstance(t, Call) else type(t).__name__
    if bound is None:
        return node, tuple(sorted(v.uid for v in t.free if not isinstance(v.kind, Index)))
    return node, tuple(sorted(v.uid for v in t.free if v not in bound))


def content(t: Term) -> tuple[Const, Term]:
    """(c, u) with t = c·u: the number that all terms of `t` have in front, if they are multiples of it by integers.

    8 a − 4 b is 4 (2 a − b), and a/2 + 3 b/2 is (a + 3 b)/2; a/2 + b stays, and −a/2 − b is −(a/2 + b).
    """
    if not isinstance(t, Add):
        return split_coefficient(t)
    coefficients = [split_coefficient(u)[0] for u in t.terms]
    denominators = {c.real.denominator for c in coefficients}
    if any(c.imag for c in coefficients):
        return ONE, t
    sign = -1 if all(c.real < 0 for c in coefficients) else 1
    if len(denominators) > 1:
        return (MINUS_ONE, add(*map(neg, t.terms))) if sign < 0 else (ONE, t)
    size = number(Fraction(sign * gcd(*(c.real.numerator for c in coefficients)), denominators.pop()))
    return size, add(*(mul(reciprocal(size), u) for u in t.terms))
