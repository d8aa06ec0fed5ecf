"""Symmetries with index arithmetic that a tensor inherits from the tensors that it is made of.

With M(p, q, k, b) = M(q, p, k + b, -b)', the tensor T(m, n, k, b) = Σ_pq M(p, q, k, b) U(p, m, k)' U(q, n, k + b) is
T(n, m, k + b, -b)'. The search for canonical names exchanges and reverses slots only. What a declared symmetry does to
slots of T by arithmetic is a candidate here, with each exchange of the other slots, and its canonical form decides.
So is the exchange of both slots of what holds an inverse, which is symmetric with its matrix.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import permutations

from combdiff.budget import Budget
from combdiff.canon.canonical import normal_form
from combdiff.canon.slotgroup import SlotGroup
from combdiff.errors import BudgetError
from combdiff.terms.arithmetic import combination
from combdiff.terms.nodes import MATRICES
from combdiff.terms.terms import (
    App,
    Lam,
    Reduce,
    Term,
    Var,
    conj,
    split_coefficient,
    substitute,
    subterms,
    terms_of,
)
from combdiff.terms.types import Map, Symmetry, is_complex

MOST = 6
"""Exchanges of the slots that arithmetic leaves alone, for each candidate."""

Places = Mapping[Var, Term]


def inherited(
    value: Lam,
    symmetries: Mapping[Var, tuple[Symmetry, ...]],
    unused: Collection[Var],
    known: tuple[Symmetry, ...],
    budget: Budget,
) -> tuple[Symmetry, ...]:
    """The symmetries of `value` that do arithmetic with its slots, of those that its factors suggest.

    `known` are its symmetries that do none; all of them generate a group that can be listed.

    >>> from combdiff.terms.terms import fresh, mul
    >>> from combdiff.terms.types import COMPLEX, Domain, Index
    >>> z = Index(Domain("Z", periodic=True))
    >>> shifted = Symmetry((((0, 1), (1, 1)), ((1, -1),)), 1, True)
    >>> M, k, b = fresh("M", Map((z, z), COMPLEX, (shifted,))), fresh("k", z), fresh("b", z)
    >>> double = Lam((k, b), mul(App(M, (k, b)), App(M, (k, b))))
    >>> [str(s) for s in inherited(double, {}, (), (), Budget())]
    ["T -> (i, j) -> T(i + j, -j)'"]
    """
    found: list[Symmetry] = []
    own = None
    for places, mirrored in dict.fromkeys(_suggested(value, symmetries, unused)):
        for turned in _with_exchanges(value, dict(places)):
            image = substitute(value.body, turned)
            own = own or normal_form(value.body, symmetries, unused, budget)
            other = normal_form(conj(image) if mirrored else image, symmetries, unused, budget)
            sign = own.sign * other.sign
            size = (other.coefficient[0] * sign, other.coefficient[1] * sign)
            if sign and own.key == other.key and size in (own.coefficient, tuple(-c for c in own.coefficient)):
                rows = tuple(_row(turned[v], value.params) for v in value.params)
                found.append(Symmetry(rows, 1 if size == own.coefficient else -1, mirrored))
                break
    return tuple(found) if _is_finite(len(value.params), (*known, *found)) else ()


def _is_finite(rank: int, found: Collection[Symmetry]) -> bool:
    """Whether the symmetries generate a group that can be listed."""
    try:
        SlotGroup.generated(rank, tuple(found), real=False)
    except BudgetError:
        return False
    return True


def _suggested(
    value: Lam, symmetries: Mapping[Var, tuple[Symmetry, ...]], unused: Collection[Var]
) -> Iterator[tuple[tuple[tuple[Var, Term], ...], bool]]:
    """What slots of `value` become by the symmetries of the tensors in it, and whether these conjugate."""
    if len(value.params) == 2 and any(t.kind in MATRICES for t in subterms(value.body, Reduce)):
        i, j = value.params
        if i.kind == j.kind:
            yield from ((((i, j), (j, i)), mirrored) for mirrored in {False, is_complex(value.body.type)})
    for t in subterms(value.body):
        if not (isinstance(t, App) and isinstance(t.function, Var) and isinstance(t.function.kind, Map)):
            continue
        if t.function in unused:
            continue
        for s in (*t.function.kind.symmetries, *symmetries.get(t.function, ())):
            if all(len(row) == 1 for row in s.rows):
                continue
            image = s.image(t.args, combination)
            places = [(a, b) for a, b in zip(t.args, image, strict=True) if a in value.params]
            if places and all(b.free <= {*value.params} for _, b in places):
                yield tuple((a, b) for a, b in places if isinstance(a, Var)), s.conj


def _with_exchanges(value: Lam, places: dict[Var, Term]) -> Iterator[dict[Var, Term]]:
    """What all slots become: by arithmetic as in `places`, the others exchanged among those of their kind."""
    others = [v for v in value.params if v not in places]
    for n, order in enumerate(permutations(others)):
        if n == MOST:
            return
        if all(a.kind == b.kind for a, b in zip(others, order, strict=True)):
            yield places | dict(zip(others, order, strict=True))


def _row(t: Term, slots: tuple[Var, ...]) -> tuple[tuple[int, int], ...]:
    """An affine expression of slots as pairs of slot and coefficient."""
    parts = [split_coefficient(u) for u in terms_of(t)]
    return tuple(sorted((slots.index(v), int(c.real)) for c, v in parts if isinstance(v, Var)))
