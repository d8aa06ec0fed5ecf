"""Arrays whose axes are index variables: their sums, and their products with indices summed out, two at a time.

The numbers are floating-point numbers, or residues modulo a prime (`exact.py`), which are held as floating-point
integers. `reach` bounds the real and imaginary parts of residues, so that they are reduced only when a product or a sum
could leave the range of exact integers; it is 0 for floating-point numbers, which are never reduced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from combdiff.errors import UnsupportedError
from combdiff.gate.residues import EXACT, HALF, centred

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    Array = npt.NDArray[Any]

LARGEST = 2**23
"""Products of numbers in the largest step of a check."""


class TooLargeError(UnsupportedError):
    """A term whose value needs larger arrays than a check may use."""


class Labelled(NamedTuple):
    """An array, the index variables (their `uid`) that its axes are, and how large residues in it may be."""

    array: Array
    axes: tuple[int, ...] = ()
    reach: float = 0.0

    def over(self, axes: Sequence[int]) -> Array:
        """The array with its axes in the order of `axes`, of length 1 where it does not depend on one."""
        mine = self.axes
        if mine == tuple(axes):
            return self.array
        order = [mine.index(a) for a in axes if a in mine]
        moved = self.array.transpose(order) if order else self.array
        extents = iter(moved.shape)
        return moved.reshape([next(extents) if a in mine else 1 for a in axes])

    def reduced(self) -> Labelled:
        """The same residues, none larger than half of the modulus."""
        return self if self.reach <= HALF else Labelled(centred(self.array), self.axes, HALF)


def all_axes(parts: Iterable[Labelled]) -> tuple[int, ...]:
    """Every index variable that is an axis of one of `parts`, in the order in which they are met."""
    return tuple(dict.fromkeys(a for p in parts for a in p.axes))


def added(parts: Sequence[Labelled]) -> Labelled:
    """The sum, entry by entry."""
    if sum(p.reach for p in parts) > EXACT:
        parts = [p.reduced() for p in parts]
    _refuse_size(_extents(parts), "a sum")
    axes = all_axes(parts)
    result = parts[0].over(axes)
    for p in parts[1:]:
        result = result + p.over(axes)
    return Labelled(result, axes, sum(p.reach for p in parts))


def multiplied(parts: Sequence[Labelled]) -> Labelled:
    """The product, entry by entry."""
    return _multiplied(parts, frozenset(), _extents(parts))


def guarded(factors: Sequence[Labelled], mask: Labelled) -> list[Labelled]:
    """The factors of what stands under a condition, and the condition as a factor, 0 where it does not hold.

    There a factor that is not finite does not matter: 0 · ∞ would be nan.
    """
    import numpy as np

    kept = []
    for f in factors:
        if not np.isfinite(f.array).all():
            _refuse_size(_extents([f, mask]), "what stands under a condition")
            axes = all_axes((f, mask))
            f = Labelled(np.where(mask.over(axes) == 0, 0, f.over(axes)), axes, f.reach)
        kept.append(f)
    return [*kept, mask]


def eliminated(factors: Sequence[Labelled], sizes: Mapping[int, int], unit: float) -> Labelled:
    """Σ over the indices that `sizes` names of the product, the one that leaves the smallest array first.

    Args:
        unit: the reach of the number 1.
    """
    extents = {**_extents(factors), **sizes}
    work = dict(enumerate(factors))
    holders: dict[int, set[int]] = {v: set() for v in sizes}
    for n, f in work.items():
        for a in f.axes:
            if a in holders:
                holders[a].add(n)
    absent = prod(sizes[v] for v in sizes if not holders[v])
    costs = {v: _cost(v, work, holders, extents) for v in sizes if holders[v]}
    while costs:
        first = min(costs, key=costs.__getitem__)
        touched = sorted(holders[first])
        gone = frozenset(v for v in work[touched[0]].axes if v in costs and holders[v] <= holders[first])
        gone |= {first}
        merged = _multiplied([work.pop(n) for n in touched], gone, extents)
        for v in gone:
            del costs[v]
        name = len(factors) + len(sizes) - len(costs)
        work[name] = merged
        for a in merged.axes:
            if a in costs:
                holders[a] = (holders[a] - set(touched)) | {name}
        for a in merged.axes:
            if a in costs:
                costs[a] = _cost(a, work, holders, extents)
    import numpy as np

    left = list(work.values())
    if absent != 1 or not left:
        left.append(Labelled(np.asarray(float(absent)), (), unit * absent).reduced())
    return _multiplied(left, frozenset(), extents)


def _cost(v: int, work: Mapping[int, Labelled], holders: Mapping[int, set[int]], extents: Mapping[int, int]) -> int:
    return prod(extents[a] for a in {a for n in holders[v] for a in work[n].axes})


def _extents(parts: Iterable[Labelled]) -> dict[int, int]:
    return {a: n for p in parts for a, n in zip(p.axes, p.array.shape, strict=True)}


def _refuse_size(extents: Mapping[int, int], what: str) -> None:
    entries = prod(extents.values())
    if entries > LARGEST:
        raise TooLargeError(f"a check on numbers would need {what} over {entries} entries")


def _multiplied(parts: Sequence[Labelled], gone: frozenset[int], extents: Mapping[int, int]) -> Labelled:
    """The product, summed over the indices in `gone`, each as soon as no later factor depends on it."""
    result = parts[0]
    if len(parts) == 1:
        return _summed(result, gone.intersection(result.axes))
    for n, factor in enumerate(parts[1:], start=2):
        now = gone.intersection((*result.axes, *factor.axes)) if gone else gone
        if now:
            now = now.difference(*(p.axes for p in parts[n:]))
        result = _pair(result, factor, now, extents)
    return result


def _pair(a: Labelled, b: Labelled, gone: frozenset[int], extents: Mapping[int, int]) -> Labelled:
    import numpy as np

    count = prod(extents[v] for v in gone)
    if 2 * a.reach * b.reach * count > EXACT:
        a, b = a.reduced(), b.reduced()
        if 2 * a.reach * b.reach * count > EXACT:
            return _summed(_pair(a, b, frozenset(), extents).reduced(), gone)
    reach = 2 * a.reach * b.reach * count
    if not gone and (a.axes == b.axes or not a.axes or not b.axes):
        return Labelled(a.array * b.array, a.axes or b.axes, reach)
    label: dict[int, int] = {}
    for axis in (*a.axes, *b.axes):
        label.setdefault(axis, len(label))
    _refuse_size({axis: extents[axis] for axis in label}, "a product")
    axes = tuple(axis for axis in label if axis not in gone)
    operands = (a.array, [label[v] for v in a.axes], b.array, [label[v] for v in b.axes], [label[v] for v in axes])
    return Labelled(np.asarray(np.einsum(*operands)), axes, reach)


def _summed(a: Labelled, gone: frozenset[int]) -> Labelled:
    if not gone:
        return a
    at = tuple(n for n, axis in enumerate(a.axes) if axis in gone)
    count = prod(a.array.shape[n] for n in at)
    a = a.reduced() if a.reach * count > EXACT else a
    axes = tuple(axis for axis in a.axes if axis not in gone)
    return Labelled(a.array.sum(axis=at), axes, a.reach * count)
