"""Sums of derivatives of eigenvalues, written with eigenvectors.

    Σᵢ k(i) eigvals(A, K)(i) = Re Σ spectral(A, k)(p, q)' K(p, q)

Where eigenvalues meet, their derivatives depend on how eigenvectors are chosen, and the sum does not if all of these
have one weight: what is made of eigenvectors sees the weights, and is nan where they differ.
"""

from __future__ import annotations

from combdiff.terms.laws.matrices import Matrix, applied, directions_of, matrix_of
from combdiff.terms.nodes import (
    ALONG,
    ONE,
    SPECTRAL,
    VECTORS,
    Add,
    App,
    Delta,
    Indicator,
    Lam,
    Let,
    Mul,
    Reduce,
    Sum,
    Term,
    Var,
)
from combdiff.terms.schema import children
from combdiff.terms.terms import add, apply, call, conj, delta, fresh, indicator, mul, refreshed, total
from combdiff.terms.traversal import Traverser, rebuild, subterms
from combdiff.terms.types import is_complex

RATES = VECTORS & ALONG
_VECTORS_OF = {"eigvals_along": "spectral", "svdvals_along": "singular"}


def with_weights_seen(t: Term) -> Term:
    """`t` with sums of derivatives of eigenvalues, or of singular values, as products of matrices.

    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> A, K, i = fresh("A", Map((n, n), REAL)), fresh("K", Map((n, n), REAL)), fresh("i", n)
    >>> rates = applied("eigvals", Matrix.of(A).term, Matrix.of(K).term)
    >>> has_rates(with_weights_seen(total((i,), apply(rates, i))))
    False
    """
    if not has_rates(t):
        return t
    return _seen(_written_out(t), {})


def has_rates(t: Term) -> bool:
    """Whether it has derivatives of eigenvalues or of singular values, one by one."""
    return any(u.kind in RATES for u in subterms(t, Reduce))


def _written_out(t: Term) -> Term:
    """`t` with definitions in the place of their names, if they have such derivatives."""
    values: dict[Term, Lam] = {}
    for u in subterms(t):
        for var, value in u.bindings if isinstance(u, Let) else ():
            if isinstance(value, Lam) and (has_rates(value) or not value.free.isdisjoint(values)):
                values[var] = value

    def visit(u: Term) -> Term:
        if isinstance(u, App) and u.function in values:
            return Traverser(visit)(apply(refreshed(values[u.function]), *u.args))
        return u

    return Traverser(visit)(t) if values else t


def _seen(t: Term, known: dict[Term, Term]) -> Term:
    """`t` from the outermost sums on: inner ones are parts of their weights.

    Numbers of eigenvectors stay: the derivatives in them are parts of a sum with those of the eigenvectors.
    """
    if isinstance(t, Reduce) and t.kind in SPECTRAL:
        return t
    if t not in known:
        known[t] = _rewritten(t) or rebuild(t, [_seen(u, known) for u in children(t)]) if has_rates(t) else t
    return known[t]


def _rewritten(t: Term) -> Term | None:
    """A sum, or a derivative at a constant index, that is linear in derivatives."""
    match t:
        case Sum(indices, body):
            parts = _linear(body, indices)
            if parts is None:
                return None
            return add(*(total(over, w) if rate is None else _contracted(over, w, rate) for over, w, rate in parts))
        case App(Reduce(kind) as whole, (place,)) if kind in RATES and not place.free:
            i = fresh("i", whole.indices[1].kind)
            return _contracted((i,), delta(place, i, ONE), App(whole, (i,)))
        case _:
            return None


def _contracted(indices: tuple[Var, ...], weight: Term, rate: App) -> Term:
    """The sum of one derivative times its weights; indices that the matrices depend on stay outside."""
    whole, i = rate.function, rate.args[0]
    assert isinstance(whole, Reduce) and isinstance(i, Var), "what `_linear` finds"
    outer = tuple(v for v in indices if v in whole.free)
    inner = tuple(v for v in indices if v not in whole.free and v != i)
    numbers = Lam((i,), total(inner, weight))
    rows, columns = (v.kind for v in whole.indices)
    weights = Matrix(rows, columns, lambda _, j: apply(numbers, j))
    made = applied(_VECTORS_OF[whole.kind], matrix_of(whole), weights.term)
    (direction,) = directions_of(whole)
    p, q = fresh("p", rows), fresh("q", columns)
    product = total((p, q), mul(conj(apply(made, p, q)), apply(direction, p, q)))
    return total(outer, call("real", product) if is_complex(product.type) else product)


Part = tuple[tuple[Var, ...], Term, App | None]
"""What is summed over, a weight, and perhaps a derivative at one of these indices."""


def _linear(t: Term, over: tuple[Var, ...]) -> list[Part] | None:
    """The parts of a sum over indices; None if it is not linear in the derivatives, or not seen to be."""
    match t:
        case App(Reduce(kind) as whole, (Var() as i,)) if kind in RATES and i in over and i not in whole.free:
            return [(over, ONE, t)] if i.kind == whole.indices[1].kind else None
        case _ if not has_rates(t):
            return [(over, t, None)]
        case Add(terms):
            found = [_linear(u, over) for u in terms]
            known = [parts for parts in found if parts is not None]
            return [part for parts in known for part in parts] if len(known) == len(found) else None
        case Mul(factors):
            moving = [f for f in factors if has_rates(f)]
            inner = _linear(moving[0], over) if len(moving) == 1 else None
            rest = [f for f in factors if f is not moving[0]]
            return None if inner is None else [(own, mul(w, *rest), rate) for own, w, rate in inner]
        case Delta(left, right, body) | Indicator(left, right, body):
            inner = _linear(body, over)
            made = delta if isinstance(t, Delta) else indicator
            return None if inner is None else [(own, made(left, right, w), rate) for own, w, rate in inner]
        case Sum():
            own_ = refreshed(t)
            assert isinstance(own_, Sum), "renaming keeps the node"
            return _linear(own_.body, (*over, *own_.indices))
        case _:
            return None
