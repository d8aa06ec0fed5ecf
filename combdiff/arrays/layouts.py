"""Chooses the image of an array under its declared symmetries whose layout in memory suits a contraction.

V(p, r, q, s) summed over r and s lies badly: the summed slots are not neighbours, and a matrix product would copy V.
If V(p, r, q, s) = V(p, r, s, q), the same numbers lie well: a product on reshaped views reads V as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from combdiff.canon.moves import Image, MoveGroup
from combdiff.terms.terms import Var
from combdiff.terms.types import Index

Labels = tuple[Var, ...]


def images(labels: Labels, group: MoveGroup | None) -> list[Image[Var]]:
    """All orders of the labels that the symmetries say the same of; the first is the one that is given."""
    if group is None:
        return [Image(False, labels)]
    return [image for image in group.images(labels) if _kinds(image.labels) == _kinds(labels)]


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


def best_placement(labels: Labels, group: MoveGroup | None, over: Collection[Var], whole: bool) -> int:
    """How the slots `over` lie in the image of an array where they lie best."""
    rows = [image.labels for image in images(labels, group)]
    return min(placement([n for n, v in enumerate(row) if v in over], len(row), whole) for row in rows)


def facing(labels: Labels, group: MoveGroup, over: Collection[Var], partner: Labels, conjugated: bool) -> Image[Var]:
    """The image whose contracted slots lie best, in the partner's order where that can be, and least conjugated."""

    def merit(image: Image[Var]) -> tuple[int, bool, bool, bool]:
        axes = [n for n, v in enumerate(image.labels) if v in over]
        places = [partner.index(image.labels[n]) for n in axes]
        whole = len(axes) == len(partner)
        crossed = places != sorted(places)
        return placement(axes, len(labels), whole), image.conj != conjugated, crossed, image.sign < 0

    return min(images(labels, group), key=merit)
