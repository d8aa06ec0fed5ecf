"""Splits a step along an index: which axes of operands and result carry it, and the step on one value or block of it.

A contraction W(p, i) = Σ_q A(p, q) B(q, i) can be cut along p, which slices A and the result, along i, which slices B
and the result, or along q, which slices both operands and adds up to the result. `cuts` reads this off the labels of
the axes, and `part` is what the step does with one slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Step
from combdiff.records import dataclass
from combdiff.terms.terms import ONE
from combdiff.terms.types import Domain

_MOVED = (ops.Permute, ops.Broadcast, ops.Flip, ops.Roll, ops.Pick, ops.Window)
_CUT = (
    *ops.ALIGNED,
    *_MOVED,
    ops.Conj,
    ops.Contraction,
    ops.Sum,
    ops.Cumulative,
    ops.Fourier,
    ops.Reduced,
    ops.Norm,
    ops.Cross,
    ops.OfMatrices,
    ops.Gather,
    ops.Stack,
    ops.Put,
)


@dataclass(frozen=True, slots=True)
class Cut:
    """An index along which a step can be cut: the axis of the result that carries it, and that of each operand.

    Without an axis of the result, the results for all values add up to it. An operand without one is used whole.
    """

    axis: int | None
    slices: tuple[int | None, ...]


def cuts(step: Step) -> tuple[Cut, ...]:
    """All indices along which the step can be cut, those that its result carries first.

    >>> from combdiff.terms.types import Domain
    >>> make, n = Builder().step, Domain("n")
    >>> A, x = make(ops.Input("A"), (), (n, n)), make(ops.Input("x"), (), (n,))
    >>> cuts(make(ops.Tensordot((1,), (0,)), (A, x), (n,)))
    (Cut(axis=0, slices=(0, None)), Cut(axis=None, slices=(1, 0)))
    """
    if not isinstance(step.op, _CUT) or any(isinstance(o.op, ops.Factors) for o in step.operands):
        return ()
    found = tuple(_cuts(step))
    return tuple(c for c in found if any(s is not None for s in c.slices))


def _cuts(step: Step) -> Iterator[Cut]:
    *operands, out = step.rows
    if isinstance(step.op, ops.Gather) and not step.op.neighbours:
        # without what stands between them, its slots would be neighbours, and the result's axes in other places
        operands[0] = (ops.WHOLE,) * len(operands[0])
    for label in dict.fromkeys((*out, *(label for row in operands for label in row))):
        if label != ops.WHOLE:
            yield Cut(_place(out, label), tuple(_place(row, label) for row in operands))


def _place(row: Sequence[int], label: int) -> int | None:
    return row.index(label) if label in row else None


# --- one value at a time --------------------------------------------------------------------------------------------


def part(make: Builder, step: Step, cut: Cut, operands: tuple[Step, ...], block: Domain | None) -> Step:
    """What the step does with slices of its operands; of a block of values, they keep the axis."""
    if block is not None:
        domains = tuple(block if axis == cut.axis else d for axis, d in enumerate(step.domains))
        return make.step(step.op, operands, domains, step.complex)
    domains = tuple(d for axis, d in enumerate(step.domains) if axis != cut.axis)
    if isinstance(step.op, ops.Contraction):
        return _product(make, step, cut, operands, domains)
    op = _without_axis(step.op, cut)
    if op in (ops.Sum(()), *(kind(tuple(range(len(domains)))) for kind in (ops.Permute, ops.Broadcast))):
        return operands[0]
    return make.step(op, operands, domains, step.complex)


def _without_axis(op: ops.Op, cut: Cut) -> ops.Op:
    """The operation on slices of one value, which have an axis less."""
    sliced = cut.slices[0]
    match op:
        case ops.Aligned(places=places):
            return op.placed(tuple(_without(at, cut.axis) for at in places))
        case ops.Broadcast(places):
            return ops.Broadcast(_without(places, cut.axis))
        case ops.Permute(order):
            return ops.Permute(_without(order, sliced))
        case ops.Sum(axes):
            return ops.Sum(_without(axes, sliced))
        case ops.Pick(fixed):
            return ops.Pick(tuple((_lower(axis, sliced), constant, domain) for axis, constant, domain in fixed))
        case ops.Flip(axis):
            return ops.Flip(_lower(axis, sliced))
        case ops.Roll(axis, by):
            return ops.Roll(_lower(axis, sliced), by)
        case ops.Put(fixed, places, base, starts, negative):
            lowered, started = (
                tuple(tuple((_lower(axis, cut.axis), place) for axis, place in at) for at in some)
                for some in (fixed, starts)
            )
            return ops.Put(lowered, tuple(_without(at, cut.axis) for at in places), base, started, negative)
        case ops.Window(axis, start):
            return ops.Window(_lower(axis, sliced), start)
        case ops.Cumulative(axis) as op:
            return replace(op, axis=_lower(axis, sliced))
        case ops.Fourier(axis, sign, scaled):
            return ops.Fourier(_lower(axis, sliced), sign, scaled)
        case ops.Reduced(kind, axes):
            return ops.Reduced(kind, _without(axes, sliced))
        case ops.Gather(slots, rank):
            return _gather(slots, rank, cut)
        case _:
            return op


def _without(places: Sequence[int], axis: int | None) -> ops.Row:
    """The places that are not `axis`, counted without it."""
    return tuple(_lower(p, axis) for p in places if p != axis)


def _lower(place: int, axis: int | None) -> int:
    return place - (axis is not None and place > axis)


def _gather(slots: tuple[ops.Row | None, ...], rank: int, cut: Cut) -> ops.Gather:
    if cut.slices[0] is not None:
        return ops.Gather(tuple(slot for axis, slot in enumerate(slots) if axis != cut.slices[0]), rank)
    placed = (slot for slot in slots if slot is not None)
    axis = next(at[s] for at, s in zip(placed, cut.slices[1:], strict=True) if s is not None)
    return ops.Gather(tuple(None if slot is None else _without(slot, axis) for slot in slots), rank - 1)


def _product(make: Builder, step: Step, cut: Cut, operands: tuple[Step, ...], domains: tuple[Domain, ...]) -> Step:
    """A contraction without a label: over fewer axes, of matrices instead of stacks of them, or entry by entry."""
    whole = step.rows
    gone = next(row[s] for row, s in zip(whole, (*cut.slices, cut.axis), strict=True) if s is not None)
    row_a, row_b, out = (tuple(label for label in row if label != gone) for row in whole)
    over = [label for label in row_a if label in row_b and label not in out]
    batch = [label for label in row_a if label in row_b and label in out]
    if not over and {*row_a, *row_b} == {*out}:
        places = tuple(tuple(out.index(label) for label in row) for row in (row_a, row_b))
        return make.step(ops.Mul(ONE, places=places), operands, domains, step.complex)
    matrices = not {*row_a} <= {*row_b} and not {*row_b} <= {*row_a}
    if isinstance(step.op, ops.Batched) and batch and over and matrices:
        kept, gone_over = ((_at(row_a, some), _at(row_b, some)) for some in (batch, over))
        return make.step(ops.Batched(kept, gone_over), operands, domains, step.complex)
    if over and not batch and {*row_a, *row_b} == {*out, *over}:
        return _tensordot(make, step, operands, (row_a, row_b, out), domains)
    return make.step(ops.Einsum(row_a, row_b, out), operands, domains, step.complex)


def _at(row: Sequence[int], labels: Sequence[int]) -> ops.Row:
    return tuple(row.index(label) for label in labels)


def _tensordot(
    make: Builder,
    step: Step,
    operands: tuple[Step, ...],
    found: tuple[ops.Row, ops.Row, ops.Row],
    domains: tuple[Domain, ...],
) -> Step:
    """A matrix product, its operands in the order of the result's axes if that can be; else its axes are permuted."""
    row_a, row_b, out = found
    leader = row_a if len(row_a) >= len(row_b) else row_b
    over = [label for label in leader if label in row_a and label in row_b]
    free_a, free_b = (tuple(label for label in row if label not in over) for row in (row_a, row_b))
    if out == (*free_b, *free_a) != (*free_a, *free_b):
        row_a, row_b, free_a, free_b, operands = row_b, row_a, free_b, free_a, operands[::-1]
    made = (*free_a, *free_b)
    by_label = dict(zip(out, domains, strict=True))
    op = ops.Tensordot(_at(row_a, over), _at(row_b, over))
    product = make.step(op, operands, [by_label[x] for x in made], step.complex)
    if made == out:
        return product
    return make.step(ops.Permute(tuple(made.index(x) for x in out)), (product,), domains, step.complex)
