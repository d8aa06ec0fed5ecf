"""How long plans and their steps take, by the rates of the graph of forms, so that both choose alike."""

from __future__ import annotations

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Step
from combdiff.simplify.graph.running import BATCHED, BLAS, CALL


def operations(plan: Plan) -> int:
    """The operations of a plan."""
    return sum(map(plan.flops, plan.steps))


def seconds(plan: Plan) -> float:
    """About how long a plan takes, in the time in which one entry of an array is read and written."""
    return sum(seconds_of(plan, step) for step in plan.steps)


def seconds_of(plan: Plan, step: Step) -> float:
    """About how long a step takes."""
    written = plan.entries(step) * (2 if step.complex else 1)
    match step.op:
        case ops.Tensordot() | ops.Packed():
            return plan.flops(step) / 2 * BLAS + written
        case ops.Contraction():
            return plan.flops(step) / 2 * BATCHED + written
        case ops.Call() | ops.Unknown() | ops.CumulativeLogSumExp() | ops.CumulativeExponentials():
            return CALL * written
        case ops.CumulativeTies():
            return 2 * CALL * written
        case ops.Windows():
            return plan.size(step) / 8
        case ops.LaidOut() | ops.Stack() | ops.CumulativeSum() | ops.CumulativeProduct() | ops.CumulativeExtremum():
            return written
        case _:
            flops = plan.flops(step)
            return max(flops, written) if flops else 0.0
