"""A term as a flat product: number · Σ over indices · factors, none of which is itself a number, product or sum of one.

    2 * sum(i, A(i, j) * sum(k, B(i, k)))   becomes   2, (i, k), (A(i, j), B(i, k))

A sum of terms in a product stays one factor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from combdiff.terms.terms import (
    ONE,
    Add,
    Call,
    Conj,
    Const,
    Mul,
    Pow,
    Sum,
    Term,
    Var,
    add,
    mul,
    number,
    reciprocal,
    refreshed,
    split_coefficient,
    total,
)
from combdiff.terms.types import Index


@dataclass(frozen=True, slots=True)
class Product:
    """coefficient · Σ_indices factors."""

    coefficient: Const
    indices: tuple[Var, ...]
    factors: tuple[Term, ...]

    def term(self) -> Term:
        """The product as a term."""
        return mul(self.coefficient, total(self.indices, mul(*self.factors)))

    def bare(self) -> Term:
        """The term without its number."""
        return total(self.indices, mul(*self.factors))


def product_of(term: Term) -> Product:
    """`term` as a flat product.

    >>> from combdiff.terms.terms import App, Sum, fresh
    >>> from combdiff.terms.types import REAL, Index, Map
    >>> n = Index()
    >>> x, i = fresh("x", Map((n,), REAL)), fresh("i", n)
    >>> p = product_of(mul(ONE, Sum((i,), App(x, (i,)))))
    >>> p.indices == (i,), p.factors == (App(x, (i,)),)
    (True, True)
    """
    coefficient, bare = split_coefficient(term)
    indices: list[Var] = []
    factors: list[Term] = []
    _flatten(bare, indices, factors)
    numbers = [f for f in factors if isinstance(f, Const)]
    if numbers:
        coefficient, _ = split_coefficient(mul(coefficient, *numbers))
        factors = [f for f in factors if not isinstance(f, Const)]
    return Product(coefficient, tuple(indices), tuple(factors))


def _flatten(t: Term, indices: list[Var], factors: list[Term]) -> None:
    if t == ONE:
        return
    match t:
        case Sum(bound, body) if not isinstance(body, Add):
            if not set(bound).isdisjoint(indices):
                t = refreshed(t)
                assert isinstance(t, Sum), "new names change no node"
                bound, body = t.indices, t.body
            indices += bound
            _flatten(body, indices, factors)
        case Mul(parts):
            for part in parts:
                _flatten(part, indices, factors)
        case _:
            factors.append(t)


def addends(t: Term) -> tuple[Term, ...]:
    """The terms of a sum of terms; any other term is the only one of its own."""
    return t.terms if isinstance(t, Add) and not isinstance(t.type, Index) else (t,)


def connected_parts(factors: tuple[Term, ...], links: frozenset[Var], most: int) -> Iterator[tuple[int, ...]]:
    """The sets of positions of factors that hang together by the indices in `links`: proper ones, at most `most` long.

    >>> from combdiff.terms.terms import App, fresh
    >>> from combdiff.terms.types import REAL, Index, Map
    >>> n = Index()
    >>> x, y, i, j = fresh("x", Map((n,), REAL)), fresh("y", Map((n,), REAL)), fresh("i", n), fresh("j", n)
    >>> list(connected_parts((App(x, (i,)), App(y, (i,)), App(y, (j,))), frozenset((i, j)), 2))
    [(0,), (1,), (2,), (0, 1)]
    """
    held = [f.free & links for f in factors]
    layer: set[tuple[int, ...]] = {(n,) for n in range(len(factors))}
    size = 1
    while layer and size <= most and size < len(factors):
        yield from sorted(layer)
        grown = set()
        for part in layer:
            reach = frozenset().union(*(held[n] for n in part))
            grown |= {tuple(sorted((*part, n))) for n in range(len(factors)) if n not in part and held[n] & reach}
        layer = grown
        size += 1


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

    8 a − 4 b is 4 (2 a − b), and a/2 + 3 b/2 is (a + 3 b)/2; a/2 + b stays.
    """
    if not isinstance(t, Add):
        return split_coefficient(t)
    coefficients = [split_coefficient(u)[0] for u in t.terms]
    denominators = {c.real.denominator for c in coefficients}
    if len(denominators) > 1 or any(c.imag for c in coefficients):
        return ONE, t
    sign = -1 if all(c.real < 0 for c in coefficients) else 1
    size = number(Fraction(sign * gcd(*(c.real.numerator for c in coefficients)), denominators.pop()))
    return size, add(*(mul(reciprocal(size), u) for u in t.terms))
