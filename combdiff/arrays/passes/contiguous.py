"""Small transposed operands laid out in the order of the axes of a large result, which then lies so itself.

    t = X[:, :, None] - X.T        t lies as its only operand with the axes k and j does: k, of few values, innermost

NumPy and PyTorch give a result the order in which its operands lie, and every later pass over t takes steps of a few
numbers. With a copy of X.T in order, which is as much smaller as there are rows, t lies in order, too.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Plan, Step, ordered

_SMALLER = 4  # times: by which what is copied is smaller than the result


def with_contiguous_operands(plan: Plan) -> Plan:
    """The plan with the small operands laid out by which a larger result would lie in another order than its axes.

    >>> import combdiff as cd
    >>> d = cd.grad("(x::RM) -> sum((i, j), exp(-sum(c, (x(i, c) - x(j, c))^2)))")
    >>> plan = with_contiguous_operands(d.plan(x=(500, 3)))
    >>> [step.op.name for step in plan.steps[:3]]
    ['input', 'laid', 'add']
    """
    make = Builder()
    new: dict[Step, Step] = {}
    for step in ordered(plan.outputs):
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        new[step] = _in_order(plan, made, make) if isinstance(made.op, ops.Aligned) else made
    names = {new[step]: name for step, name in plan.names.items() if step in new}
    return replace(plan, outputs=tuple(new[o] for o in plan.outputs), names=names)


def _in_order(plan: Plan, step: Step, make: Builder) -> Step:
    """The step with its small operands laid out where they alone say in which order axes of the result lie."""
    assert isinstance(step.op, ops.Aligned), "it is told where the axes of operands lie"
    operands, places = list(step.operands), list(step.rows[:-1])
    pairs = [{*combinations(_in_memory(o, at), 2)} for o, at in zip(operands, places, strict=True)]
    small = [_SMALLER * plan.entries(o) <= plan.entries(step) for o in operands]
    # the order that one operand has in common with the result counts, and what is large decides for itself
    said = {pair for own in pairs for pair in own if pair[0] < pair[1]}
    said |= {pair[::-1] for own, few in zip(pairs, small, strict=True) for pair in own if not few}
    for n, (operand, at) in enumerate(zip(step.operands, step.rows, strict=False)):
        if small[n] and any(a > b and (b, a) not in said for a, b in pairs[n]):
            order = tuple(sorted(range(len(at)), key=lambda axis: at[axis]))
            operands[n] = make.step(ops.LaidOut(order), (operand,), [operand.domains[axis] for axis in order])
            places[n] = tuple(sorted(at))
    if operands == list(step.operands):
        return step
    return replace(step, op=step.op.placed(tuple(places)), operands=tuple(operands))


def _in_memory(step: Step, at: ops.Row) -> ops.Row:
    """Where the axes of an operand, in the order in which they lie in memory, are among those of the result."""
    while isinstance(step.op, ops.Permute | ops.Conj):
        if isinstance(step.op, ops.Permute):
            at = tuple(at[step.op.order.index(axis)] for axis in range(step.rank))
        step = step.operands[0]
    return at
