"""Views of arrays, parts and permuted axes, interned: equal views are one step."""

from __future__ import annotations

from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Step
from combdiff.terms.types import Domain


def window(make: Builder, array: Step, axis: int, start: int, domain: Domain) -> Step:
    """A part of an array along an axis: of a part, or of another view, a part of what it shows."""
    if array.domains[axis] == domain:
        return array
    domains = (*array.domains[:axis], domain, *array.domains[axis + 1 :])
    match array.op:
        case ops.Window(other, before) if other == axis:
            return window(make, array.operands[0], axis, start + before, domain)
        case ops.Window(other, _) if other > axis:
            # one order of the axes, so that equal parts are one step
            return make.step(array.op, (window(make, array.operands[0], axis, start, domain),), domains)
        case ops.Permute(order):
            inner = window(make, array.operands[0], order[axis], start, domain)
            return permuted(make, inner, order)
        case _:
            return make.step(ops.Window(axis, start), (array,), domains)


def permuted(make: Builder, array: Step, order: ops.Row) -> Step:
    """An array with its axes in another order; of one that has been permuted, as a view of that."""
    if isinstance(array.op, ops.Permute):
        order, (array,) = tuple(array.op.order[axis] for axis in order), array.operands
    if order == tuple(range(array.rank)):
        return array
    return make.step(ops.Permute(order), (array,), [array.domains[axis] for axis in order])
