"""Moves a sum round a ring so that its places are made of fewer indices: Σ_i h(i) r(d + i) is Σ_i h(i − d) r(i).

    sum((i, j), h(i) * h(i + j - d) * x(j))                becomes   sum((i, j), h(i - d) * h(i - j) * x(j))
    sum(i, h(i) * sum(j, h(j) * x(d + i - j))^2)           becomes   sum(i, h(i - d) * sum(j, h(j) * x(i - j))^2)

What stands at a place of three indices is computed for all of them, n³ times; at two it is a convolution.
Ends: each shift leaves places with fewer indices beyond two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from combdiff.terms.terms import (
    Add,
    App,
    Sum,
    Term,
    Var,
    add,
    children,
    mul,
    number,
    numbers_read,
    rebuild,
    substitute,
    subterms,
)
from combdiff.terms.types import Index, Map

MOST = 2
"""Indices of a place that are left as they are."""


def with_sums_shifted(t: Term) -> Term:
    """`t` with sums over periodic indices moved where that leaves fewer places of three indices.

    >>> from combdiff.terms.terms import fresh, total
    >>> from combdiff.terms.types import REAL, Domain
    >>> ring = Index(Domain("Z", periodic=True))
    >>> (h, x), (i, j, d) = (fresh(n, Map((ring,), REAL)) for n in "hx"), (fresh(n, ring) for n in "ijd")
    >>> t = total((i, j), mul(App(h, (i,)), App(h, (add(i, j, mul(number(-1), d)),)), App(x, (j,))))
    >>> max(len(u.args[0].free) for u in subterms(with_sums_shifted(t), App))
    2
    """
    if not _crowded(t):
        return t
    # outer sums first: what is moved to another place of theirs is itself computed once for each
    moved = _shifted(t)
    return rebuild(moved, [with_sums_shifted(c) for c in children(moved)])


def _shifted(t: Term) -> Term:
    if not isinstance(t, Sum) or not _crowded(t.body):
        return t
    rest = numbers_read(t.body)
    movable = [i for i in t.indices if _turns(i) and i not in rest]
    found = min(_moves(t.body, movable), key=_crowded, default=t.body)
    if _crowded(found) >= _crowded(t.body):
        return t
    return _shifted(Sum(t.indices, found))


def _moves(body: Term, movable: Collection[Var]) -> Iterator[Term]:
    """The body with one index moved by another one of its ring."""
    for i in movable:
        others = {v for place in _places(body) for v in place.free if isinstance(v, Var) and v.kind == i.kind} - {i}
        for v in sorted(others, key=lambda v: v.uid):
            for sign in (1, -1):
                yield substitute(body, {i: add(i, mul(number(sign), v))})


def _turns(i: Var) -> bool:
    """Whether an index counts round a ring."""
    domain = i.kind.domain if isinstance(i.kind, Index) else None
    return domain is not None and domain.periodic and domain.directions == 1


def _places(t: Term) -> Iterator[Add]:
    """The sums of indices at which tensors are read."""
    for u in subterms(t, App):
        if isinstance(u.function.type, Map) and u.function.type.is_array:
            yield from (a for a in u.args if isinstance(a, Add))


def _crowded(t: Term) -> int:
    """How many indices places have beyond two."""
    return sum(max(0, len(place.free) - MOST) for place in _places(t))
