"""Sums over sums of products become sums of sums, each of which may be a chain of products of matrices.

    Σ_ij K(i, j) (a(i) a(j) + b(i) b(j))   is   Σ_ij K(i, j) a(i) a(j) + Σ_ij K(i, j) b(i) b(j)

The array in the brackets, which has an axis for each index, is never made. What may lose digits stays: differences of
entries, as x(i) − x(j), and terms that cancel where indices meet, as in a(i) b(j) − a(j) b(i).
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

from combdiff.terms.network import Network, network
from combdiff.terms.terms import (
    ZERO,
    Add,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    mul,
    split_coefficient,
    substitute,
    terms_of,
    total,
)
from combdiff.terms.types import Type

MOST = 8
"""Terms that one sum may become."""


def distributed(t: Term) -> Term:
    """`t` with sums in the place of sums over products in brackets, where each loses an axis at least.

    >>> from combdiff.terms.terms import App, fresh
    >>> from combdiff.terms.types import REAL, Index, Map
    >>> n = Index()
    >>> (a, b), (i, j) = (fresh(s, Map((n,), REAL)) for s in "ab"), (fresh(s, n) for s in "ij")
    >>> K = fresh("K", Map((n, n), REAL))
    >>> pair = add(mul(App(a, (i,)), App(a, (j,))), mul(App(b, (i,)), App(b, (j,))))
    >>> found = distributed(total((i, j), mul(App(K, (i, j)), pair)))
    >>> isinstance(found, Add), len(terms_of(found))
    (True, 2)
    """
    return Traverser(_of_terms, Sum)(t)


def _of_terms(t: Term) -> Term:
    if not isinstance(t, Sum) or t.counted is not None:
        return t
    whole = network(t)
    found = [whole.factors]
    for n, factor in enumerate(whole.factors):
        terms = terms_of(factor)
        if isinstance(factor, Add) and len(found) * len(terms) <= MOST and _comes_apart(factor, whole.indices):
            found = [(*f[:n], term, *f[n + 1 :]) for f in found for term in terms]
    if len(found) == 1:
        return t
    return mul(whole.coefficient, add(*(_summed(whole.indices, factors) for factors in found)))


def _summed(indices: tuple[Var, ...], factors: tuple[Term, ...]) -> Term:
    coefficient, product = split_coefficient(mul(*factors))
    return mul(coefficient, total(indices, product))


def _comes_apart(bracket: Add, indices: Collection[Var]) -> bool:
    """Whether each term is a product of factors with fewer of the `indices` than the bracket has, and none cancel."""
    own = bracket.free.intersection(indices)
    terms = [network(u) for u in terms_of(bracket)]
    return all(_is_product(u, own) for u in terms) and not any(_cancel(u, v, own) for u, v in combinations(terms, 2))


def _is_product(term: Network, own: Collection[Var]) -> bool:
    parts = [found for f in term.factors if (found := f.free.intersection(own))]
    return len(parts) > 1 and all(len(part) < len(own) for part in parts)


def _cancel(one: Network, other: Network, own: Collection[Var]) -> bool:
    """Whether two terms add up to 0 where all indices of a type are the same."""
    if add(one.coefficient, other.coefficient) != ZERO:
        return False
    first: dict[Type, Var] = {}
    met: dict[Var, Term] = {v: first.setdefault(v.kind, v) for v in own}
    a, b = (substitute(u.bare(), met) for u in (one, other))
    return a == b
