"""Places at each of which 1 is added are counted.

t = np.zeros(n); np.add.at(t, a, np.broadcast_to(1.0, len(a)))
t = np.bincount(a, minlength=n).astype(float)
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Step
from combdiff.terms.terms import ONE


def with_counts(plan: Plan) -> Plan:
    """The plan with counts where 1 is added at the places of arrays of integers."""
    found = {step: made for step in plan.steps if (made := _counted(step)) is not None}
    if not found or plan.loops:
        return plan
    new: dict[Step, Step] = {}
    for step in plan.steps:
        made = found.get(step, step)
        operands = tuple(new[o] for o in made.operands)
        new[step] = made if operands == made.operands else replace(made, operands=operands)
    names = {new[step]: name for step, name in plan.names.items() if step in new}
    return replace(plan, outputs=tuple(new[o] for o in plan.outputs), names=names)


def _counted(step: Step) -> Step | None:
    """A scatter that adds 1 for each value of its indices, at places that are all of its axes."""
    match step.op:
        case ops.Scatter(places=places, rank=rank, adds=True) if step.rank == len(places):
            values = step.operands[0]
            if isinstance(values.op, ops.Broadcast) and values.operands[0].op == ops.Constant(ONE):
                return Step(ops.Counted(places, rank), step.operands[1:], step.domains, step.complex)
    return None
