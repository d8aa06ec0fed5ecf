"""Integrates Dirac δs whose place would move before the integrand is differentiated.

    ∫ δ(b x, a, f(x)) dx   becomes   f(a / b) / |b|

whose derivative by a is an ordinary one; the derivative of δ itself would stand in the integral of an integration by
parts. A δ whose place does not depend on what is differentiated is left to the simplifier, unless it compares a
variable on which a condition depends that does move: δ(x, y, …) makes two conditions on x and on y one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product

from combdiff.calculus.affine import Zero, zero_of
from combdiff.calculus.jumps.conditions import is_peak, moves, numbers_among, written_out
from combdiff.calculus.jumps.monotone import root_of
from combdiff.records import dataclass
from combdiff.terms.terms import (
    ONE,
    Add,
    Call,
    Conj,
    Delta,
    Indicator,
    Lam,
    Mul,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    apply,
    call,
    conj,
    delta,
    indicator,
    mul,
    refreshed,
    sub,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import Map, Number


def with_conditions_settled(
    body: Term, k: Term, values: Mapping[Var, Term], targets: Collection[Var]
) -> tuple[Term, Term]:
    """`body` with cotangent k as its derivative is taken: no δ in it moves, and equal conditions look alike.

    A map of numbers that is a δ itself, t ↦ δ(t, a, …), is paired with its cotangent: Re⟨k, body⟩ with the cotangent 1.
    """
    body = without_moving_peaks(written_out(body, values), targets)
    over: tuple[Var, ...] = ()
    entry, of_entry = body, k
    while isinstance(entry, Lam):
        of_entry = apply(of_entry, *entry.params)
        over += entry.params
        entry = entry.body
    if not (isinstance(entry.type, Number) and _is_moving_peak(entry, over, targets)):
        return body, k
    pairing = total(over, call("real", mul(conj(of_entry), entry)))
    return without_moving_peaks(pairing, targets), ONE


def _is_moving_peak(t: Term, params: Collection[Var], targets: Collection[Var]) -> bool:
    own = numbers_among(params)
    return bool(own) and any(moves(u, own, targets) for u in subterms(t, Delta))


def without_moving_peaks(t: Term, targets: Collection[Var]) -> Term:
    """`t` with every δ done away with whose derivative by one of `targets` would be needed, where it can be solved.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> without_moving_peaks(Sum((x,), Delta(x, a, mul(x, x))), [a]) == mul(a, a)
    True
    """
    if not any(map(is_peak, subterms(t))):
        return t

    def visit(u: Term) -> Term:
        if not isinstance(u, Sum) or not _moves(u, targets):
            return u
        inner = refreshed(u)
        assert isinstance(inner, Sum), "a sum with other names"
        return _integrated(inner.indices, inner.body)

    return Traverser(visit)(t)


def without_bending_peaks(t: Term) -> Term:
    """`t` with every integral over a δ of a function that is no affine one, and has one root.

    >>> from combdiff.terms.terms import fresh, number, power
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> print(type(without_bending_peaks(Sum((x,), Delta(add(x, power(x, number(3))), a, x)))).__name__)
    Mul
    """

    def visit(u: Term) -> Term:
        own = numbers_among(u.indices) if isinstance(u, Sum) else []
        if not isinstance(u, Sum) or not own or not any(_bends(d, own) for d in subterms(u.body)):
            return u
        inner = refreshed(u)
        assert isinstance(inner, Sum), "a sum with other names"
        return _integrated(inner.indices, inner.body)

    return Traverser(visit)(t)


def _bends(t: Term, own: Collection[Var]) -> bool:
    if not isinstance(t, Delta) or not is_peak(t) or isinstance(t.left.type, Map):
        return False
    w = sub(t.left, t.right)
    return zero_of(w, own) is None and root_of(w, own) is not None


def _moves(t: Sum, targets: Collection[Var]) -> bool:
    """Whether a condition on a variable of the integral depends on one of `targets`."""
    own = numbers_among(t.indices)
    return bool(own) and any(moves(u, own, targets) for u in subterms(t.body))


@dataclass(frozen=True, slots=True)
class _Part:
    """Σ_over of a factor under the conditions left = right."""

    factor: Term
    conditions: tuple[tuple[Term, Term], ...] = ()
    over: tuple[Var, ...] = ()

    def map(self, f: Callable[[Term], Term]) -> _Part:
        """The part with another factor."""
        return replace(self, factor=f(self.factor))


def _integrated(indices: Sequence[Var], body: Term) -> Term:
    """Σ_indices body, every δ of numbers solved that can be; the integral of what has none is left."""
    return add(*(_met((*indices, *part.over), part) for part in _parts(body)))


def _met(indices: Sequence[Var], part: _Part) -> Term:
    """Σ_indices of one product of δs and a factor."""
    own = numbers_among(indices)
    for n, (left, right) in enumerate(part.conditions):
        zero = _solution(left, right, own)
        if zero is None:
            continue
        rest = part.factor
        for one, other in part.conditions[:n] + part.conditions[n + 1 :]:
            rest = delta(one, other, rest)
        if zero.rising:
            rest = _without_images(rest, left, right, zero.variable)
        found = substitute(mul(zero.measure, rest), {zero.variable: zero.at})
        # what was under one δ may be under the others still, at another place
        return _integrated([v for v in indices if v is not zero.variable], found)
    body = part.factor
    for left, right in part.conditions:
        body = delta(left, right, body)
    return total(indices, body)


def _without_images(t: Term, left: Term, right: Term, v: Var) -> Term:
    """`t` where g(v) = y, with y in the place of g(v)."""
    image, place = (left, right) if v in left.free else (right, left)
    return t if v in place.free else Traverser(lambda u: place if u == image else u)(t)


def _solution(left: Term, right: Term, own: Sequence[Var]) -> Zero | None:
    """Where left = right, by one of the variables of the integral."""
    if isinstance(left.type, Map):
        sides = ((v, other) for v, other in ((left, right), (right, left)) if isinstance(v, Var) and v in own)
        return next((Zero(v, other, ONE) for v, other in sides if v not in other.free), None)
    w = sub(left, right)
    numbers = [v for v in own if v.kind == w.type]
    return zero_of(w, numbers) or root_of(w, numbers)


def _parts(t: Term) -> list[_Part]:
    """`t` as a sum of parts, as far as it is linear in its δ's of numbers."""
    if not any(map(is_peak, subterms(t))):
        return [_Part(t)]
    match t:
        case Delta(left, right, body) if is_peak(t):
            return [replace(p, conditions=((left, right), *p.conditions)) for p in _parts(body)]
        case Delta(left, right, body):
            return [p.map(lambda e: delta(left, right, e)) for p in _parts(body)]
        case Indicator(left, right, body):
            return [p.map(lambda e: indicator(left, right, e)) for p in _parts(body)]
        case Conj(u):
            return [p.map(conj) for p in _parts(u)]
        case Call("real" | "imag" as name, (u,)):
            return [p.map(lambda e: call(name, e)) for p in _parts(u)]
        case Add(terms):
            return [p for u in terms for p in _parts(u)]
        case Mul(factors):
            return [_product(choice) for choice in product(*map(_parts, factors))]
        case Sum(indices, body):
            return [_summed(indices, p) for p in _parts(body)]
        case _:
            return [_Part(t)]


def _summed(indices: Sequence[Var], part: _Part) -> _Part:
    """A part of a sum inside of the integral: what is under a δ comes out of it."""
    if not part.conditions:
        return _Part(total(indices, part.factor))
    return replace(part, over=(*indices, *part.over))


def _product(choice: Sequence[_Part]) -> _Part:
    return _Part(
        mul(*(p.factor for p in choice)),
        tuple(c for p in choice for c in p.conditions),
        tuple(v for p in choice for v in p.over),
    )
