"""Recognises positive definite matrices, declared or by construction: they have a Cholesky factor.

    K                       where K is declared, K::SPD, or a space has `definite = true`
    B Bᴴ, B K Bᴴ            semidefinite, for any B
    K + s² I, B Bᴴ + I      a sum of such, definite if one term is

A semidefinite matrix that has an inverse is definite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

from combdiff.terms.branches import above_zero, at_least_zero
from combdiff.terms.terms import (
    App,
    Conj,
    Delta,
    Lam,
    Mul,
    Reduce,
    Sum,
    Term,
    Var,
    apply,
    conj,
    mul,
    split_coefficient,
    substitute,
    terms_of,
)
from combdiff.terms.types import Map


class Sign(IntEnum):
    """What is known of the eigenvalues of a Hermitian matrix."""

    UNKNOWN = 0
    SEMIDEFINITE = 1
    DEFINITE = 2


def has_factor(whole: Reduce, values: Mapping[Var, Term]) -> bool:
    """Whether the matrix that a function of matrices is of has Cholesky's factor, or the function has no value.

    `values` are those of definitions.

    >>> from combdiff.terms.terms import ONE, add, fresh, neg, reduction
    >>> from combdiff.terms.types import REAL, SYMMETRIC, Domain, Index
    >>> n = Index(Domain("n"))
    >>> K, i, j = fresh("K", Map((n, n), REAL, (SYMMETRIC,), definite=True)), fresh("i", n), fresh("j", n)
    >>> entry = App(K, (i, j))
    >>> [has_factor(reduction("logdet", (i, j), ONE, e), {}) for e in (entry, add(entry, Delta(i, j, ONE)), neg(entry))]
    [True, True, False]
    """
    i, j = whole.indices
    needed = Sign.SEMIDEFINITE if whole.kind == "inv" else Sign.DEFINITE
    return sign_of(whole.body, i, j, values) >= needed


def sign_of(entry: Term, i: Var, j: Var, values: Mapping[Var, Term]) -> Sign:
    """What is known of the matrix with these entries."""
    if i.kind != j.kind:
        return Sign.UNKNOWN
    signs = [_of_term(t, i, j, values) for t in terms_of(entry)]
    return max(signs) if signs and Sign.UNKNOWN not in signs else Sign.UNKNOWN


def _of_term(t: Term, i: Var, j: Var, values: Mapping[Var, Term]) -> Sign:
    coefficient, rest = split_coefficient(t)
    if not above_zero(coefficient):
        return Sign.UNKNOWN
    match rest:
        case Conj(u):
            return _of_term(u, i, j, values)
        case Delta(left, right, body) if {left, right} == {i, j}:
            return _of_number(body)
        case App(Var(kind=Map(definite=True)), args) if set(args) == {i, j}:
            return Sign.DEFINITE
        case App(Var() as v, args) if set(args) == {i, j} and isinstance(values.get(v), Lam):
            return sign_of(apply(values[v], i, j), i, j, values)
        case App(Reduce("inv") as inverse, args) if set(args) == {i, j}:
            return Sign.DEFINITE if has_factor(inverse, values) else Sign.UNKNOWN
        case Sum(indices, body):
            return _of_product(body, i, j, indices, values)
        case Mul(factors):
            scale = [f for f in factors if not f.free & {i, j}]
            matrix = mul(*(f for f in factors if f.free & {i, j}))
            if scale and all(map(at_least_zero, scale)):
                return min(_of_term(matrix, i, j, values), _of_number(mul(*scale)))
            return _of_product(rest, i, j, (), values)
        case _:
            return Sign.UNKNOWN


def _of_number(t: Term) -> Sign:
    """That of t I; what may be 0 makes it semidefinite."""
    if above_zero(t):
        return Sign.DEFINITE
    return Sign.SEMIDEFINITE if at_least_zero(t) else Sign.UNKNOWN


def _of_product(body: Term, i: Var, j: Var, summed: tuple[Var, ...], values: Mapping[Var, Term]) -> Sign:
    """Σ w B(i, k) B(j, k)*, or with a definite matrix K(k, l) between B(i, k) and B(j, l)*."""
    coefficient, rest = split_coefficient(body)
    factors = rest.factors if isinstance(rest, Mul) else (rest,)
    found = above_zero(coefficient) and any(
        _mirrored(others, turn, i) for turn, others in _turns(factors, i, j, summed, values)
    )
    return Sign.SEMIDEFINITE if found else Sign.UNKNOWN


def _turns(
    factors: tuple[Term, ...], i: Var, j: Var, summed: tuple[Var, ...], values: Mapping[Var, Term]
) -> Iterator[tuple[dict[Var, Term], tuple[Term, ...]]]:
    """Exchanges of i with j and of summed indices, and the factors without a matrix in the middle."""
    middles: list[tuple[tuple[tuple[Var, Var], ...], tuple[Term, ...]]] = [(((i, j),), factors)]
    for n, f in enumerate(factors):
        match f:
            case App(_, (Var() as k, Var() as l)) if k != l and {k, l} <= {*summed} and sign_of(f, k, l, values):
                others = (*factors[:n], *factors[n + 1 :])
                middles += [(((i, j), (k, l)), others), (((i, j), (l, k)), others)]
    for pairs, others in middles:
        left = [v for v in summed if not any(v in pair for pair in pairs)]
        for more in _pairings(left[:_MOST]):
            yield {v: w for pair in (*pairs, *more) for v, w in (pair, pair[::-1])}, others


_MOST = 4
"""Summed indices that are exchanged with one another, besides those of the matrix in the middle."""


def _pairings(left: Sequence[Var]) -> Iterator[tuple[tuple[Var, Var], ...]]:
    """All ways to exchange some indices for others of their range, in both orders."""
    if not left:
        yield ()
        return
    v, *rest = left
    yield from _pairings(rest)
    for n, w in enumerate(rest):
        if w.kind == v.kind:
            for more in _pairings([*rest[:n], *rest[n + 1 :]]):
                yield ((v, w), *more)
                yield ((w, v), *more)


def _mirrored(factors: tuple[Term, ...], turn: Mapping[Var, Term], i: Var) -> bool:
    """Whether the factors are some, their conjugates with indices exchanged, and numbers that are not negative."""
    first = [v for n, v in enumerate(turn) if n % 2 == 0]
    left = [f for f in factors if not f.free.isdisjoint(first)]
    right = [f for f in factors if not f.free.isdisjoint(turn.keys() - {*first})]
    rest = [f for f in factors if f.free.isdisjoint(turn)]
    apart = not {*left} & {*right} and any(i in f.free for f in left)
    images = Counter(conj(substitute(f, turn)) for f in left)
    return apart and images == Counter(right) and at_least_zero(mul(*rest))
