"""Integrals over an interval where a δ meets them: what it fixes may lie outside of the interval.

    ∫₀¹ δ(x / 2, t, k(x)) dx   is   2 k(2 t) for 0 ≤ 2 t ≤ 1, and 0 beyond

A variable of the interval is therefore read as any real number, under the condition that it lies inside. Where a δ puts
a point of the same interval in its place, the condition holds, and is dropped (`terms.constructors.indicator`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from combdiff.errors import UnsupportedError
from combdiff.terms.terms import (
    Add,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Mul,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    bound_by,
    ends_of,
    fresh,
    indicator,
    is_end,
    mul,
    neg,
    split_coefficient,
    substitute,
    subterms,
    terms_of,
    total,
)
from combdiff.terms.traversal import peaks_along
from combdiff.terms.types import REAL, Interval, Map, Number, Product, Type, interval_of


def with_conditions_of_intervals(t: Term) -> Term:
    """`t`, where an integral over an interval that meets a δ runs over all real numbers and has the condition.

    >>> from fractions import Fraction
    >>> from combdiff.terms.terms import delta
    >>> from combdiff.terms.types import Number
    >>> line = Number(complex=False, interval=Interval("Line", Fraction(0), Fraction(1)))
    >>> x, a = fresh("x", line), fresh("a", REAL)
    >>> with_conditions_of_intervals(total([x], delta(x, a, x))).indices[0].kind == REAL
    True
    """
    return Traverser(_visit, Sum)(t)


def with_intervals_again(t: Term, intervals: Collection[Interval]) -> Term:
    """`t`, where an integral over all real numbers that has the condition is over the interval; it has met its δs.

    >>> line = Interval("Line", Fraction(0), Fraction(1))
    >>> x = fresh("x", REAL)
    >>> with_intervals_again(total([x], inside(line, x, x)), [line]).indices[0].kind == Number(False, line)
    True
    """
    known = {Number(complex=False, interval=interval): interval for interval in intervals if interval.has_end}
    if not known:
        return t
    ordered = {ends_of(kind) for kind, interval in known.items() if interval.bounded and interval.names}
    return Traverser(lambda u: _within(_without_orders(u, ordered), known), Sum, Indicator)(t)


def _without_orders(t: Term, ordered: Collection[_Ends]) -> Term:
    """Without a condition that says that the lower end of an interval is not above the upper one."""
    return t.body if isinstance(t, Indicator) and (t.left, t.right) in ordered else t


def _within(t: Term, kinds: Collection[Number]) -> Term:
    if not isinstance(t, Sum):
        return t
    indices, body = list(t.indices), t.body
    for n, v in enumerate(indices):
        if v.kind != REAL or any(peaks_along(v, body)):
            continue
        lower, upper = _extent(v, body)
        kind = next(
            (k for k in kinds if _lies_within(lower, ends_of(k)[0]) and _lies_within(upper, ends_of(k)[1])), None
        )
        if kind is not None:
            indices[n] = fresh(v.name, kind)
            # conditions that hold on the interval are dropped
            body = substitute(body, {v: indices[n]})
    return t if indices == list(t.indices) else total(indices, body)


_Ends: TypeAlias = tuple[Term | None, Term | None]
_Bounds: TypeAlias = frozenset[Term]


def _lies_within(found: _Bounds, end: Term | None) -> bool:
    """Whether conditions say that a number is on the right side of an end; of numbers, that there is no nearer one."""
    return end in found if end is not None else not any(isinstance(b, Const) for b in found)


def _extent(v: Var, t: Term) -> tuple[_Bounds, _Bounds]:
    """From where to where `t` may differ from 0, by conditions on v; what all terms of a sum have in common."""
    match t:
        case Indicator(left, right, body):
            return _met(_half(v, left, right), _extent(v, body))
        case Mul(factors):
            return reduce(_met, (_extent(v, f) for f in factors))
        case Add(terms):
            lower, upper = zip(*(_extent(v, u) for u in terms), strict=True)
            return frozenset.intersection(*lower), frozenset.intersection(*upper)
        case Sum(_, body) | Delta(_, _, body):
            return _extent(v, body)
        case _:
            return frozenset(), frozenset()


def _met(a: tuple[_Bounds, _Bounds], b: tuple[_Bounds, _Bounds]) -> tuple[_Bounds, _Bounds]:
    """What two ranges have in common: the nearest numbers, and all that is no number."""
    return _nearest(a[0] | b[0], max), _nearest(a[1] | b[1], min)


def _nearest(bounds: _Bounds, nearest: Callable[..., Const]) -> _Bounds:
    numbers = [b for b in bounds if isinstance(b, Const)]
    others = [b for b in bounds if not isinstance(b, Const)]
    return frozenset([*others, nearest(numbers, key=lambda b: b.real)] if numbers else others)


def _half(v: Var, left: Term, right: Term) -> tuple[_Bounds, _Bounds]:
    """Where left ≤ right, if it is a condition on v and numbers."""
    slope, rest = Fraction(0), []
    for u in terms_of(add(right, neg(left))):
        coefficient, of = split_coefficient(u)
        if coefficient.imag or (of is not v and v in of.free):
            return frozenset(), frozenset()
        if of is v:
            slope += coefficient.real
        else:
            rest.append(u)
    if not slope:
        return frozenset(), frozenset()
    place = frozenset((mul(Const(-1 / slope), add(*rest)),))
    return (place, frozenset()) if slope > 0 else (frozenset(), place)


def intervals_in(t: Term) -> list[Interval]:
    """The intervals of which variables are points, or on which functions are defined."""
    variables = (v for u in subterms(t) for v in (*bound_by(u), *([u] if isinstance(u, Var) else [])))
    return list(dict.fromkeys(i for v in variables for i in _of_type(v.kind)))


def _of_type(kind: Type) -> Iterator[Interval]:
    match kind:
        case Number(interval=Interval() as interval):
            yield interval
        case Map(params, result):
            for part in (*params, result):
                yield from _of_type(part)
        case Product(items):
            for item in items:
                yield from _of_type(item)


def with_numbers_for_points(program: Term) -> Term:
    """A marked program whose parameters are no points of intervals but numbers, as a call gives them."""
    match program:
        case Lam():
            params, body = _of_numbers(program)
            return Lam(params, with_numbers_for_points(body))
        case Let(bindings, body):
            return Let(bindings, with_numbers_for_points(body))
        case Diff(kind, Lam() as f) if program.is_derivative:
            return Diff(kind, Lam(*_of_numbers(f)))
        case Diff(kind, of) if program.is_derivative:
            return Diff(kind, with_numbers_for_points(of))
        case _:
            return program


def _of_numbers(f: Lam) -> tuple[tuple[Var, ...], Term]:
    points = [p for p in f.params if interval_of(p.kind) is not None]
    free = {p: fresh(p.name, REAL) for p in points}
    return tuple(free.get(p, p) for p in f.params), substitute(f.body, dict(free))


def _visit(t: Term) -> Term:
    match t:
        case Sum(indices, body) if exposed := [v for v in indices if _has_end(v) and _is_exposed(v, body)]:
            return _over_numbers(t, exposed)
        case _:
            return t


def _over_numbers(t: Sum, points: Collection[Var]) -> Term:
    """An integral over all real numbers, under the condition that the points lie in their intervals."""
    free = {v: fresh(v.name, REAL) for v in points}
    body = substitute(t.body, dict(free))
    for v, x in free.items():
        body = inside(interval_of(v.kind), x, body)
    return total([free.get(v, v) for v in t.indices], body)


def with_moving_ends(f: Lam) -> Lam:
    """A map that is differentiated, where integrals over an interval of which an end is varied have the condition.

        d/db ∫ₐᵇ f(x) dx   is   d/db ∫ where(a ≤ x ≤ b, f(x)) dx = f(b)

    >>> from combdiff.terms.terms import call, end_named
    >>> x = fresh("x", Number(False, Interval("Line", Fraction(0), upper_name="b")))
    >>> f = Lam((end_named("b"),), total([x], call("exp", x)))
    >>> with_moving_ends(f).body.indices[0].kind == REAL
    True
    """
    varied = {p for p in f.params if is_end(p)}

    def moving(t: Term) -> Term:
        found = [v for v in t.indices if not varied.isdisjoint(ends_of(v.kind))] if isinstance(t, Sum) else []
        return _over_numbers(t, found) if isinstance(t, Sum) and found else t

    return Lam(f.params, Traverser(moving)(f.body)) if varied else f


def check_ends(f: Lam, paired: Sequence[Type]) -> None:
    """Refuse the derivative of a pairing with functions by an end of their interval, at which these have values."""
    for interval in dict.fromkeys(i for kind in paired for i in _of_type(kind)):
        for end in f.params:
            if is_end(end) and end.name in interval.names:
                raise UnsupportedError(
                    f"a function on {interval.name} is differentiated, or is a cotangent, in a second derivative by "
                    f"{end.name}, where {interval.name} ends",
                    remedy=f"differentiate by functions or by {end.name}, not by both: wrt=…",
                )


def inside(interval: Interval | None, x: Term, body: Term) -> Term:
    """`body` where x lies in the interval."""
    lower, upper = ends_of(Number(complex=False, interval=interval))
    if upper is not None:
        body = indicator(x, upper, body)
    if lower is not None:
        body = indicator(lower, x, body)
    return body


def _has_end(v: Var) -> bool:
    interval = interval_of(v.kind)
    return interval is not None and interval.has_end


def _is_exposed(v: Var, body: Term) -> bool:
    """Whether a δ may put something in the place of v that is no point of its interval."""
    return any(not _is_of_points(v, d) for d in peaks_along(v, body))


def _is_of_points(v: Var, d: Delta) -> bool:
    return d.left.type == d.right.type == v.kind and isinstance(d.left, Var) and isinstance(d.right, Var)
