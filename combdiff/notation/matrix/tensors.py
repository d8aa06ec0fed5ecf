"""Turns an entry of a tensor of three or four slots into facts for `rules/matrix.egg`: the ways to read it as a map.

T(i, j, k, l) that is contracted over two of its indices is a matrix between the two others; which two, the rules find
out. A reading under which the tensor is declared to be the same is written without its permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

from combdiff.notation.matrix.expr import Conjugate, MatrixExpr, Tensor, Unfolding, scaled, summed
from combdiff.terms.terms import Const, Var
from combdiff.terms.types import Map, Symmetry

RELATIONS = {3: "Tensor3", 4: "Tensor4"}
Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """One way to read a tensor: `matrix`, for egglog, with its legs in this order."""

    relation: str
    legs: tuple[Var, ...]
    matrix: str


def arrangements(
    var: Var, legs: tuple[Var, ...], conjugated: bool, atom: Callable[[MatrixExpr], str]
) -> Iterator[Arrangement]:
    """All ways to read the entry `var(legs)`, or its conjugate; `atom` is how egglog knows a factor.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> n = Index(Domain("T.1"))
    >>> T, legs = fresh("T", Map((n, n, n), REAL)), tuple(fresh(name, n) for name in "ijk")
    >>> len(list(arrangements(T, legs, False, str)))
    9
    """
    assert isinstance(var.kind, Map), "a tensor"
    rank = len(legs)
    for places in permutations(range(rank)):
        # leg number k of the arrangement is legs[places[k]]
        order, flipped = _least(tuple(places.index(n) + 1 for n in range(rank)), var.kind.symmetries)
        text = atom(Tensor(var, order))
        text = text if order == tuple(range(1, rank + 1)) else f"(Permuted {text})"
        yield Arrangement(RELATIONS[rank], tuple(legs[n] for n in places), _conjugate(text, flipped != conjugated))
    if rank == 3:
        for mode in range(3):
            others = [legs[n] for n in range(3) if n != mode]
            text = _conjugate(atom(Unfolding(var, mode + 1)), conjugated)
            yield Arrangement("Unfolded", (legs[mode], *others), text)


def sum_arrangements(
    terms: Sequence[tuple[Const, Var, tuple[Var, ...], bool]], legs: tuple[Var, ...], atom: Callable[[MatrixExpr], str]
) -> Iterator[Arrangement]:
    """All ways to read Σ coefficient · tensor(indices), or its conjugate, where all terms stand at the same indices.

    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> n = Index(Domain("T.1"))
    >>> T, legs = fresh("T", Map((n, n, n), REAL)), tuple(fresh(name, n) for name in "ijk")
    >>> len(list(sum_arrangements([(ONE, T, legs, False)], legs, str)))
    6
    """
    for turned in permutations(legs):
        relation, items, permuted = RELATIONS[len(legs)], [], 0
        for coefficient, var, indices, conjugated in terms:
            tensor, flipped = plainest(var, tuple(turned.index(v) + 1 for v in indices))
            permuted += tensor.order != tuple(range(1, len(legs) + 1))
            items.append(scaled(coefficient, [], Conjugate(tensor) if flipped != conjugated else tensor))
        yield Arrangement(relation, turned, "(Permuted " * permuted + atom(summed(items)) + ")" * permuted)


def plainest(var: Var, order: Order) -> tuple[Tensor, bool]:
    """`var` with its slots in this order, as simple as its symmetries allow; and whether it is to be conjugated.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, SYMMETRIC
    >>> plainest(fresh("S", Map((), REAL, (SYMMETRIC,))), (2, 1))[0].order
    (1, 2)
    """
    assert isinstance(var.kind, Map), "a tensor"
    least, conjugated = _least(order, var.kind.symmetries)
    return Tensor(var, least), conjugated


def _conjugate(text: str, conjugated: bool) -> str:
    return f"(Conjugate {text})" if conjugated else text


def _least(order: Order, symmetries: tuple[Symmetry, ...]) -> tuple[Order, bool]:
    """The simplest of the equal readings, and whether it is to be conjugated."""
    plain = tuple(range(1, len(order) + 1))
    images = [(tuple(order[slot - 1] for slot in turn), conj) for turn, conj in _group(len(order), symmetries)]
    return min(images, key=lambda image: (image[0] != plain, image[1], image[0]))


@cache
def _group(rank: int, symmetries: tuple[Symmetry, ...]) -> tuple[tuple[Order, bool], ...]:
    """The permutations ρ with T(a₁, …) = T(a_ρ(1), …), or its conjugate, that the declared ones generate."""
    generators = [
        (tuple(row[0][0] + 1 for row in symmetry.rows), symmetry.conj)
        for symmetry in symmetries
        if symmetry.permutes and symmetry.sign > 0
    ]
    found = {(tuple(range(1, rank + 1)), False)}
    frontier = list(found)
    while frontier:
        turn, conj = frontier.pop()
        for generator, conjugates in generators:
            image = (tuple(turn[slot - 1] for slot in generator), conj != conjugates)
            if image not in found:
                found.add(image)
                frontier.append(image)
    return tuple(sorted(found))
