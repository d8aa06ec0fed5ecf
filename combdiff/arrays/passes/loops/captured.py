"""Arrays that are the same in all steps of a loop, laid out once as the products of a step read them.

    for t: z = h @ W.reshape(n, n, g)            W2 = ascontiguousarray(W.transpose(0, 2, 1))
                                                 for t: z = (W2.reshape(n * g, n) @ h).reshape(n, g)
    for t: k = k @ W[:, :, 3]                    W3 = ascontiguousarray(W.transpose(2, 0, 1));   k = k @ W3[3]

A product with an array that lies otherwise copies it in every step, or takes it a row at a time.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Recurrence, Scan, Step
from combdiff.terms.types import Map

_LEAST = 8  # steps for which a copy pays


def with_contiguous_captures(plan: Plan) -> Plan:
    """The plan with copies of the arrays that its loops take products with, if these lie badly.

    >>> import combdiff as cd
    >>> step = "(i, k) -> sum(j, W(i, j, k) * h(j, 1))"
    >>> d = cd.simplified("(W::(N{n}, N{n}, N{g}) -> R, x::RM{n, g}) -> iterate((h, t) -> " + step + ", x, 9)")
    >>> plan = with_contiguous_captures(d.plan(W=(4, 4, 2), x=(4, 2)))
    >>> [step.op for step in plan.steps if isinstance(step.op, ops.LaidOut)]
    [LaidOut(order=(0, 2, 1))]
    """
    new: dict[Step, Step] = {}
    copies: dict[tuple[Step, ops.Row], Step] = {}
    for step in plan.steps:
        operands = tuple(new.get(o, o) for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(step.op, Scan) and step.op.domain.extent(plan.sizes) >= _LEAST:
            made = _laid(made, step.op, copies)
        if made is not step:
            new[step] = made
    names = {new.get(s, s): name for s, name in plan.names.items()}
    return replace(plan, outputs=tuple(new.get(o, o) for o in plan.outputs), names=names)


def _laid(scan: Step, op: Scan, copies: dict[tuple[Step, ops.Row], Step]) -> Step:
    """A loop that is given copies of what lies badly for its steps."""
    body, operands = op.body, list(scan.operands)
    first = body.states + body.sequences
    for n, array in enumerate(op.body.arrays[first:], first):
        order = _wanted(body.plan, array)
        if order is None:
            continue
        whole = operands[n]
        key = whole, order
        if key not in copies:
            copies[key] = Step(ops.LaidOut(order), (whole,), tuple(whole.domains[a] for a in order), whole.complex)
        operands[n] = copies[key]
        body = Recurrence(body.name, _turned(body.plan, array, order), body.states, body.sequences)
    if body is op.body:
        return scan
    return replace(scan, op=replace(op, body=body), operands=tuple(operands))


def _wanted(plan: Plan, array: Step) -> ops.Row | None:
    """The order of an array's axes in which all steps read it well; None where it lies so, or there is none."""
    uses = [s for s in plan.steps if array in s.operands]
    if array.rank < 3 or not uses or array in plan.outputs:
        return None
    if all(isinstance(s.op, ops.Pick) for s in uses):
        picked = {tuple(sorted(axis for axis, _, _ in s.op.fixed)) for s in uses if isinstance(s.op, ops.Pick)}
        return _ordered(array, *picked) if len(picked) == 1 else None
    over = {_contracted(s, array) for s in uses}
    if len(over) != 1 or None in over:
        return None
    (axes,) = over
    assert axes is not None, "a product over axes of the array"
    free = tuple(axis for axis in range(array.rank) if axis not in axes)
    lies_well = axes in (tuple(range(len(axes))), tuple(range(len(free), array.rank)))
    return None if lies_well else _ordered(array, free)


def _ordered(array: Step, first: ops.Row) -> ops.Row | None:
    """The order with some axes first, None if it is the one that there is."""
    order = (*first, *(axis for axis in range(array.rank) if axis not in first))
    return None if order == tuple(range(array.rank)) else order


def _contracted(step: Step, array: Step) -> ops.Row | None:
    """The axes of an array over which a product with all of another one runs, in order."""
    if not isinstance(step.op, ops.Tensordot) or step.operands[0] is step.operands[1]:
        return None
    side = step.operands.index(array)
    axes, other = step.op.axes[side], step.operands[1 - side]
    return tuple(sorted(axes)) if len(axes) == other.rank else None


def _turned(plan: Plan, array: Step, order: ops.Row) -> Plan:
    """The plan of a step that is given an array with its axes in another order."""
    at = {axis: n for n, axis in enumerate(order)}
    whole = Step(array.op, (), tuple(array.domains[axis] for axis in order), array.complex)
    new = {array: whole}
    for step in plan.steps:
        if step is array or not any(o in new for o in step.operands):
            continue
        made = replace(step, operands=tuple(new.get(o, o) for o in step.operands))
        if array in step.operands:
            made = replace(made, op=_moved(step, array, at))
        new[step] = made
    arguments = tuple(
        replace(a, step=whole, kind=_permuted(a.kind, order) if isinstance(a.kind, Map) else a.kind)
        if a.step is array
        else a
        for a in plan.arguments
    )
    names = {new.get(s, s): name for s, name in plan.names.items()}
    return replace(plan, arguments=arguments, outputs=tuple(new.get(o, o) for o in plan.outputs), names=names)


def _moved(step: Step, array: Step, at: dict[int, int]) -> ops.Op:
    """What reads the array, of its new axes."""
    match step.op:
        case ops.Pick(fixed):
            return ops.Pick(tuple((at[axis], place, domain) for axis, place, domain in fixed))
        case ops.Tensordot(left, right):
            if step.operands[0] is array:
                return ops.Tensordot(tuple(at[axis] for axis in left), right)
            return ops.Tensordot(left, tuple(at[axis] for axis in right))
    raise AssertionError("only these are sought")


def _permuted(kind: Map, order: ops.Row) -> Map:
    return replace(kind, params=tuple(kind.params[axis] for axis in order), symmetries=())
