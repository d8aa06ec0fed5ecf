"""Hermite normal form: a unimodular change of coordinates that turns integer rows into unit rows.

A sum over k ∈ (Z/n)^r stays what it is for every n under k = U k' + t if U is an integer matrix of determinant ±1, and
under no other change of k: 2k does not run through all values if n is even.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.records import dataclass

Matrix = list[list[int]]


@dataclass(frozen=True, slots=True)
class Basis:
    """rows · change = `sizes[i]` at column `pivots[i]` of row i, and 0 to the right of it in the order of pivots."""

    change: Matrix
    pivots: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def unimodular(self) -> bool:
        """Whether the rows are part of a basis of all integer rows, each of them bare in the new coordinates."""
        return all(size == 1 for size in self.sizes)


def basis(rows: Sequence[Sequence[int]]) -> Basis | None:
    """The change of coordinates that makes the rows triangular; None if they are dependent.

    >>> found = basis([[1, -1], [1, 1]])
    >>> found.pivots, found.sizes
    ((0, 1), (1, 2))
    >>> basis([[2, 3]]).unimodular, basis([[2, 4]]).unimodular, basis([[1, 1], [2, 2]])
    (True, False, None)
    """
    width = len(rows[0])
    reduced = [list(row) for row in rows]
    change = [[int(a == b) for b in range(width)] for a in range(width)]
    pivots: list[int] = []
    for row in reduced:
        others = [j for j in range(width) if j not in pivots]
        pivot = _cleared(row, others, [*reduced, *change])
        if pivot is None:
            return None
        if row[pivot] < 0:
            for r in (*reduced, *change):
                r[pivot] = -r[pivot]
        for j in pivots:
            _subtract(row[j] // row[pivot], pivot, j, [*reduced, *change])
        pivots.append(pivot)
    return Basis(change, tuple(pivots), tuple(row[p] for row, p in zip(reduced, pivots, strict=True)))


def _cleared(row: list[int], columns: Sequence[int], matrix: Matrix) -> int | None:
    """Euclid's algorithm on the columns, until one entry of the row is left: their greatest common divisor."""
    while True:
        nonzero = [j for j in columns if row[j]]
        if not nonzero:
            return None
        least = min(nonzero, key=lambda j: (abs(row[j]), j))
        if len(nonzero) == 1:
            return least
        for j in nonzero:
            if j != least:
                _subtract(row[j] // row[least], least, j, matrix)


def _subtract(times: int, one: int, other: int, matrix: Matrix) -> None:
    """Column `other` less `times` column `one`."""
    if times:
        for r in matrix:
            r[other] -= times * r[one]
