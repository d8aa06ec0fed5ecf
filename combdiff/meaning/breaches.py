"""Checks that an array has its declared symmetries, entry by entry, and finds the entry that breaks them most.

An entry must be what a symmetry says of it to half its digits, or to half those of its row: of the least of the largest
entries in the slices through it. Below the rounding of all entries in these slices it is noise, whatever its digits,
and so it is below the rounding of the entries elsewhere; there, one large entry and its images do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import islice

import numpy as np
import numpy.typing as npt

from combdiff.canon.moves import orbit
from combdiff.errors import ArrayError
from combdiff.meaning.comparing import ROUNDING, Numbers, Sizes, magnitude
from combdiff.meaning.points import slot_sizes
from combdiff.meaning.samples import images_of, shape_of
from combdiff.meaning.values import AXES
from combdiff.records import dataclass
from combdiff.terms.types import Domain, Index, Map, Symmetry

Place = tuple[int, ...]
Points = Sequence[npt.NDArray[np.intp]]

_BLOCK = 1 << 18  # entries that are looked at together
_MOST_IMAGES = 1000


@dataclass(frozen=True, slots=True)
class Breach:
    """An entry that is not what a symmetry says of it, at its place in the array; it may be no finite number."""

    law: Symmetry
    place: Place
    found: complex
    expected: complex

    def message(self, name: str) -> str:
        """The sentence for a user, whose array is called `name`."""
        entry = f"{name}[{', '.join(map(str, self.place))}]"
        if np.isnan(self.found):
            what = "nan"
        elif np.isinf(self.found):
            what = "infinity"
        else:
            pairs = ((f"{self.found:.{n}g}", f"{self.expected:.{n}g}") for n in (6, 10, 17))
            what = ", not ".join(next((pair for pair in pairs if pair[0] != pair[1]), ("", "")))
        return f"{name} does not have its declared symmetry {self.law}: {entry} is {what}"


class Entries:
    """The entries of an array of NumPy, as far as they are asked for; other libraries have a class of their own."""

    def __init__(self, array: Numbers) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[np.float64 | np.complex128]:
        return self.array.dtype

    def at(self, points: Points) -> Numbers:
        """The entries at points, given by an index array for each axis."""
        return np.asarray(self.array[tuple(points)])

    def largest(self, kept: tuple[int, ...]) -> Sizes:
        """The largest entry for each index along the axes `kept`; nan if one is nan."""
        over = tuple(axis for axis in range(self.array.ndim) if axis not in kept)
        rows = max(_BLOCK * len(self.array) // self.array.size, 1)
        blocks = [self.array[n : n + rows] for n in range(0, len(self.array), rows)]
        found = [magnitude(block).max(axis=over) for block in blocks]
        return np.concatenate(found) if 0 in kept else np.maximum.reduce(found)

    def part(self, index: int) -> Entries:
        """The entries with this index along the first axis."""
        return Entries(self.array[index])


def breaks_symmetry(
    array: Numbers | Entries,
    kind: Map,
    sizes: Mapping[Domain, int],
    sample: int | None = 4096,
    rng: np.random.Generator | None = None,
) -> Breach | None:
    """The entry that is farthest from what a declared symmetry says of it, or None if all are within rounding.

    >>> from combdiff.terms.types import REAL, SYMMETRIC
    >>> n = Domain("A.1")
    >>> kind = Map((Index(n), Index(n)), REAL, (SYMMETRIC,))
    >>> breach = breaks_symmetry(np.array([[1.0, 2.0], [3.0, 4.0]]), kind, {n: 2})
    >>> print(breach.law, breach.place, breach.found, breach.expected)
    ((2, 1), :id) (0, 1) 2.0 3.0

    Args:
        sample: how many entries to look at, drawn by `rng`; None for all. Their rows are looked at where entries
            differ, so that all entries may be read for a doubt.
    """
    entries = array if isinstance(array, Entries) else Entries(array)
    shape = shape_of(kind, sizes)
    if entries.shape != shape:
        raise ArrayError(f"the array has shape {entries.shape}, but its type says {shape}", remedy=AXES)
    if 0 in shape:
        return None
    looked = _Looked(entries, kind, sizes)
    everything = sample is None or np.prod(shape, dtype=float) <= sample
    rng = rng or np.random.default_rng(0)
    drawn = [] if everything else [rng.integers(0, n, sample) for n in looked.shape]
    found = []
    with np.errstate(all="ignore"):
        for law in kind.symmetries:
            for points, one, other in looked.blocks(law) if everything else looked.sampled(law, drawn):
                found += looked.breach(law, points, one, other)
    return max(found, key=lambda pair: pair[0], default=(0.0, None))[1]


class _Looked:
    """An array whose symmetries are checked. Slot by slot: a lattice has one axis here, its points in order."""

    def __init__(self, entries: Entries, kind: Map, sizes: Mapping[Domain, int]) -> None:
        inexact = entries.dtype.kind in "fc"
        # NumPy's integers wrap round, and are compared as floating-point numbers, all of whose digits must agree
        self.entries = entries if inexact else Entries(entries.array.astype(np.float64))
        self.precision = np.finfo(np.dtype(entries.dtype.char.lower())) if inexact else None
        self.kind = kind
        self.sizes = sizes
        self.shape = slot_sizes(kind.params, sizes)

    # --- what is compared -------------------------------------------------------------------------------------------

    def sampled(self, law: Symmetry, points: Points) -> Iterator[tuple[Points, Numbers, Numbers]]:
        """Entries at points, and what the symmetry says of them."""
        yield points, self._at(points), _said(law, self._at(images_of(self.kind, self.sizes, law, points)))

    def blocks(self, law: Symmetry) -> Iterator[tuple[Points, Numbers, Numbers]]:
        """All entries, and what the symmetry says of them, some values of the first index at a time."""
        whole = self.entries.array.reshape(self.shape)
        related = whole.transpose(np.argsort([row[0][0] for row in law.rows])) if law.permutes else None
        if related is not None and related.shape != whole.shape:
            raise ArrayError(f"the symmetry {law} exchanges slots of unequal size", remedy="give them one size")
        rows = max(_BLOCK * len(whole) // whole.size, 1)
        for n in range(0, len(whole), rows):
            block = slice(n, n + rows)
            points = np.ogrid[(slice(n, min(n + rows, len(whole))), *map(slice, self.shape[1:]))]
            other = related[block] if related is not None else whole[images_of(self.kind, self.sizes, law, points)]
            yield points, whole[block], _said(law, other)

    def _at(self, points: Points) -> Numbers:
        """Entries by the positions in their slots."""
        return self.entries.at([place for slot, at in enumerate(points) for place in self._axes_of(slot, at)])

    def _axes_of(self, slot: int, at: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], ...]:
        """A position in a slot by the axes of the array that hold it."""
        return np.unravel_index(at, [self.entries.shape[axis] for axis in self._axes[slot]])

    @cached_property
    def _axes(self) -> list[tuple[int, ...]]:
        """The axes of the array that hold each slot."""
        found, first = [], 0
        for p in self.kind.params:
            assert isinstance(p, Index) and p.domain is not None, "a tensor's slots have domains"
            found.append(tuple(range(first, first + len(p.domain.axes))))
            first = found[-1][-1] + 1
        return found

    # --- what is a breach -------------------------------------------------------------------------------------------

    def breach(self, law: Symmetry, points: Points, found: Numbers, expected: Numbers) -> list[tuple[float, Breach]]:
        """The entry that is farthest from what is expected, and how far in units of what is allowed, if it is."""
        gap = np.asarray(found - expected)
        if not gap.any():  # nan is not zero
            return []
        own = np.maximum(magnitude(found), magnitude(expected))
        off = magnitude(gap)
        finite = np.isfinite(own)
        if not finite.all():
            far = np.where(finite, 0.0, np.inf)
        elif (off <= self._allowed(own)).all():
            return []
        elif not np.isfinite(self._entry(self._summit)):
            return [(np.inf, self._told(law, self._summit, self._entry(self._summit), np.nan))]
        else:
            rows = [sizes[at] for sizes, at in zip(self._slices, points, strict=True)]
            far = off / self._allowed(np.maximum(own, reduce(np.minimum, rows)))
            far[own <= self._noise(reduce(np.maximum, rows))] = 0.0
        worst = np.unravel_index(np.argmax(far), far.shape)
        if far[worst] <= 1:
            return []
        place = [int(np.broadcast_to(p, far.shape)[worst]) for p in points]
        return [(float(far[worst]), self._told(law, place, found[worst], expected[worst]))]

    def _told(self, law: Symmetry, place: Sequence[int], found: complex, expected: complex) -> Breach:
        """The breach at a place by slots; of two entries the one that is no finite number."""
        if np.isfinite(found) and not np.isfinite(expected):
            place, found, expected = self._image(place, law), expected, found
        axes = [int(n) for slot, at in enumerate(place) for n in self._axes_of(slot, np.asarray(at))]
        return Breach(law, tuple(axes), found, expected)

    def _allowed(self, scale: Sizes) -> Sizes:
        """How far an entry may be off: half the digits of its dtype; nothing for integers."""
        if self.precision is None:
            return np.full_like(scale, 0.5)
        return np.asarray(self.precision.eps**0.5 * scale + self.precision.tiny)

    @cached_property
    def _slices(self) -> list[Sizes]:
        """The largest entry for each index of each slot."""
        return [self.entries.largest(axes).reshape(-1) for axes in self._axes]

    @cached_property
    def _summit(self) -> Place:
        """Where the largest entry is, by slots; the first that is no number if there is one."""
        place, rest = [], self.entries
        for _ in self.entries.shape:
            place.append(int(np.argmax(rest.largest((0,)))))
            rest = rest.part(place[-1])
        return tuple(
            int(np.ravel_multi_index([place[a] for a in axes], [self.entries.shape[a] for a in axes]))
            for axes in self._axes
        )

    def _noise(self, rows: Sizes) -> Sizes:
        """Up to where an entry may be all rounding, in rows of this scale; integers have none."""
        if self.precision is None:
            return np.full_like(rows, -1.0)
        return np.asarray(ROUNDING * self.precision.eps * np.maximum(rows, self._elsewhere))

    @cached_property
    def _elsewhere(self) -> float:
        """The largest entry in a slice without the largest one of all and its images."""
        images = [*islice(orbit(self._summit, self.kind.symmetries, self._image), _MOST_IMAGES)]
        rest = [np.delete(sizes, [p[slot] for p in images]) for slot, sizes in enumerate(self._slices)]
        return max(float(sizes.max(initial=0.0)) for sizes in rest)

    def _image(self, place: Sequence[int], law: Symmetry) -> Place:
        found = images_of(self.kind, self.sizes, law, [np.asarray(p) for p in place])
        return tuple(int(p) for p in found)

    def _entry(self, place: Place) -> complex:
        entry: complex = self._at([np.asarray([p]) for p in place]).item()
        return entry


def _said(law: Symmetry, image: Numbers) -> Numbers:
    """What a symmetry says of entries whose images these are."""
    image = image.conj() if law.conj and image.dtype.kind == "c" else image
    return -image if law.sign < 0 else image
