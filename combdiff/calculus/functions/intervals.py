"""Integrals over an interval where a δ meets them: what it fixes may lie outside of the interval.

    ∫₀¹ δ(x / 2, t, k(x)) dx   is   2 k(2 t) for 0 ≤ 2 t ≤ 1, and 0 beyond

A variable of the interval is therefore read as any real number, under the condition that it lies inside. Where a δ puts
a point of the same interval in its place, the condition holds, and is dropped (`terms.constructors.indicator`).
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.terms.terms import (
    Const,
    Delta,
    Diff,
    Lam,
    Let,
    Sum,
    Term,
    Traverser,
    Var,
    fresh,
    indicator,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import REAL, Interval, interval_of


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
    return Traverser(_visit)(t)


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
    return any(not _is_of_points(v, d) for d in _deltas(body) if v in d.left.free | d.right.free)


def _is_of_points(v: Var, d: Delta) -> bool:
    return d.left.type == d.right.type == v.kind and isinstance(d.left, Var) and isinstance(d.right, Var)


def _deltas(body: Term) -> Iterator[Delta]:
    return (u for u in subterms(body) if isinstance(u, Delta))
