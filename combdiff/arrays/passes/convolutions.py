"""Convolutions round a ring become products of Fourier transforms: n log n operations instead of tables of n² places.

    y = x[(i[:, None] - i) % n] @ h         y = np.fft.ifft(np.fft.fft(x) * np.fft.fft(h)).real      Σ_j x(i − j) h(j)
    z = y @ h[(i[:, None] - i) % n]         z = np.fft.fft(np.fft.fft(h) * np.fft.ifft(y)).real      Σ_i h(i − d) y(i)

So do those round several rings at once, of images, whose tables have n²m² places. Of few values the tables are quicker,
and as exact as they can be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.passes.fourier import entrywise
from combdiff.arrays.plan import Plan, Step, interned
from combdiff.records import dataclass
from combdiff.terms.terms import ONE
from combdiff.terms.types import Domain

LARGE = 1 << 12
"""Places of a table from which on transforms are quicker."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Circulant:
    """The table of x(a i + b j, …): for each axis of x the axes of i and j, and the signs a and b."""

    of: Step
    axes: tuple[Pair, ...]
    signs: tuple[Pair, ...]


def with_convolutions_transformed(plan: Plan, large: int = LARGE) -> Plan:
    """The plan with transforms for products with tables of at least so many places."""
    if plan.loops:
        return plan
    tables = {s: table for s in plan.steps if plan.entries(s) >= large and (table := circulant(s)) is not None}
    if not tables:
        return plan
    new: dict[Step, Step] = {}
    for step in plan.steps:
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(step.op, ops.Tensordot):
            side = next((n for n, o in enumerate(step.operands) if o in tables), None)
            if side is not None and step.operands[1 - side] not in tables:
                table = tables[step.operands[side]]
                if is_convolution(table.axes, step.op.axes[side]):
                    made = _convolved(new[table.of], table, new[step.operands[1 - side]], step.op, side)
        new[step] = made
    outputs, names = interned([new[o] for o in plan.outputs], {new.get(s, s): name for s, name in plan.names.items()})
    return replace(plan, outputs=outputs, names=names)


def is_convolution(pairs: Iterable[Pair], over: Iterable[int]) -> bool:
    """Whether a product sums over one axis of each pair.

    >>> is_convolution([(0, 1), (2, 3)], (1, 2)), is_convolution([(0, 1), (2, 3)], (0, 1))
    (True, False)
    """
    pairs, summed = [*pairs], {*over}
    return len(summed) == len(pairs) and all(len(summed.intersection(pair)) == 1 for pair in pairs)


def circulant(step: Step) -> Circulant | None:
    """A tensor that is read, in each slot, at the sum or difference of two indices that count round its ring."""
    if not isinstance(step.op, ops.Gather) or len(step.operands) != 1 + len(step.op.slots):
        return None
    x, *places = step.operands
    axes: list[Pair] = []
    signs: list[Pair] = []
    for slot, place, ring in zip(step.op.slots, places, x.domains, strict=True):
        found = _signs(place, ring)
        if found is None or slot is None or len(slot) != 2:
            return None
        axes.append((slot[0], slot[1]))
        signs.append(found)
    return Circulant(x, tuple(axes), tuple(signs)) if len({a for pair in axes for a in pair}) == step.rank else None


def _signs(place: Step, ring: Domain) -> Pair | None:
    """The signs of two indices of a ring whose sum or difference a place is."""
    match place.op:
        case ops.Position((1 | -1 as a, 1 | -1 as b), 0, modulo, None) as op:
            counted = all(isinstance(o.op, ops.Range) and o.domains == (ring,) for o in place.operands)
            plain = ring.periodic and not ring.symmetric and ring.directions == 1 and modulo == ring
            return (a, b) if counted and plain and op.places == ((0,), (1,)) else None
        case _:
            return None


def _convolved(x: Step, table: Circulant, v: Step, op: ops.Tensordot, side: int) -> Step:
    """Σ over axes of the table and of `v`: x(a i + b j) v(j) for each i, say, by the transforms of both.

    With X(k) = Σ_m x(m) exp(−2πi m k/n) it is 1/n Σ_k X(k) exp(2πi a i k/n) Σ_j v(j) exp(2πi b j k/n).
    """
    at = dict(zip(op.axes[side], op.axes[1 - side], strict=True))
    kept: dict[int, int] = {}  # the axes of the table that are left, and those of v in whose place they come
    transform, other = x, v
    back: list[tuple[int, int]] = []
    places: list[int] = []
    for slot, (pair, signs) in enumerate(zip(table.axes, table.signs, strict=True)):
        n = 0 if pair[0] in at else 1
        axis = at[pair[n]]
        transform = Step(ops.Fourier(slot, -1), (transform,), x.domains, True)
        other = Step(ops.Fourier(axis, signs[n]), (other,), v.domains, True)
        back.append((axis, signs[1 - n]))
        kept[pair[1 - n]] = axis
        places.append(axis)
    aligned = (tuple(places), tuple(range(v.rank)))
    found = Step(ops.Mul(ONE, places=aligned), (transform, other), v.domains, True)
    for axis, sign in back:
        found = Step(ops.Fourier(axis, sign, scaled=True), (found,), v.domains, True)
    if not (x.complex or v.complex):
        found = entrywise(ops.Call("real"), found, complex=False)
    ours = [kept[axis] for axis in sorted(kept)]
    rest = [axis for axis in range(v.rank) if axis not in ours]
    order = (*ours, *rest) if side == 0 else (*rest, *ours)
    if order == tuple(range(v.rank)):
        return found
    return Step(ops.Permute(order), (found,), tuple(v.domains[axis] for axis in order), found.complex)
