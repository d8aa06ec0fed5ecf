"""Integrals over an interval where a δ meets them: what it fixes may lie outside of the interval.

    ∫₀¹ δ(x / 2, t, k(x)) dx   is   2 k(2 t) for 0 ≤ 2 t ≤ 1, and 0 beyond

A variable of the interval is therefore read as any real number, under the condition that it lies inside. Where a δ puts
a point of the same interval in its place, the condition holds, and is dropped (`terms.constructors.indicator`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from combdiff.terms.terms import (
    ONE,
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
    fresh,
    indicator,
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
    known = [interval for interval in intervals if interval.has_end]
    return Traverser(lambda u: _within(u, known), Sum)(t) if known else t


def _within(t: Term, intervals: Sequence[Interval]) -> Term:
    if not isinstance(t, Sum):
        return t
    indices, body = list(t.indices), t.body
    for n, v in enumerate(indices):
        if v.kind != REAL or any(peaks_along(v, body)):
            continue
        ends = _extent(v, body)
        interval = next((i for i in intervals if (i.lower, i.upper) == ends), None)
        if interval is not None:
            indices[n] = fresh(v.name, Number(complex=False, interval=interval))
            # conditions that hold on the interval are dropped
            body = substitute(body, {v: indices[n]})
    return t if indices == list(t.indices) else total(indices, body)


_Ends: TypeAlias = tuple[Fraction | None, Fraction | None]


def _extent(v: Var, t: Term) -> _Ends:
    """From where to where `t` may differ from 0, by conditions on v; the same for all terms of a sum, or unknown."""
    match t:
        case Indicator(left, right, body):
            return _met(_half(v, left, right), _extent(v, body))
        case Mul(factors):
            return reduce(_met, (_extent(v, f) for f in factors))
        case Add(terms):
            first, *others = (_extent(v, u) for u in terms)
            return first if all(e == first for e in others) else (None, None)
        case Sum(_, body) | Delta(_, _, body):
            return _extent(v, body)
        case _:
            return None, None


def _met(a: _Ends, b: _Ends) -> _Ends:
    """What two ranges have in common."""
    lower = [e for e in (a[0], b[0]) if e is not None]
    upper = [e for e in (a[1], b[1]) if e is not None]
    return max(lower, default=None), min(upper, default=None)


def _half(v: Var, left: Term, right: Term) -> _Ends:
    """Where left ≤ right, if it is a condition on v alone."""
    slope, rest = Fraction(0), Fraction(0)
    for u in terms_of(add(right, neg(left))):
        coefficient, of = split_coefficient(u)
        if of not in (v, ONE) or coefficient.imag:
            return None, None
        if of is v:
            slope += coefficient.real
        else:
            rest += coefficient.real
    if not slope:
        return None, None
    return (-rest / slope, None) if slope > 0 else (None, -rest / slope)


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
            free = {v: fresh(v.name, REAL) for v in exposed}
            body = substitute(body, dict(free))
            for v, x in free.items():
                body = inside(interval_of(v.kind), x, body)
            return total([free.get(v, v) for v in indices], body)
        case _:
            return t


def inside(interval: Interval | None, x: Term, body: Term) -> Term:
    """`body` where x lies in the interval."""
    if interval is not None and interval.upper is not None:
        body = indicator(x, Const(interval.upper), body)
    if interval is not None and interval.lower is not None:
        body = indicator(Const(interval.lower), x, body)
    return body


def _has_end(v: Var) -> bool:
    interval = interval_of(v.kind)
    return interval is not None and interval.has_end


def _is_exposed(v: Var, body: Term) -> bool:
    """Whether a δ may put something in the place of v that is no point of its interval."""
    return any(not _is_of_points(v, d) for d in peaks_along(v, body))


def _is_of_points(v: Var, d: Delta) -> bool:
    return d.left.type == d.right.type == v.kind and isinstance(d.left, Var) and isinstance(d.right, Var)
