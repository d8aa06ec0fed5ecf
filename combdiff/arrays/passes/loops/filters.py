"""Loops of which the next state is a multiple of the state and a number of a sequence, as one call.

    for t in range(T): s[t] = h; h = b * h + x[t]               h, s = linear_recurrence(b, h0, x)

Each step of Python's takes longer than a thousand of those of a filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Scan, Step, interned
from combdiff.terms.terms import ONE, ZERO, Const, times

_LEAST = 64  # steps for which a call pays


def with_filters(plan: Plan) -> Plan:
    """The plan with filters for loops that are linear in their only state, with a number that is the same in all steps.

    >>> import combdiff as cd
    >>> d = cd.simplified("(x::RV{n}, b::R) -> iterate((s, t) -> b * s + x(t), 1, n)")
    >>> plan = with_filters(d.plan(backend="jax", x=(100,)))
    >>> [step.op.name for step in plan.steps if isinstance(step.op, Scan | ops.Recursive)]
    ['recursive']
    """
    if plan.loops:
        return plan
    new: dict[Step, Step] = {}
    for step in plan.steps:
        made = replace(step, operands=tuple(new[o] for o in step.operands))
        match step.op:
            case Scan():
                made = _filter(plan, made, step.op) or made
            case ops.Item(number) if isinstance(made.operands[0].op, ops.Recursive):
                # all that such a loop stores is its state
                made = replace(made, op=ops.Item(min(number, 1)))
        new[step] = step if made.op == step.op and made.operands == step.operands else made
    outputs, names = interned([new[o] for o in plan.outputs], {new.get(s, s): name for s, name in plan.names.items()})
    return replace(plan, outputs=outputs, names=names)


def _filter(plan: Plan, scan: Step, op: Scan) -> Step | None:
    """A loop as a filter, if it is one: where it may be left, because its state stays 0, it goes on with 0."""
    body = op.body
    if body.states != 1 or op.every != 1 or op.domain.extent(plan.sizes) < _LEAST:
        return None
    state, following = body.arrays[0], body.plan.outputs[0]
    if any(output is not state for output in body.plan.outputs[1:]) or state.complex != following.complex:
        return None
    given = dict(zip(body.arrays, scan.operands, strict=True))
    rows = {*body.arrays[1 : 1 + body.sequences]}
    found = _linear(state, following, rows)
    if found is None:
        return None
    coefficient, factors, terms = found
    number = _product(coefficient, [_given(f, given) for f in factors])
    domains = (op.domain, *state.domains)
    # a row lies as the state does
    added = [(c, given[o], (0, *(axis + 1 for axis in at))) for c, o, at in terms]
    if not added:
        zero = Step(ops.Constant(ZERO), (), (), False)
        values = Step(ops.Broadcast(()), (zero,), domains, False)
    elif [(c, at) for c, _, at in added] == [(ONE, tuple(range(len(domains))))]:
        values = added[0][1]
    else:
        sums = ops.Add(tuple(c for c, _, _ in added), places=tuple(at for _, _, at in added))
        values = Step(sums, tuple(o for _, o, _ in added), domains, any(o.complex or c.imag for c, o, _ in added))
    return Step(ops.Recursive(op.reverse), (number, scan.operands[0], values), domains, state.complex)


def _given(factor: Step, given: Mapping[Step, Step]) -> Step:
    """What a number in a step is beside the loop."""
    if not isinstance(factor.op, ops.Conj):
        return given[factor]
    return replace(factor, operands=(given[factor.unconjugated],))


def _product(coefficient: Const, factors: Sequence[Step]) -> Step:
    """The number before a state."""
    if coefficient == ONE and len(factors) == 1:
        return factors[0]
    is_complex = any(f.complex for f in factors) or bool(coefficient.imag)
    op = ops.Mul(coefficient, places=((),) * len(factors)) if factors else ops.Constant(coefficient)
    return Step(op, tuple(factors), (), is_complex)


def _linear(
    state: Step, following: Step, rows: set[Step]
) -> tuple[Const, tuple[Step, ...], list[tuple[Const, Step, ops.Row]]] | None:
    """The number before a state in the next one, with its factors, and the terms of a sequence that are added."""
    whole = tuple(range(state.rank))
    sums = [(ONE, following, whole)]
    if isinstance(following.op, ops.Add):
        sums = [*zip(following.op.coefficients, following.operands, following.op.places, strict=True)]
    linear: list[tuple[Const, tuple[Step, ...]]] = []
    terms: list[tuple[Const, Step, ops.Row]] = []
    for c, o, at in sums:
        if o is state and at == whole:
            linear.append((c, ()))
        elif o in rows:
            terms.append((c, o, at))
        elif isinstance(o.op, ops.Mul) and at == whole and o.operands.count(state) == 1:
            factors = tuple(f for f in o.operands if f is not state)
            if any(f.rank or f in rows or not isinstance(f.unconjugated.op, ops.Input) for f in factors):
                return None
            linear.append((times(c, o.op.coefficient), factors))
        else:
            return None
    if len(linear) != 1 or (terms and {axis for _, _, at in terms for axis in at} != {*whole}):
        return None
    return *linear[0], terms
