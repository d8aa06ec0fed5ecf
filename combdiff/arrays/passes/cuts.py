"""Where an index goes in a step: one value of it, or a block of values, at a time.

A contraction W(p, i) = Σ_q A(p, q) B(q, i) can be cut along p, which slices A and the result, along i, which slices B
and the result, or along q, which slices both operands and adds up to the result. `cuts` lists these for every
operation, and `part` is what the step does with one slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from combdiff.arrays.plan import Builder, Step
from combdiff.terms.terms import ONE
from combdiff.terms.types import Domain

PRODUCTS = frozenset({"tensordot", "batched", "einsum"})
ALIGNED = frozenset({"add", "mul", "power", "call", "where", "position"})
Rows = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Cut:
    """An index along which a step can be cut: the axis of the result that carries it, and that of each operand.

    Without an axis of the result, the results for all values add up to it. An operand without one is used whole.
    """

    axis: int | None
    slices: tuple[int | None, ...]


def cuts(step: Step) -> tuple[Cut, ...]:
    """All indices along which the step can be cut, those that its result carries first."""
    found = tuple(_cuts(step))
    return tuple(c for c in found if any(s is not None for s in c.slices))


def _cuts(step: Step) -> Iterator[Cut]:
    spec: Any = step.spec
    match step.op:
        case op if op in PRODUCTS:
            *operands, out = rows(step)
            for label in dict.fromkeys((*out, *operands[0], *operands[1])):
                yield Cut(_place(out, label), tuple(_place(row, label) for row in operands))
        case op if op in ALIGNED:
            for axis in range(step.rank):
                yield Cut(axis, tuple(_place(at, axis) for at in spec[1]))
        case "conj":
            yield from (Cut(axis, (axis,)) for axis in range(step.rank))
        case "permute":
            yield from (Cut(axis, (old,)) for axis, old in enumerate(spec))
        case "broadcast":
            yield from (Cut(axis, (_place(spec, axis),)) for axis in range(step.rank))
        case "flip" | "roll":
            moved = spec if step.op == "flip" else spec[0]
            yield from (Cut(axis, (axis,)) for axis in range(step.rank) if axis != moved)
        case "sum" | "pick":
            gone = spec if step.op == "sum" else [axis for axis, _, _ in spec]
            stays = [axis for axis in range(step.operands[0].rank) if axis not in gone]
            yield from (Cut(axis, (old,)) for axis, old in enumerate(stays))
            yield from (Cut(None, (old,)) for old in gone if step.op == "sum")
        case "gather":
            yield from _gathered(step)


def _place(row: Sequence[int], label: int) -> int | None:
    return row.index(label) if label in row else None


def rows(step: Step) -> Rows:
    """The labels of both operands of a contraction, and of its result, as in einsum.

    >>> from combdiff.terms.types import Domain
    >>> make, n = Builder().step, Domain("n")
    >>> A, B = (make("input", (), name, (n, n), False) for name in "AB")
    >>> rows(make("tensordot", (A, B), ((0,), (0,)), (n, n)))
    ((0, 1), (0, 2), (1, 2))
    """
    spec: Any = step.spec
    if step.op == "einsum":
        return (tuple(spec[0]), tuple(spec[1]), tuple(spec[2]))
    a, b = step.operands
    batch_a, batch_b, over_a, over_b = spec if step.op == "batched" else ((), (), *spec)
    same = dict(zip((*batch_b, *over_b), (*batch_a, *over_a), strict=True))
    fresh = iter(range(a.rank, a.rank + b.rank))
    row_b = tuple(same[axis] if axis in same else next(fresh) for axis in range(b.rank))
    free_a = [axis for axis in range(a.rank) if axis not in (*batch_a, *over_a)]
    return tuple(range(a.rank)), row_b, (*batch_a, *free_a, *(label for label in row_b if label >= a.rank))


def _gathered(step: Step) -> Iterator[Cut]:
    """Along an axis of the index arrays; or along one that they leave alone, where these do not surround it."""
    spec: Any = step.spec
    slots, rank = spec
    placed = [slot for slot in slots if slot is not None]
    gathered = [axis for axis, slot in enumerate(slots) if slot is not None]
    neighbours = gathered[-1] - gathered[0] + 1 == len(gathered)
    first = gathered[0] if neighbours else 0
    for axis in range(rank):
        yield Cut(first + axis, (None, *(_place(at, axis) for at in placed)))
    if neighbours:
        untouched = [axis for axis, slot in enumerate(slots) if slot is None]
        for axis in untouched:
            result = axis if axis < first else axis - len(gathered) + rank
            yield Cut(result, (axis, *(None for _ in placed)))


# --- one value at a time --------------------------------------------------------------------------------------------


def part(make: Builder, step: Step, cut: Cut, operands: tuple[Step, ...], block: Domain | None) -> Step:
    """What the step does with slices of its operands; of a block of values, they keep the axis."""
    if block is not None:
        domains = tuple(block if axis == cut.axis else d for axis, d in enumerate(step.domains))
        return make.step(step.op, operands, step.spec, domains, step.complex)
    domains = tuple(d for axis, d in enumerate(step.domains) if axis != cut.axis)
    if step.op in PRODUCTS:
        return _product(make, step, cut, operands, domains)
    if step.op == "gather":
        return make.step("gather", operands, _gather_spec(step, cut), domains, step.complex)
    spec: Any = step.spec
    sliced = cut.slices[0]
    match step.op:
        case op if op in ALIGNED:
            spec = (spec[0], tuple(_without(at, cut.axis) for at in spec[1]))
        case "broadcast":
            spec = _without(spec, cut.axis)
        case "permute":
            spec = _without(spec, sliced)
        case "sum":
            spec = _without(spec, sliced)
        case "pick":
            spec = tuple((_lower(axis, sliced), constant, domain) for axis, constant, domain in spec)
        case "flip":
            spec = _lower(spec, sliced)
        case "roll":
            spec = (_lower(spec[0], sliced), spec[1])
    if (step.op == "sum" and not spec) or (step.op in ("permute", "broadcast") and spec == tuple(range(len(domains)))):
        return operands[0]
    return make.step(step.op, operands, spec, domains, step.complex)


def _without(places: Sequence[int], axis: int | None) -> tuple[int, ...]:
    """The places that are not `axis`, counted without it."""
    return tuple(_lower(p, axis) for p in places if p != axis)


def _lower(place: int, axis: int | None) -> int:
    return place - (axis is not None and place > axis)


def _gather_spec(step: Step, cut: Cut) -> tuple[tuple[tuple[int, ...] | None, ...], int]:
    spec: Any = step.spec
    slots, rank = spec
    if cut.slices[0] is not None:
        return tuple(slot for axis, slot in enumerate(slots) if axis != cut.slices[0]), rank
    axis = next(
        at[s] for at, s in zip((a for a in slots if a is not None), cut.slices[1:], strict=True) if s is not None
    )
    return tuple(None if slot is None else _without(slot, axis) for slot in slots), rank - 1


def _product(make: Builder, step: Step, cut: Cut, operands: tuple[Step, ...], domains: tuple[Domain, ...]) -> Step:
    """A contraction without a label: over fewer axes, of matrices instead of stacks of them, or entry by entry."""
    whole = rows(step)
    gone = next(row[s] for row, s in zip(whole, (*cut.slices, cut.axis), strict=True) if s is not None)
    row_a, row_b, out = (tuple(label for label in row if label != gone) for row in whole)
    over = [label for label in row_a if label in row_b and label not in out]
    batch = [label for label in row_a if label in row_b and label in out]
    if not over and {*row_a, *row_b} == {*out}:
        spec: Any = (ONE, tuple(tuple(out.index(label) for label in row) for row in (row_a, row_b)))
        return make.step("mul", operands, spec, domains, step.complex)
    matrices = not {*row_a} <= {*row_b} and not {*row_b} <= {*row_a}
    if step.op == "batched" and batch and over and matrices:
        axes = [tuple(row.index(x) for x in some) for some in (batch, over) for row in (row_a, row_b)]
        return make.step("batched", operands, tuple(axes), domains, step.complex)
    if over and not batch and {*row_a, *row_b} == {*out, *over}:
        return _tensordot(make, step, operands, (row_a, row_b, out), domains)
    return make.step("einsum", operands, (row_a, row_b, out), domains, step.complex)


def _tensordot(make: Builder, step: Step, operands: tuple[Step, ...], found: Rows, domains: tuple[Domain, ...]) -> Step:
    """A matrix product, its operands in the order of the result's axes if that can be; else its axes are permuted."""
    row_a, row_b, out = found
    leader = row_a if len(row_a) >= len(row_b) else row_b
    over = [label for label in leader if label in row_a and label in row_b]
    free_a, free_b = (tuple(label for label in row if label not in over) for row in (row_a, row_b))
    if out == (*free_b, *free_a) != (*free_a, *free_b):
        row_a, row_b, free_a, free_b, operands = row_b, row_a, free_b, free_a, operands[::-1]
    spec = (tuple(row_a.index(x) for x in over), tuple(row_b.index(x) for x in over))
    made = (*free_a, *free_b)
    by_label = dict(zip(out, domains, strict=True))
    product = make.step("tensordot", operands, spec, [by_label[x] for x in made], step.complex)
    if made == out:
        return product
    return make.step("permute", (product,), tuple(made.index(x) for x in out), domains, step.complex)
