"""How far two arrays differ, entry by entry, so that rounding is distinguished from an error.

The difference of an entry is relative to the entry and to its row: the least of the largest entries in the slices
through it. One large entry elsewhere says nothing of it, and neither does one that is infinite or no number.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64 | np.complex128]
Sizes = npt.NDArray[np.float64]

ROUNDING = 64
"""Units in the last place of the largest entry that sums and rotations leave in entries that should be zero."""


def magnitude(array: Numbers) -> Sizes:
    """The sizes of entries: of a complex one that of its larger part, which never overflows.

    >>> magnitude(np.array([3 - 4j, 1.5e308 + 1.5e308j])).tolist()
    [4.0, 1.5e+308]
    """
    if array.dtype.kind == "c":
        return np.asarray(np.maximum(np.abs(array.real), np.abs(array.imag)))
    return np.asarray(np.abs(array))


def difference(found: Numbers, expected: Numbers, floor: float = 0.0, share: float = 1e-5) -> float:
    """The largest difference of two arrays where both are finite, each relative to the scale of its entry.

    Scales are at least `floor`, and at least a small share of the largest entry, whose rounding may be in all others.

    >>> one = np.array([[1e9, 1.0], [1.0, 1.0]])
    >>> difference(one, np.array([[1e9, 1.0], [1.0, 2.0]]), share=1e-10)
    0.5
    """
    finite = np.isfinite(found) & np.isfinite(expected)
    found, expected = np.where(finite, found, 0.0), np.where(finite, expected, 0.0)
    sizes = np.maximum(magnitude(found), magnitude(expected))
    axes = range(sizes.ndim)
    rows = [sizes.max(axis=tuple(a for a in axes if a != axis), keepdims=True, initial=0.0) for axis in axes]
    largest = sizes.max(initial=0.0)
    scale = np.maximum(np.maximum(sizes, reduce(np.minimum, rows, largest)), max(floor, share * largest))
    with np.errstate(over="ignore"):
        off = magnitude(np.asarray(found - expected))
    return float(np.max(off / np.where(scale > 0, scale, 1.0), initial=0.0))
