"""Computes the part of a range that a condition leaves: `1 <= i` and `i < n - 1` leave all but its two ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from combdiff.arrays import ops
from combdiff.arrays.plan import Step, ordered
from combdiff.records import dataclass
from combdiff.terms.types import Domain


@dataclass(frozen=True, slots=True)
class Interval:
    """A range without its first `before` and its last `behind` values."""

    before: int = 0
    behind: int = 0

    @property
    def less(self) -> int:
        """How many values it has fewer than the range."""
        return self.before + self.behind

    def __and__(self, other: Interval) -> Interval:
        return Interval(max(self.before, other.before), max(self.behind, other.behind))

    def __or__(self, other: Interval) -> Interval:
        """The least interval that both are parts of."""
        return Interval(min(self.before, other.before), min(self.behind, other.behind))

    def __le__(self, other: Interval) -> bool:
        return other.before <= self.before and other.behind <= self.behind

    def shifted(self, by: int) -> Interval | None:
        """The values k + by for all its values k; None where that leaves the range."""
        moved = Interval(self.before + by, self.behind - by)
        return None if min(moved.before, moved.behind) < 0 else moved

    def within(self, whole: Interval) -> Interval:
        """The same as a part of `whole`."""
        return Interval(self.before - whole.before, self.behind - whole.behind)


WHOLE = Interval()

Region: TypeAlias = tuple[Interval, ...]
"""An interval for each axis of an array."""


def everywhere(step: Step) -> Region:
    """The region that is all of an array."""
    return (WHOLE,) * step.rank


def domains_in(step: Step, region: Region) -> tuple[Domain, ...]:
    """What the axes of a part of an array range over."""
    return tuple(d.shortened(interval.less) for d, interval in zip(step.domains, region, strict=True))


def sizes_of_parts(outputs: Iterable[Step], sizes: Mapping[Domain, int]) -> dict[Domain, int]:
    """How many values are left of ranges that are cut."""
    cut = {d for step in ordered(outputs) for d in step.domains if d.of is not None}
    return {d: d.extent(sizes) for d in sorted(cut, key=lambda d: (d.name, d.less))}


def chosen(step: Step) -> tuple[int, Interval] | None:
    """The axis of a choice whose index its condition compares, and the interval in which the condition holds.

    >>> from combdiff.arrays.plan import Builder
    >>> from combdiff.terms.terms import ZERO
    >>> make, n = Builder().step, Domain("n")
    >>> i, x, size = make(ops.Range(n), (), (n,)), make(ops.Input("x"), (), (n,)), make(ops.Size(n), (), ())
    >>> chosen(make(ops.Where("<", None, ZERO, places=((0,), (), (0,))), (i, size, x), (n,)))
    (0, Interval(before=0, behind=0))

    None where the condition is another one than that an index is not below, or not above, a distance from an end.
    """
    op = step.op
    if not isinstance(op, ops.Where) or op.modulo is not None or op.relation not in _ORDERS:
        return None
    sides = [_place(side) for side in step.operands[:2]]
    if None in sides:
        return None
    less, more = (side for side in (sides if op.relation in ("<", "<=") else sides[::-1]) if side is not None)
    axes = {axis for side, at in zip(step.operands[:2], op.places, strict=False) for axis in at if side.rank}
    if len(axes) != 1:
        return None
    (axis,) = axes
    domain = step.domains[axis]
    # 0 ≤ index · i + size · n + constant
    index, size, constant = (b - a for a, b in zip(less.numbers, more.numbers, strict=True))
    form = _Place(index, size, constant, more.of or less.of)
    interval = _interval(form, int(op.relation in ("<", ">")), domain)
    if interval is None or (domain.count is not None and domain.count <= interval.less):
        return None
    return axis, interval


_ORDERS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Move:
    """Entry k of an axis is entry k + `by` of an operand's axis, which has `more` values, below 0 fewer."""

    axis: int
    by: int
    more: int

    def read(self, region: Region) -> Region | None:
        """The region of the operand that is read for a region of the result; None where that leaves its range."""
        own = region[self.axis]
        moved = Interval(own.before + self.by, own.behind - self.by + self.more)
        if min(moved.before, moved.behind) < 0:
            return None
        return (*region[: self.axis], moved, *region[self.axis + 1 :])


def move(step: Step) -> Move | None:
    """How entries are moved by a gather at k + c, along an axis whose size is that of k's range and a number.

    >>> from combdiff.arrays.plan import Builder
    >>> make, n = Builder().step, Domain("n")
    >>> k, x = make(ops.Range(n), (), (n,)), make(ops.Input("x"), (), (n.shortened(1),))
    >>> place = make(ops.Position((1,), -1, n.shortened(1), None, places=((0,),)), (k,), (n,))
    >>> move(make(ops.Gather(((0,),), 1), (x, place), (n,)))
    Move(axis=0, by=-1, more=-1)
    """
    match step.op:
        case ops.Gather(slots, 1) if sum(slot is not None for slot in slots) == 1:
            axis = next(n for n, slot in enumerate(slots) if slot is not None)
            array, place = step.operands
        case _:
            return None
    match place.op, place.operands:
        case ops.Position((1,), by, None | Domain(), None), (Step(op=ops.Range(domain)),):
            whole = array.domains[axis]
            more = domain.fewer(whole) if domain.from_zero and whole.from_zero else None
            return None if more is None else Move(axis, by, more)
        case _:
            return None


def _interval(form: _Place, strictly: int, domain: Domain) -> Interval | None:
    """Where index · i + size · n + constant is not below 0, or is above 0 if `strictly`."""
    constant = form.constant - strictly
    first, count = domain.lower or 0, domain.count
    if form.of is not None:
        fewer = domain.fewer(form.of)
        if fewer is None:
            return None
        constant += form.size * fewer
    if domain.symmetric or domain.listed or domain.directions > 1:
        return None
    match form.index, form.size:
        case 1, 0:
            return Interval(before=max(0, -constant - first))
        case -1, 1:
            return Interval(behind=max(0, -1 - constant + first))
        case -1, 0 if count is not None:
            return Interval(behind=max(0, first + count - 1 - constant))
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Place:
    """index · i + size · n + constant, where n is the size of the domain `of`."""

    index: int
    size: int
    constant: int
    of: Domain | None = None

    @property
    def numbers(self) -> tuple[int, int, int]:
        return self.index, self.size, self.constant


def _place(step: Step) -> _Place | None:
    """A side of a comparison that is affine in one index and in the size of one range."""
    match step.op:
        case ops.Range():
            return _Place(1, 0, 0)
        case ops.Size(domain):
            return _Place(0, 1, 0, domain)
        case ops.Constant(value) if value.is_integer:
            return _Place(0, 0, int(value.real))
        case ops.Position(coefficients, constant, None, None):
            found = [_place(o) for o in step.operands]
            parts = [part for part in found if part is not None]
            sizes = {part.of for part in parts if part.of is not None}
            if len(parts) < len(found) or len(sizes) > 1 or sum(bool(part.index) for part in parts) > 1:
                return None
            sums = [sum(c * p.numbers[n] for c, p in zip(coefficients, parts, strict=True)) for n in range(3)]
            return _Place(sums[0], sums[1], sums[2] + constant, *sizes)
        case _:
            return None
