"""How a contraction reads an array as it lies in memory: in which image under its declared symmetries.

V(p, r, q, s) summed over r and s lies badly: the summed slots are not neighbours, and a matrix product would copy V.
If V(p, r, q, s) = V(p, r, s, q), the same numbers lie well: a product on reshaped views reads V as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from combdiff.terms.terms import Var
from combdiff.terms.types import Index, Map, Symmetry, is_complex

Labels = tuple[Var, ...]

_MOST = 500


@dataclass(frozen=True, slots=True)
class Image:
    """T(labels as asked for) = sign · conj? T(`labels`)."""

    labels: Labels
    sign: int = 1
    conj: bool = False


def exchanges(kind: Map) -> tuple[Symmetry, ...]:
    """The declared symmetries that exchange whole slots; conj is left out where the values are real."""
    real = not is_complex(kind.result)
    return tuple(Symmetry(s.rows, s.sign, s.conj and not real) for s in kind.symmetries if s.permutes)


def images(labels: Labels, symmetries: Sequence[Symmetry]) -> list[Image]:
    """All orders of the labels that the symmetries say the same of; the first is the one that is given."""
    found = {labels: Image(labels)}
    todo = [found[labels]]
    for image in todo:
        for s in symmetries:
            moved = tuple(image.labels[row[0][0]] for row in s.rows)
            if moved not in found and len(found) < _MOST and _kinds(moved) == _kinds(labels):
                found[moved] = Image(moved, image.sign * s.sign, image.conj != s.conj)
                todo.append(found[moved])
    return todo


def _kinds(labels: Labels) -> list[object]:
    return [v.kind.domain if isinstance(v.kind, Index) else None for v in labels]


TRAILING, LEADING, MIDDLE, BY_SLABS, MOVED = range(5)


def placement(axes: Sequence[int], rank: int, whole: bool) -> int:
    """How the contracted `axes` lie among `rank`, best first. `whole`: all of the partner is contracted with them.

    >>> [placement(axes, 4, True) for axes in ((2, 3), (0, 1), (1, 2), (1, 3), (0, 2))]
    [0, 1, 2, 3, 4]
    """
    together = list(axes) == list(range(min(axes), min(axes) + len(axes)))
    if together and axes[-1] == rank - 1:
        return TRAILING
    if together and axes[0] == 0:
        return LEADING
    if together and whole:
        return MIDDLE
    return MOVED if 0 in axes else BY_SLABS


def best_placement(labels: Labels, symmetries: Sequence[Symmetry], over: Collection[Var], whole: bool) -> int:
    """How the slots `over` lie in the image of an array where they lie best."""
    rows = [image.labels for image in images(labels, symmetries)]
    return min(placement([n for n, v in enumerate(row) if v in over], len(row), whole) for row in rows)


def facing(
    labels: Labels, symmetries: Sequence[Symmetry], over: Collection[Var], partner: Labels, conjugated: bool
) -> Image:
    """The image whose contracted slots lie best, in the partner's order where that can be, and least conjugated."""

    def merit(image: Image) -> tuple[int, bool, bool, bool]:
        axes = [n for n, v in enumerate(image.labels) if v in over]
        places = [partner.index(image.labels[n]) for n in axes]
        whole = len(axes) == len(partner)
        crossed = places != sorted(places)
        return placement(axes, len(labels), whole), image.conj != conjugated, crossed, image.sign < 0

    return min(images(labels, symmetries), key=merit)
