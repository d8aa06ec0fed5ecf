"""The pushforward of a map in combinators (Eq. 10–13): the C rule, the B rule, and the rows of Table 1.

    ℱ(C g)(x, k)   = b ↦ ℱ(g b)(x, k)
    ℱ(B f g)(x, k) = ℱ(f)(g(x), ℱ(g)(x, k)) + ℱ(x ↦ f)(x, k)(g(x))

k is the tangent of x, of x's own type, and the result is the tangent of the value. There is no δ here: what the B rule
of the pullback says with δ(g(x), i, k) is an application at g(x).

A tangent that is multiplied by what is 0 outside of a guard is guarded, too, where it may be infinite.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from combdiff.calculus.combinators import B, C, Comb, Edge, Fork, I, K, Moving
from combdiff.calculus.primitives import zero_of_type
from combdiff.terms.conditions.guards import guarded, is_finite, unguarded
from combdiff.terms.conditions.kinks import is_at_a_point
from combdiff.terms.terms import (
    Lam,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    apply,
    delta,
    factors_of,
    fresh,
    lam,
    mul,
    proj,
    refreshed,
    terms_of,
    total,
)
from combdiff.terms.types import Map, Product, Type


def push_forward(comb: Comb, k: Term, partial: Collection[Var] | None = None) -> list[Term]:
    """The summands of ℱ(comb)(x, k), which is linear in k.

    `partial` are the variables that may be infinite; None where nothing is guarded, and they do not matter.

    >>> from combdiff.calculus.combinators import eliminate
    >>> from combdiff.terms.terms import call
    >>> from combdiff.terms.types import REAL
    >>> x, k = fresh("x", REAL), fresh("k", REAL)
    >>> push_forward(eliminate(x, call("sin", x)), k) == [mul(call("cos", x), k)]
    True
    """
    match comb:
        case I():
            return [k]
        case K():
            return []
        case C(params, inner):
            return _c_rule(params, inner, k, partial)
        case Moving(inner, edges):
            return push_forward(inner, k, partial) + [s for edge in edges for s in _edge_rule(edge, k, partial)]
        case B():
            return _b_rule(comb, k, partial)
        case Fork(items):
            kinds = [item.value.type for item in items]
            return [_item(n, s, kinds) for n, item in enumerate(items) for s in push_forward(item, k, partial)]
    raise AssertionError(f"unknown combinator {type(comb).__name__}")


def _item(number: int, summand: Term, kinds: Sequence[Type]) -> Term:
    """A tuple that is 0 but for one item."""
    return Tuple(tuple(summand if n == number else zero_of_type(kind) for n, kind in enumerate(kinds)))


def _c_rule(params: tuple[Var, ...], inner: Comb, k: Term, partial: Collection[Var] | None) -> list[Term]:
    """b ↦ ℱ(g b)(x, k), where `inner` is g b; with names of its own, for it may come to stand beside g."""
    return [refreshed(lam(params, summand)) for summand in push_forward(inner, k, partial)]


def _b_rule(comb: B, k: Term, partial: Collection[Var] | None) -> list[Term]:
    """The chain rule, and what f captures."""
    at = comb.inner.value
    parts: list[Term] = []
    if not isinstance(comb.inner, K):
        parts += [comb.outer.pushforward(at, summand) for summand in push_forward(comb.inner, k, partial)]
    if comb.capture is not None:
        within = partial
        if partial is not None and isinstance(comb.capture, C) and not is_finite(at, partial):
            within = {*partial, *comb.capture.params}
        where = _arguments(at, comb.capture.value.type)
        parts += [apply(slope, *where) for slope in push_forward(comb.capture, k, within)]
    return [_guarded(term, partial) for part in parts for term in terms_of(part)]


def _arguments(at: Term, f: Type) -> tuple[Term, ...]:
    """The arguments of a map of type `f`, which are one value or a tuple."""
    assert isinstance(f, Map), "what B composes is a map"
    return at.items if isinstance(at, Tuple) and len(f.params) == len(at.items) else (at,)


def _guarded(t: Term, partial: Collection[Var] | None) -> Term:
    """A product as it was, or all of it under the guards of its factors where one may be infinite.

    Those of a norm stay where they are: beside 1/norm(x) there is no value at the point that they leave out.
    """
    guard, core = unguarded(t)
    if is_finite(t, partial or ()):
        return t
    by_term = _term_by_term(core, partial or ())
    return t if all(map(is_at_a_point, guard)) and by_term is core else guarded(guard, by_term, partial or ())


def _term_by_term(t: Term, partial: Collection[Var]) -> Term:
    """u Σ_i [c] e as Σ_i [c] u e, where u may be infinite: it is if no c holds, as 1/√(Σ_i relu(x(i))) is."""
    factors = factors_of(t)
    for n, f in enumerate(factors):
        others = mul(*factors[:n], *factors[n + 1 :])
        if not isinstance(f, Sum) or all(map(is_at_a_point, unguarded(f.body)[0])) or is_finite(others, partial):
            continue
        inner = refreshed(f)
        assert isinstance(inner, Sum), "a sum with other names"
        guard, core = unguarded(inner.body)
        return total(inner.indices, guarded(guard, mul(others, core), partial))
    return t


def _edge_rule(edge: Edge, k: Term, partial: Collection[Var] | None) -> list[Term]:
    """What a jump of F adds where its place, w = 0, moves: δ(w) ẇ (F₊ − F₋)."""
    zero = edge.jump.zero
    return [
        total(edge.jump.over, delta(zero.variable, zero.at, mul(zero.measure, edge.jump.height, speed)))
        for speed in push_forward(edge.place, k, partial)
    ]


def sum_of(parts: Sequence[Term], kind: Type) -> Term:
    """The sum of values of one type, entry by entry where they are maps or tuples.

    >>> from combdiff.terms.terms import ONE, TWO
    >>> from combdiff.terms.types import REAL
    >>> sum_of([Tuple((ONE, TWO)), Tuple((ONE, ONE))], Product((REAL, REAL))) == Tuple((TWO, add(ONE, TWO)))
    True
    """
    if len(parts) == 1:
        return parts[0]
    match kind:
        case Map(kinds, result):
            named = next((p.params for p in parts if isinstance(p, Lam)), None)
            names = [p.name for p in named] if named else [f"d{n + 1}" for n in range(len(kinds))]
            slots = tuple(fresh(name, kind) for name, kind in zip(names, kinds, strict=True))
            return Lam(slots, sum_of([apply(p, *slots) for p in parts], result))
        case Product(items):
            return Tuple(tuple(sum_of([proj(n, p) for p in parts], item) for n, item in enumerate(items)))
        case _:
            return add(*parts)
