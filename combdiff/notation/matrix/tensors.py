"""Turns an entry of a tensor of three or four slots into facts for `rules/matrix.egg`: the ways to read it as a map.

T(i, j, k, l) that is contracted over two of its indices is a matrix between the two others; which two, the rules find
out. A reading under which the tensor is declared to be the same is written without its permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from combdiff.canon.moves import MoveGroup, identity
from combdiff.notation.matrix.expr import Conjugate, MatrixExpr, Tensor, Unfolding, scaled, summed
from combdiff.records import dataclass
from combdiff.terms.terms import Const, Var
from combdiff.terms.types import Map

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
        tensor, flipped = plainest(var, tuple(places.index(n) + 1 for n in range(rank)))
        text = atom(tensor)
        text = text if tensor.order == identity(rank) else f"(Permuted {text})"
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
            permuted += tensor.order != identity(len(legs))
            items.append(scaled(coefficient, [], Conjugate(tensor) if flipped != conjugated else tensor))
        yield Arrangement(relation, turned, "(Permuted " * permuted + atom(summed(items)) + ")" * permuted)


def plainest(var: Var, order: Order) -> tuple[Tensor, bool]:
    """`var` with its slots in this order, as simple as its symmetries allow; and whether it is to be conjugated.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, SYMMETRIC, Index
    >>> plainest(fresh("S", Map((Index(), Index()), REAL, (SYMMETRIC,))), (2, 1))[0].order
    (1, 2)
    """
    assert isinstance(var.kind, Map), "a tensor"
    plain = identity(len(order))
    images = [image for image in MoveGroup.exchanging(var.kind).images(order) if image.sign > 0]
    least = min(images, key=lambda image: (image.labels != plain, image))
    return Tensor(var, least.labels), least.conj


def _conjugate(text: str, conjugated: bool) -> str:
    return f"(Conjugate {text})" if conjugated else text
