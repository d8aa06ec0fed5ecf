"""Solves a δ under Σ for an index of a plain range, where the solution need not lie in that range.

    Σ_i δ(i + 1, r, e(i))   becomes   where(1 ≤ r, e(r − 1))
    Σ_j δ(J(n), j, e(j))    becomes   e(J(n)), for an array of integers J

The laws of contraction solve a δ only where the solution is in range for all values. Here a condition says where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from combdiff.terms.conditions.guards import Condition, is_finite, under
from combdiff.terms.conditions.needed import sizes_read
from combdiff.terms.conditions.ordering import form_of, range_of
from combdiff.terms.terms import (
    Const,
    Delta,
    Indicator,
    Mul,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    delta,
    factors_of,
    holds,
    holds_entries,
    mul,
    number,
    rebuild,
    split_coefficient,
    substitute,
    times,
    total,
)
from combdiff.terms.types import Domain, Index, is_contractable


def solved_within_ranges(t: Term, read: Mapping[Domain, int] | None = None) -> Term:
    """`t` with every δ solved that compares indices of one plain range, a few places apart, or by other indices.

    Or an index and an entry that exists, for the program has no value below the sizes in `read`: Σ_i δ(0, i, e(i)) is
    e(0) if the program reads an entry 0 of the range, or if e does.

    >>> from combdiff.terms.terms import MINUS_ONE, ONE, App, fresh, indicator
    >>> from combdiff.terms.types import REAL, Domain, Map
    >>> n = Index(Domain("n"))
    >>> i, r, x = fresh("i", n), fresh("r", n), fresh("x", Map((n,), REAL))
    >>> before = Sum((i,), Delta(add(i, ONE), r, App(x, (i,))))
    >>> solved_within_ranges(before) == indicator(ONE, r, App(x, (add(r, MINUS_ONE),)))
    True
    """
    if not holds(t, Delta) and not (holds(t, Sum) and holds(t, Indicator)):
        return t
    return Traverser(lambda u: _without_deltas(u, read or {}), Sum, Delta)(t)


def _without_deltas(t: Term, read: Mapping[Domain, int]) -> Term:
    match t:
        case Sum(indices, body):
            return _solved(indices, body, read)
        case Mul((Const() as c, Sum(indices, body))):
            # a number that came out of a δ below
            return mul(c, _solved(indices, body, read))
        case Delta(left, right, body) if holds_entries(left, right):
            c, rest = split_coefficient(body)
            return mul(c, delta(left, right, rest))
        case _:
            return t


def _solved(indices: Sequence[Var], body: Term, read: Mapping[Domain, int]) -> Term:
    for met, rest in _deltas(body):
        for i in indices:
            place = _solution(met, i)
            if place is None or (isinstance(place, Const) and not _exists(place, i, read, rest)):
                continue
            left = [v for v in indices if v is not i]
            inner = substitute(rest, {i: place})
            asked = [] if isinstance(place, Const) else in_range(i, place)
            return _solved(left, under(asked, inner), read) if left else under(asked, inner)
    return _with_factors_out(indices, body)


def _with_factors_out(indices: Sequence[Var], body: Term) -> Term:
    """Σ_e δ(J(e), j, w(j) x(e)) as w(j) Σ_e δ(J(e), j, x(e)): what is finite stands under no δ that it need not."""
    guards: list[Delta] = []
    c, rest = split_coefficient(body)
    while isinstance(rest, Delta):
        guards.append(rest)
        d, rest = split_coefficient(rest.body)
        c = times(c, d)
    outer = [f for f in factors_of(rest) if f.free.isdisjoint(indices) and is_finite(f)]
    if not outer or not any(holds_entries(d.left, d.right) for d in guards):
        return total(indices, body)
    inner = mul(*(f for f in factors_of(rest) if f not in outer))
    for guard in reversed(guards):
        inner = delta(guard.left, guard.right, inner)
    return mul(c, *outer, total(indices, inner))


def _deltas(t: Term) -> list[tuple[Delta, Term]]:
    """Each δ that is a factor of t, conditions seen through, and t without it."""
    match t:
        case Delta(left, right, body):
            return [(t, body), *((d, Delta(left, right, rest)) for d, rest in _deltas(body))]
        case Indicator(left, right, body):
            own = [(pinned, body)] if (pinned := _pinned(t)) is not None else []
            return [*own, *((d, Indicator(left, right, rest)) for d, rest in _deltas(body))]
        case Mul(factors) if not isinstance(t.type, Index):
            found = [(n, d, rest) for n, f in enumerate(factors) for d, rest in _deltas(f)]
            return [(d, rebuild(t, [*factors[:n], rest, *factors[n + 1 :]])) for n, d, rest in found]
        case _:
            return []


def _pinned(t: Indicator) -> Delta | None:
    """The δ that a condition is which one value of an index meets, its first or its last: 2 ≤ i, for i from 0 to 2."""
    form = form_of(Condition(t.left, t.right))
    if form is None or len(form.coefficients) != 1:
        return None
    ((i, c),) = form.coefficients.items()
    domain = i.type.domain if isinstance(i.type, Index) else None
    bound = None if domain is None else domain.upper if c > 0 else domain.lower
    return (
        Delta(i, number(bound), t.body) if bound is not None and abs(c) == 1 and bound == -c * form.constant else None
    )


def _solution(met: Delta, i: Var) -> Term | None:
    """What i is, if a δ says that it is so many places from another index of its range, or from the end of a range."""
    form = form_of(Condition(met.left, met.right))
    if form is None or abs(form.of(i)) != 1 or not is_contractable(i.kind):
        return None
    others = {v: c for v, c in form.coefficients.items() if v != i}
    if any(i in v.free for v in others):
        return None
    if len(others) == 1 and not form.constant and all(isinstance(v, Var) and v.type == i.kind for v in others):
        return None  # a law of contraction solves it
    if others and not any(isinstance(v, Sum) or _has_a_range_like(v, i) for v in others):
        return None
    if any(c.denominator > 1 for c in (form.constant, *others.values())):
        return None
    sign = -form.of(i)
    return add(*(mul(number(sign * c), v) for v, c in others.items()), number(sign * form.constant))


def _has_a_range_like(v: Term, i: Var) -> bool:
    """Whether two indices have one range, or one that has so many values more, or ranges with known bounds.

    A δ between ranges of sizes that have nothing to do with each other says more than a condition: that it is one of
    the values that both have.
    """
    one, other = (u.domain if isinstance(u, Index) else None for u in (v.type, i.kind))
    if one is None or other is None or one == other:
        return one == other
    return one.fewer(other) is not None or (one.count is not None and other.count is not None)


def _exists(place: Const, i: Var, read: Mapping[Domain, int], body: Term) -> bool:
    """Whether a number is a value of i wherever the program, or the body of the sum, has a value."""
    domain = i.kind.domain if isinstance(i.kind, Index) else None
    if domain is None:
        return False
    if domain.lower is not None and domain.upper is not None:
        return domain.lower <= place.real <= domain.upper
    if not domain.from_zero or place.real < 0:
        return False
    least = -domain.less if domain.of is not None else 0  # n + 1 values are one at least
    return place.real < max(least, read.get(domain, 0), sizes_read(body).get(domain, 0))


def in_range(i: Var, place: Term) -> list[Condition]:
    """That `place` is a value of the index i, as far as this needs to be said."""
    bounds = range_of(i)
    assert bounds is not None, "a plain range"
    first, last = (bound.term for bound in bounds)
    found = []
    for less, more in ((first, place), (place, last)):
        form = form_of(Condition(less, more))
        assert form is not None, "an affine form"
        if not form.always:
            found.append(form.condition())
    return found
