"""Convolutions round a ring become products of Fourier transforms: n log n operations instead of tables of n² places.

    y = x[(i[:, None] - i) % n] @ h         y = np.fft.ifft(np.fft.fft(x) * np.fft.fft(h))      Σ_j x(i − j) h(j)
    z = y @ h[(i[:, None] - i) % n]         z = np.fft.fft(np.fft.fft(h) * np.fft.ifft(y))      Σ_i h(i − d) y(i)

Of real numbers half of each transform is enough, np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h), n). So do those round
several rings at once, of images, whose tables have n²m² places. Of few values the tables are quicker, and as exact as
they can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Step, interned, ordered
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
    halves = [d for s in ordered(outputs) for d in s.domains if d.of is not None and d == d.of.half]
    sizes = {**plan.sizes, **{d: d.extent(plan.sizes) for d in halves}}
    return replace(plan, outputs=outputs, names=names, sizes=sizes)


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
    turns: list[_Turn] = []
    for slot, (pair, signs) in enumerate(zip(table.axes, table.signs, strict=True)):
        n = 0 if pair[0] in at else 1
        kept[pair[1 - n]] = at[pair[n]]
        turns.append(_Turn(slot, at[pair[n]], signs[n], signs[1 - n]))
    found = _of_complex(x, v, turns) if x.complex or v.complex else _of_real(x, v, turns)
    ours = [kept[axis] for axis in sorted(kept)]
    rest = [axis for axis in range(v.rank) if axis not in ours]
    order = (*ours, *rest) if side == 0 else (*rest, *ours)
    if order == tuple(range(v.rank)):
        return found
    return Step(ops.Permute(order), (found,), tuple(v.domains[axis] for axis in order), found.complex)


@dataclass(frozen=True, slots=True)
class _Turn:
    """The axis of each factor that a transform is along; the signs of that of the second factor, and of that back."""

    slot: int
    axis: int
    sign: int
    back: int


def _of_complex(x: Step, v: Step, turns: Sequence[_Turn]) -> Step:
    transform, other = x, v
    for turn in turns:
        transform = Step(ops.Fourier(turn.slot, -1), (transform,), x.domains, True)
        other = Step(ops.Fourier(turn.axis, turn.sign), (other,), v.domains, True)
    found = _times(transform, other, turns)
    for turn in turns:
        found = Step(ops.Fourier(turn.axis, turn.back, scaled=True), (found,), v.domains, True)
    return found


def _of_real(x: Step, v: Step, turns: Sequence[_Turn]) -> Step:
    """The same of real numbers: half of the transforms along one axis says the rest."""
    first, *rest = turns
    # the transform with the other sign is the conjugate
    turned, back = first.sign > 0, first.back < 0
    x_turned = back and not rest
    turned, back = (not turned, False) if x_turned else (turned, back)
    transform, other = _half(x, first.slot, x_turned), _half(v, first.axis, turned)
    for turn in rest:
        transform = Step(ops.Fourier(turn.slot, -1), (transform,), transform.domains, True)
        other = Step(ops.Fourier(turn.axis, turn.sign), (other,), other.domains, True)
    found = _times(transform, other, turns)
    for turn in rest:
        found = Step(ops.Fourier(turn.axis, turn.back, scaled=True), (found,), found.domains, True)
    found = Step(ops.Conj(), (found,), found.domains, True) if back else found
    return Step(ops.FromHalfFourier(first.axis), (found,), v.domains, False)


def _half(real: Step, axis: int, conjugated: bool) -> Step:
    """Half of the transform of real numbers along an axis."""
    domains = tuple(d.half if n == axis else d for n, d in enumerate(real.domains))
    found = Step(ops.HalfFourier(axis), (real,), domains, True)
    return Step(ops.Conj(), (found,), domains, True) if conjugated else found


def _times(transform: Step, other: Step, turns: Sequence[_Turn]) -> Step:
    aligned = (tuple(turn.axis for turn in turns), tuple(range(other.rank)))
    return Step(ops.Mul(ONE, places=aligned), (transform, other), other.domains, True)
