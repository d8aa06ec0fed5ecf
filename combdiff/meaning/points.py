"""The values of indices as integer arrays: points of lattices, lists of offsets, and where they lie in arrays.

A slot of several directions has an axis of the array for each; a list of offsets has one axis, its positions. Seen slot
by slot, an array has one position for each value of the slot's index, in row-major order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from combdiff.errors import ArrayError
from combdiff.meaning.masks import refuse_masked
from combdiff.terms.types import Domain, Index, Type

Integers = npt.NDArray[np.intp]


class Offsets(int):
    """How many offsets a list has, and which: `rows`, an integer array with a row an offset.

    >>> size = Offsets(np.array([[1], [-1]]))
    >>> int(size), size.rows.tolist()
    (2, [[1], [-1]])
    """

    rows: Integers

    def __new__(cls, rows: Integers) -> Offsets:
        self = super().__new__(cls, len(rows))
        self.rows = rows
        return self


def offsets_of(domain: Domain, value: object, name: str = "") -> Offsets:
    """The offsets of a list, which a user gives as an integer array; `name` is what messages call it.

    >>> offsets_of(Domain("X", listed=True, symmetric=True), [1, -1]).rows.tolist()
    [[1], [-1]]

    Raises:
        ArrayError: no integers, not a column for each direction, an offset twice, or b without −b.
    """
    name = name or domain.name
    refuse_masked(value, name)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ArrayError(
            f"{name} is not an array: {error}", remedy="give an integer array, one row an offset"
        ) from error
    if array.size and array.dtype.kind not in "iu":
        raise ArrayError(
            f"{name} must hold integers, and holds {array.dtype}",
            remedy="give an integer array, one row an offset: offsets are differences of indices",
        )
    rows = array.reshape(-1, 1) if array.ndim == 1 and domain.directions == 1 else array
    if rows.ndim != 2 or rows.shape[1] != domain.directions:
        columns = "1 column" if domain.directions == 1 else f"{domain.directions} columns"
        raise ArrayError(
            f"{name} has the shape {array.shape}, but an offset of the domain {domain.name} is a row of {columns}",
            remedy=f"give an integer array of shape (n, {domain.directions}), one row an offset",
        )
    rows = rows.astype(np.intp)
    _check_list(domain, rows, name)
    return Offsets(rows)


def _check_list(domain: Domain, rows: Integers, name: str) -> None:
    listed = [tuple(row) for row in rows.tolist()]
    found = set(listed)
    if len(found) < len(listed):
        twice = next(row for n, row in enumerate(listed) if row in listed[:n])
        raise ArrayError(f"{name} holds the offset {_shown(twice)} twice", remedy="give each offset once")
    if domain.symmetric:
        for row in listed:
            opposite = tuple(-x for x in row)
            if opposite not in found:
                raise ArrayError(
                    f"{name} holds the offset {_shown(row)}, but not {_shown(opposite)}: "
                    f"the domain {domain.name} is symmetric",
                    remedy=f"add {_shown(opposite)}, or declare the domain without `symmetric = true`",
                )


def _shown(row: tuple[int, ...]) -> str:
    return str(row[0]) if len(row) == 1 else str(row)


def random_offsets(domain: Domain, rng: np.random.Generator) -> Offsets:
    """A short random list: pairs ±b if the domain is symmetric, perhaps with 0, in any order.

    >>> X = Domain("X", listed=True, symmetric=True, directions=2)
    >>> offsets_of(X, random_offsets(X, np.random.default_rng(0)).rows) == 4
    True
    """
    found: list[tuple[int, ...]] = []
    while len(found) < 2:
        row = tuple(rng.integers(-3, 4, domain.directions).tolist())
        if any(row) and row not in found and tuple(-x for x in row) not in found:
            found.append(row)
    opposites = [tuple(-x for x in row) for row in found] if domain.symmetric else []
    zero = [(0,) * domain.directions] if rng.integers(2) else []
    return Offsets(rng.permutation(np.array([*found, *opposites, *zero], np.intp)))


def values_of(domain: Domain, sizes: Mapping[Domain, int]) -> Integers:
    """All values of an index, a row each, in the order in which arrays hold them.

    >>> values_of(Domain("X", symmetric=True), {Domain("X", symmetric=True): 3}).ravel().tolist()
    [-1, 0, 1]
    """
    if domain.listed:
        return listed(domain, sizes).rows
    counts = [sizes[axis] for axis in domain.axes]
    columns: Integers = np.indices(counts).reshape(len(counts), -1).T
    return columns + np.array([axis.first(n) for axis, n in zip(domain.axes, counts, strict=True)], np.intp)


def listed(domain: Domain, sizes: Mapping[Domain, int]) -> Offsets:
    """The offsets of a list, which must be known."""
    found = sizes.get(domain.axes[0])
    if not isinstance(found, Offsets):
        raise ArrayError(
            f"the offsets of the domain {domain.name} are not known",
            remedy=f"give {domain.name}=…, an integer array, one row an offset",
        )
    return found


def positions_of(domain: Domain, sizes: Mapping[Domain, int], values: Integers) -> Integers:
    """Where in its slot an index with these values (along the last axis) lies; −1 outside of its range."""
    if domain.listed:
        where = {tuple(row): n for n, row in enumerate(listed(domain, sizes).rows.tolist())}
        flat = [where.get(tuple(row), -1) for row in values.reshape(-1, domain.directions).tolist()]
        return np.array(flat, np.intp).reshape(values.shape[:-1])
    result = np.zeros(values.shape[:-1], np.intp)
    outside = np.zeros(values.shape[:-1], bool)
    for n, axis in enumerate(domain.axes):
        size = sizes[axis]
        place = values[..., n] - axis.first(size)
        place = place % size if axis.periodic and size else place
        outside |= (place < 0) | (place >= size)
        result = result * size + place
    return np.where(outside, -1, result)


def slot_sizes(params: Sequence[Type], sizes: Mapping[Domain, int]) -> tuple[int, ...]:
    """How many values the index of each slot has."""
    domains = [p.domain for p in params if isinstance(p, Index)]
    return tuple(prod(sizes[axis] for axis in d.axes) for d in domains if d is not None)
