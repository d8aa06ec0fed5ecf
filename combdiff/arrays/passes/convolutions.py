"""Convolutions round a ring become products of Fourier transforms: n log n operations instead of tables of n² places.

    y = x[(i[:, None] - i) % n] @ h         y = np.fft.ifft(np.fft.fft(x) * np.fft.fft(h)).real      Σ_j x(i − j) h(j)
    z = y @ h[(i[:, None] - i) % n]         z = np.fft.fft(np.fft.fft(h) * np.fft.ifft(y)).real      Σ_i h(i − d) y(i)

Of few values the tables are quicker, and as exact as they can be.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.passes.fourier import along, entrywise
from combdiff.arrays.plan import Plan, Step, interned
from combdiff.records import dataclass
from combdiff.terms.terms import ONE

_LARGE = 1 << 12  # places in a table


@dataclass(frozen=True, slots=True)
class _Circulant:
    """The table of x(a i + b j) for all i and j, the signs a and b by axis."""

    of: Step
    signs: tuple[int, int]


def with_convolutions_transformed(plan: Plan, large: int = _LARGE) -> Plan:
    """The plan with transforms for products with tables of at least so many places."""
    if plan.loops:
        return plan
    tables = {step: table for step in plan.steps if plan.entries(step) >= large and (table := _table(step)) is not None}
    if not tables:
        return plan
    new: dict[Step, Step] = {}
    for step in plan.steps:
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(step.op, ops.Tensordot) and len(step.op.left) == 1:
            side = next((n for n, o in enumerate(step.operands) if o in tables), None)
            if side is not None and step.operands[1 - side] not in tables:
                table = tables[step.operands[side]]
                made = _convolved(new[table.of], table.signs, new[step.operands[1 - side]], step.op, side)
        new[step] = made
    outputs, names = interned([new[o] for o in plan.outputs], {new.get(s, s): name for s, name in plan.names.items()})
    return replace(plan, outputs=outputs, names=names)


def _table(step: Step) -> _Circulant | None:
    """A vector that is read at sums or differences of two indices, which count round its ring."""
    match step.op:
        case ops.Gather(((0, 1),), 2) if len(step.operands) == 2 and step.operands[0].rank == 1:
            x, place = step.operands
        case _:
            return None
    (ring,) = x.domains
    match place.op:
        case ops.Position((1 | -1 as a, 1 | -1 as b), 0, modulo, None) as op:
            counted = all(isinstance(o.op, ops.Range) and o.domains == (ring,) for o in place.operands)
            plain = ring.periodic and not ring.symmetric and ring.directions == 1 and modulo == ring
            return _Circulant(x, (a, b)) if counted and plain and op.places == ((0,), (1,)) else None
        case _:
            return None


def _convolved(x: Step, signs: tuple[int, int], v: Step, op: ops.Tensordot, side: int) -> Step:
    """Σ over an axis of the table and of `v`: x(a i + b j) v(j) for each i, say, by the transforms of both.

    With X(k) = Σ_m x(m) exp(−2πi m k/n) it is 1/n Σ_k X(k) exp(2πi a i k/n) Σ_j v(j) exp(2πi b j k/n).
    """
    (over,), (axis,) = op.axes[side], op.axes[1 - side]
    kept, summed = signs[1 - over], signs[over]
    transform = Step(ops.Fourier(0, -1), (x,), x.domains, True)
    other = Step(ops.Fourier(axis, summed), (v,), v.domains, True)
    places = ((axis,), tuple(range(v.rank)))
    both = Step(ops.Mul(ONE, places=places), (transform, other), v.domains, True)
    found = along(both, axis, kept, side, scaled=True)
    real = not (x.complex or v.complex)
    return entrywise(ops.Call("real"), found, complex=False) if real else found
