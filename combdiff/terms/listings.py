"""Tensors that list their entries: i ↦ δ(i, 0, a) + δ(i, 1, b) + δ(i, 2, c) is [a, b, c]."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from combdiff.terms.terms import (
    ZERO,
    Add,
    Const,
    Delta,
    Lam,
    Term,
    Traverser,
    Var,
    add,
    delta,
    factors_of,
    mul,
    number,
    terms_of,
)
from combdiff.terms.types import Index

MOST = 16
"""Entries of a tensor that is written as a list."""

Place = tuple[tuple[Var, Const], ...]
"""Indices and the numbers that they are."""


def with_entries_together(t: Term) -> Term:
    """`t` with what is at one place of a sum of entries as one entry.

    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL, range_of
    >>> i, x, y = fresh("i", Index(range_of(3))), fresh("x", REAL), fresh("y", REAL)
    >>> with_entries_together(add(delta(i, ONE, x), mul(y, delta(i, ONE, y)))) == delta(i, ONE, add(x, mul(y, y)))
    True
    """

    def visit(u: Term) -> Term:
        if not isinstance(u, Add) or isinstance(u.type, Index):
            return u
        found: dict[Place, list[Term]] = {}
        rest: list[Term] = []
        for term in u.terms:
            place, entry = _placed(term)
            if place:
                found.setdefault(place, []).append(entry)
            else:
                rest.append(term)
        if len(found) + len(rest) == len(u.terms):
            return u
        inside = sorted(found.items(), key=lambda each: [(v.uid, n.real) for v, n in each[0]])
        return add(*rest, *(_at(place, add(*entries)) for place, entries in inside))

    return Traverser(visit, Delta)(t)


def rows_of(t: Lam) -> list[list[Term]] | None:
    """The rows of a matrix of few entries, or the one of a vector; None for what is no list, or mostly zeros."""
    extents = [p.kind.domain.count if isinstance(p.kind, Index) and p.kind.domain else None for p in t.params]
    sized = all(p.kind.domain.sized for p in t.params if isinstance(p.kind, Index) and p.kind.domain)
    if len(extents) not in (1, 2) or None in extents or not sized:
        return None
    counts = [n for n in extents if n is not None]
    found: dict[tuple[int, ...], Term] = {}
    for term in terms_of(t.body):
        place, entry = _placed(term)
        numbers = dict(place)
        at = tuple(int(numbers[p].real) for p in t.params if p in numbers)
        if len(at) < len(counts) or len(place) > len(at) or at in found or not entry.free.isdisjoint(t.params):
            return None
        found[at] = entry
    plain = all(isinstance(entry, Const) for entry in found.values())
    if not 2 <= prod(counts) <= MOST or (4 if plain else 2) * len(found) < prod(counts):
        return None
    entries = [found.pop(at, ZERO) for at in product(*map(range, counts))]
    if found:
        return None
    return [entries[n : n + counts[-1]] for n in range(0, len(entries), counts[-1])]


def last_slots_listed(t: Lam) -> int:
    """How many last slots of a tensor are those of a list, whose entries the slots before change: f ↦ [a(f), b(f)].

    >>> from combdiff.terms.terms import App, fresh
    >>> from combdiff.terms.types import INTEGER, REAL, Map, range_of
    >>> f, i, a = fresh("f", INTEGER), fresh("i", Index(range_of(2))), fresh("a", Map((INTEGER,), REAL))
    >>> last_slots_listed(Lam((f, i), entries_listed([i], [[App(a, (f,)), number(1)]])))
    1
    """
    if rows_of(t) is not None:
        return 0
    return next((n for n in (1, 2) if n < len(t.params) and rows_of(Lam(t.params[-n:], t.body)) is not None), 0)


def _placed(t: Term) -> tuple[Place, Term]:
    """Where a term is not 0, by indices that are numbers, and what it is there."""
    place: list[tuple[Var, Const]] = []
    rest: list[Term] = []
    for f in factors_of(t):
        while isinstance(f, Delta) and (pin := _pin(f)) is not None:
            place.append(pin)
            f = f.body
        rest.append(f)
    return tuple(sorted(place, key=lambda pin: pin[0].uid)), mul(*rest)


def _pin(t: Delta) -> tuple[Var, Const] | None:
    for index, n in ((t.left, t.right), (t.right, t.left)):
        if isinstance(index, Var) and isinstance(index.kind, Index) and isinstance(n, Const):
            return index, n
    return None


def _at(place: Sequence[tuple[Var, Const]], entry: Term) -> Term:
    for index, n in place:
        entry = delta(index, n, entry)
    return entry


def entries_listed(indices: Sequence[Var], rows: Sequence[Sequence[Term]]) -> Term:
    """The entry at these indices of a matrix with such rows, or of a vector with one."""
    found = []
    for n, row in enumerate(rows):
        for m, entry in enumerate(row):
            at = (n, m) if len(indices) == 2 else (m,)
            for index, k in zip(indices, at, strict=True):
                entry = delta(index, number(k), entry)
            found.append(entry)
    return add(*found)
