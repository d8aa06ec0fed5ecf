"""Divisors of a large operand of a contraction become divisors of the small one, or of the result.

    (E / s) @ b                     E @ (b / s)                     s along what is summed over
    (E / s[:, None]) @ V            (E @ V) / s[:, None]            s along what is left

So shares, which are exponentials divided by their sums, are not made where only contractions read them. A divisor is
moved where it is surely 1 or more: what it divides then neither overflows nor loses digits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Recurrence, Scan, Step
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE


@dataclass(frozen=True, slots=True)
class _Quotient:
    """What is divided, the inverse of the divisor, and the axes along which that lies."""

    whole: Step
    inverse: Step
    axes: ops.Row


def with_divisors_apart(plan: Plan) -> Plan:
    """The plan with divisors of small arrays, in the steps of loops, too."""
    return plan if plan.loops else _apart(plan, ())


def _apart(plan: Plan, large: Collection[Step]) -> Plan:
    """The plan with divisors apart; its arguments in `large` are 1 or more."""
    steps = plan.steps
    found = _quotients(plan, steps, large)
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(step.op, Scan):
            made = _of_steps(step, made, step.op, large)
        for side, o in enumerate(step.operands):
            if o in found:
                made = _moved(plan, step, made, side, found[o], new)
        new[step] = made
    if all(step is made for step, made in new.items()):
        return plan
    names = {new[step]: name for step, name in plan.names.items()}
    return replace(plan, outputs=tuple(new[o] for o in plan.outputs), names=names)


def _of_steps(scan: Step, made: Step, op: Scan, large: Collection[Step]) -> Step:
    """A loop with divisors apart in its steps."""
    body = op.body
    given = zip(body.arrays[body.states :], scan.operands[body.states :], strict=True)
    plan = _apart(body.plan, [array for array, o in given if _is_large(o, large)])
    if plan is body.plan:
        return made
    return replace(made, op=replace(op, body=Recurrence(body.name, plan, body.states, body.sequences)))


def _quotients(plan: Plan, steps: Collection[Step], large: Collection[Step]) -> Mapping[Step, _Quotient]:
    """The quotients that nothing needs but contractions, in each of which the divisor finds a place."""
    divided = {step: found for step in steps if (found := _quotient(step, large)) is not None}
    uses: defaultdict[Step, list[Step]] = defaultdict(list)
    for step in steps if divided else ():
        for o in step.operands:
            uses[o].append(step)
    needed = {*plan.outputs, *plan.names}
    alone = {q: found for q, found in divided.items() if q not in needed}

    def fits(q: Step, step: Step) -> bool:
        others = [o for o in step.operands if o is not q]
        return (
            isinstance(step.op, ops.Contraction)
            and len(others) == 1
            and others[0] not in alone
            and _place(plan, step, step.operands.index(q), divided[q]) is not None
        )

    return {q: found for q, found in alone.items() if all(fits(q, step) for step in uses[q])}


def _quotient(step: Step, large: Collection[Step]) -> _Quotient | None:
    """A product with the inverse of an array that is 1 or more, and has fewer axes."""
    if not isinstance(step.op, ops.Mul):
        return None
    for n, (o, axes) in enumerate(zip(step.operands, step.op.places, strict=True)):
        rest = [m for m in range(len(step.operands)) if m != n]
        whole = any(step.operands[m].rank == step.rank for m in rest)
        if 0 < o.rank < step.rank and whole and isinstance(o.op, ops.Power):
            base, exponent = o.operands
            if exponent.op == ops.Constant(MINUS_ONE) and _is_large(base, large):
                return _Quotient(_product(step, step.op, rest), o, axes)
    return None


def _product(step: Step, op: ops.Mul, kept: list[int]) -> Step:
    """A product of some of its factors."""
    places = tuple(op.places[n] for n in kept)
    if op.coefficient == ONE and len(kept) == 1 and places[0] == tuple(range(step.rank)):
        return step.operands[kept[0]]
    return replace(step, op=replace(op, places=places), operands=tuple(step.operands[n] for n in kept))


def _is_large(step: Step, large: Collection[Step]) -> bool:
    """Whether each entry is surely 1 or more: as a sum of exponentials is of which the largest is 1."""
    match step.op:
        case ops.Input():
            return step in large
        case ops.Call("max"):
            return any(_is_large(o, large) for o in step.operands)
        case ops.Constant(value):
            return not value.imag and value.real >= 1
        case ops.Item(number) if isinstance(step.operands[0].op, Scan):
            body = step.operands[0].op.body
            return number >= body.states and _is_large(body.plan.outputs[number], ())
        case ops.Permute() | ops.LaidOut():
            return _is_large(step.operands[0], large)
        case _:
            return False


def _place(plan: Plan, step: Step, side: int, quotient: _Quotient) -> tuple[bool, ops.Row] | None:
    """Where a divisor goes in a contraction: to the other operand, or else to the result, and along which axes."""
    rows, other = step.rows, step.operands[1 - side]
    labels = [rows[side][axis] for axis in quotient.axes]
    for is_other, array, row in ((True, other, rows[1 - side]), (False, step, rows[-1])):
        if plan.entries(array) < plan.entries(step.operands[side]) and {*labels} <= {*row}:
            return is_other, tuple(row.index(label) for label in labels)
    return None


def _moved(plan: Plan, step: Step, made: Step, side: int, quotient: _Quotient, new: Mapping[Step, Step]) -> Step:
    """A contraction with an operand that is divided by nothing."""
    found = _place(plan, step, side, quotient)
    assert found is not None, "the divisor finds a place"
    is_other, axes = found
    whole, inverse = _renewed(quotient.whole, new), new[quotient.inverse]
    other = made.operands[1 - side]
    other = _times(other, inverse, axes) if is_other else other
    contraction = replace(made, operands=(whole, other) if side == 0 else (other, whole))
    return contraction if is_other else _times(contraction, inverse, axes)


def _renewed(step: Step, new: Mapping[Step, Step]) -> Step:
    return new[step] if step in new else replace(step, operands=tuple(new[o] for o in step.operands))


def _times(array: Step, inverse: Step, axes: ops.Row) -> Step:
    op = ops.Mul(ONE, places=(tuple(range(array.rank)), axes))
    return Step(op, (array, inverse), array.domains, array.complex)
