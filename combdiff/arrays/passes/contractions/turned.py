"""A table of differences is read along the rows in which it lies, not across them.

    D = x[:, :, None] - x.T                             D is −D where the first and the last axis change places
    np.einsum("ijk,ki->jk", D, w)                       -np.einsum("kji,ki->jk", D, w)

What is summed over is then the last axis of the two. A sum, such as x(i, c) + x(j, c), is turned without the sign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Step, ordered
from combdiff.terms.terms import MINUS_ONE, ONE, Const, times


def with_differences_turned(plan: Plan) -> Plan:
    """The plan with contractions that read differences, or sums, along their rows."""
    new: dict[Step, Step] = {}
    for step in ordered(plan.outputs):
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        new[step] = _turned(made, made.op) if isinstance(made.op, ops.Einsum) else made
    if all(step is made for step, made in new.items()):
        return plan
    names = {new[step]: name for step, name in plan.names.items() if step in new}
    return replace(plan, outputs=tuple(new[o] for o in plan.outputs), names=names)


def _turned(step: Step, op: ops.Einsum) -> Step:
    """The contraction with two axes exchanged where the first of them is summed over, and the other is not."""
    rows = [op.left, op.right]
    sign = ONE
    for side, operand in enumerate(step.operands):
        for (p, q), factor in _exchanges(operand):
            row = rows[side]
            if row[p] not in op.result and row[q] in op.result and row.count(row[p]) == row.count(row[q]) == 1:
                turn = {p: row[q], q: row[p]}
                rows[side] = tuple(turn.get(axis, label) for axis, label in enumerate(row))
                sign = times(sign, factor)
    if rows == [op.left, op.right]:
        return step
    made = replace(step, op=replace(op, left=rows[0], right=rows[1]))
    if sign == ONE:
        return made
    return Step(ops.Mul(sign, places=(tuple(range(step.rank)),)), (made,), step.domains, step.complex)


def _exchanges(step: Step) -> Iterator[tuple[tuple[int, int], Const]]:
    """The pairs of axes in which a sum changes its sign at most if they change places, with the factor."""
    if not isinstance(step.op, ops.Add) or step.rank < 3:
        return
    terms = [*zip(step.op.coefficients, step.operands, step.op.places, strict=True)]
    before = Counter(terms)
    for p, q in combinations(range(step.rank), 2):
        other = {p: q, q: p}
        moved = [(c, o, tuple(other.get(axis, axis) for axis in at)) for c, o, at in terms]
        for factor in (ONE, MINUS_ONE) if step.domains[p] == step.domains[q] else ():
            if before == Counter((times(factor, c), o, at) for c, o, at in moved):
                yield (p, q), factor
