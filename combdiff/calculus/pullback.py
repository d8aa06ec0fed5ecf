"""The pullback of a map in combinators: the C rule (Eq. 23), the B rule (Eq. 27) and Table 1.

    𝒫(C g)(x, k)   = Σ_b 𝒫(g b)(x, k(b))
    𝒫(B f g)(x, k) = 𝒫(g)(x, 𝒫(f)(g(x), k)) + 𝒫(x ↦ f)(x, i ↦ δ(g(x), i, k))

The result is a list of summands: everything here is linear in the cotangent, so that a Σ over a sum is the sum of the
Σ's. Where x is a map (a tensor), a summand is the cotangent's entry at `slots`. Σ, δ and conj are left standing;
`simplify.contract` makes them meet.

A cotangent that is 0 outside of a guard is not multiplied by what may be infinite there: the product is guarded, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from combdiff.calculus.combinators import B, C, Comb, Edge, Fork, I, K, Moving
from combdiff.calculus.primitives import Primitive
from combdiff.terms.conditions.guards import both, guarded, is_finite, unguarded
from combdiff.terms.conditions.ordering import support
from combdiff.terms.terms import (
    Lam,
    Term,
    Tuple,
    Var,
    add,
    apply,
    call,
    conj,
    delta,
    fresh,
    is_zero,
    items_of,
    lam,
    mul,
    proj,
    slots_of,
    terms_of,
    total,
)
from combdiff.terms.types import Index, Map, Product, Type


def pull_back(
    comb: Comb, k: Term, slots: Sequence[Var] = (), over: Sequence[Var] = (), partial: Collection[Var] | None = None
) -> list[Term]:
    """The summands of Σ_over 𝒫(comb)(x, k) at the entry `slots`.

    `partial` are the variables that may be infinite; None where nothing is guarded, and they do not matter.
    """
    inside = [v for v in over if v not in comb.value.free and _goes_inside(v, k)]
    if inside:
        k = _summed(inside, k)
        over = [v for v in over if v not in inside]
    match comb:
        case I():
            entry = apply(k, *slots) if slots else k
            return [_summed(over, entry) if isinstance(entry.type, Map) else total(over, entry)]
        case K():
            return []
        case C(params, inner):
            return c_rule(params, inner, k, slots, over, partial)
        case Moving(inner, edges):
            moved = [s for edge in edges for s in edge_rule(edge, k, slots, over, partial)]
            return pull_back(inner, k, slots, over, partial) + moved
        case B():
            return b_rule(comb, k, slots, over, partial)
        case Fork(items):
            parts = [(item, _part(k, n, len(items))) for n, item in enumerate(items)]
            pulled = [pull_back(item, part, slots, over, partial) for item, part in parts if not is_zero(part)]
            return [summand for summands in pulled for summand in summands]
    raise AssertionError(f"unknown combinator {type(comb).__name__}")


def _part(k: Term, n: int, count: int) -> Term:
    return k if count == 1 else proj(n, k)


def _goes_inside(v: Var, k: Term) -> bool:
    """A pullback is linear in k, so that the Σ over all numbers meets its δ there (Eq. 35 to 36).

    So does a Σ over an index where k is a map: an unknown pullback is given j ↦ Σ_i δ(i, j, …), not asked n times.
    """
    of_indices = isinstance(k.type, Map) and all(isinstance(kind, Index) for kind in k.type.params)
    return of_indices or not isinstance(v.kind, Index)


def _summed(over: Sequence[Var], k: Term) -> Term:
    """Σ_over k, entry by entry where k is a map or a tuple."""
    match k.type:
        case Map():
            slots = slots_of(k)
            return Lam(slots, _summed(over, apply(k, *slots)))
        case Product(items):
            return Tuple(tuple(_summed(over, proj(n, k)) for n in range(len(items))))
        case _:
            return add(*(total(over, part) for part in terms_of(k)))


def c_rule(
    params: tuple[Var, ...],
    inner: Comb,
    k: Term,
    slots: Sequence[Var],
    over: Sequence[Var] = (),
    partial: Collection[Var] | None = None,
) -> list[Term]:
    """Eq. 23: Σ_b 𝒫(g b)(x, k(b)), where `inner` is g b."""
    return pull_back(inner, apply(k, *params), slots, (*over, *params), partial)


def edge_rule(
    edge: Edge, k: Term, slots: Sequence[Var], over: Sequence[Var], partial: Collection[Var] | None = None
) -> list[Term]:
    """What a jump of F adds where its place, w = 0, moves: Σ_over 𝒫(x ↦ w)(x, δ(w, 0, Re (F₊ − F₋)' k))."""
    zero = edge.jump.zero
    height = call("real", mul(conj(edge.jump.height), k))
    met = delta(zero.variable, zero.at, mul(zero.measure, height))
    return pull_back(edge.place, met, slots, (*over, *edge.jump.over), partial)


def b_rule(
    comb: B, k: Term, slots: Sequence[Var], over: Sequence[Var] = (), partial: Collection[Var] | None = None
) -> list[Term]:
    """Eq. 27. The second term exists where f captures x, and is what propagates backwards."""
    at = comb.inner.value
    chain: list[Term] = []
    if not isinstance(comb.inner, K):
        for part in terms_of(_pulled(comb.outer, at, k, partial)):
            chain += pull_back(comb.inner, part, slots, over, partial)
    if comb.capture is None:
        return chain
    if partial is not None and isinstance(comb.capture, C) and not is_finite(at, partial):
        partial = {*partial, *comb.capture.params}
    return chain + pull_back(comb.capture, _where_reached(at, k, comb.capture.value.type), slots, over, partial)


def _pulled(outer: Primitive, at: Term, k: Term, partial: Collection[Var] | None) -> Term:
    """𝒫(f)(g(x), k), guarded as k is where what k is multiplied by may be infinite."""
    if partial is None or is_finite(outer.pullback(at, fresh("k", k.type)), partial):
        return outer.pullback(at, k)
    guard, core = unguarded(k)
    reached = both(guard, (c for c in support(core) if not c.equal))
    return guarded(reached, outer.pullback(at, core), partial)


def _where_reached(at: Term, k: Term, f: Type) -> Term:
    """i ↦ δ(g(x), i, k): the cotangent of f in f(g(x)); i is as many variables as f has arguments.

    Where the value of f is itself a map, i ↦ j ↦ δ(g(x), i, k(j)).
    """
    assert isinstance(f, Map), "what B composes is a map"
    arguments = items_of(at)
    points = [fresh("t", kind) for kind in f.params]
    slots = [fresh("d", kind) for kind in k.type.params] if isinstance(k.type, Map) else []
    body = apply(k, *slots) if slots else k
    for point, argument in reversed(list(zip(points, arguments, strict=True))):
        body = delta(argument, point, body)
    return lam(points, lam(slots, body) if slots else body)
