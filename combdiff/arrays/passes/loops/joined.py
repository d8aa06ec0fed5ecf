"""A loop whose states are among those of another loop is left out: that one goes through them anyway.

    u = loop(u → B (A u))          and          w, l = loop((w, l) → B a, l + …   with a = A w)          are one loop

Loops that are written alike are joined as terms (`calculus/loops/joining.py`). Those of a value and of its gradient may
be written otherwise; here they are compared by the numbers of what their steps compute.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.passes.loops.stored import given_to_steps, with_outputs, with_steps
from combdiff.arrays.passes.loops.values import Linear, Values
from combdiff.arrays.plan import Plan, Scan, Step


def with_loops_joined(plan: Plan) -> Plan:
    """The plan without loops through states of others.

    >>> import combdiff as cd
    >>> from combdiff.arrays.passes.fourier import with_fourier_transforms
    >>> step = "begin a = k -> fft(u)(k) * exp(im * k); b = ifft(a); j -> b(j) * exp(im * abs2(b(j))) end"
    >>> d = cd.grad("(x::CV{n}) -> begin u = iterate((u, t) -> " + step + ", x, 20); sum(j, j * abs2(u(j))) end")
    >>> plan = with_fourier_transforms(d.runnable.forms(value=True).plan())
    >>> [sum(isinstance(step.op, Scan) for step in p.steps) for p in (plan, with_loops_joined(plan))]
    [3, 2]
    """
    if plan.loops:
        return plan
    while (pair := _pair(plan)) is not None:
        plan = _without(plan, *pair)
    return plan


Pair = tuple[Step, Step, tuple[int, ...]]
"""A loop that is left out, the one that stays, and which of its states are those of the first."""


def _pair(plan: Plan) -> Pair | None:
    loops = [s for s in plan.steps if isinstance(s.op, Scan) and s.op.halts is None and s.op.every == 1]
    for one in loops:
        for other in loops:
            if one is not other and (found := _states(one, other)) is not None and not _reads(other, one):
                return one, other, found
    return None


def _reads(step: Step, other: Step) -> bool:
    """Whether a step is made of another one."""
    seen: set[Step] = set()
    left = [step]
    while left:
        u = left.pop()
        if u is other:
            return True
        if u not in seen:
            seen.add(u)
            left += u.operands
    return False


def _states(one: Step, other: Step) -> tuple[int, ...] | None:
    """For each state of a loop the state of another one that is the same; None if there is one without."""
    assert isinstance(one.op, Scan) and isinstance(other.op, Scan), "loops"
    stored = one.op.body.plan.outputs[one.op.body.states :]
    if (one.op.domain, one.op.reverse) != (other.op.domain, other.op.reverse) or not {*stored} <= {*one.op.body.arrays}:
        return None
    values = Values()
    loops = [(one, one.op), (other, other.op)]
    given = [given_to_steps(values, step, op) for step, op in loops]
    colours: list[list[Hashable]] = [
        [_key(values, s, 0) for s in step.operands[: op.body.states]] for step, op in loops
    ]
    while True:
        if not {*colours[0]} <= {*colours[1]}:
            return None
        numbers = {key: n for n, key in enumerate(dict.fromkeys([*colours[0], *colours[1]]))}
        found = [[numbers[key] for key in own] for own in colours]
        colours = [_next(values, op, g, own) for (_, op), g, own in zip(loops, given, found, strict=True)]
        if len({*colours[0], *colours[1]}) == len(numbers):
            return tuple(found[1].index(n) for n in found[0]) if {*colours[0]} <= {*colours[1]} else None


def _key(values: Values, step: Step, colour: int) -> Hashable:
    return colour, step.domains, step.complex, frozenset(values.of(step).items())


def _next(values: Values, op: Scan, given: Mapping[Step, Linear], colours: Sequence[int]) -> list[Hashable]:
    """What tells states apart after one step more."""
    body = op.body
    states = {
        array: values.named(("state", colour, array.domains), array.rank)
        for array, colour in zip(body.arrays[: body.states], colours, strict=True)
    }
    inside = values.inside({**given, **states})
    return [_key(inside, output, colour) for output, colour in zip(body.plan.outputs, colours, strict=False)]


def _without(plan: Plan, one: Step, other: Step, states: Sequence[int]) -> Plan:
    """The plan with the states of one loop from the other."""
    assert isinstance(one.op, Scan) and isinstance(other.op, Scan), "loops"
    stored = one.op.body.plan.outputs[one.op.body.states :]
    mine, theirs = one.op.body, other.op.body
    outputs = [*theirs.plan.outputs]
    at = dict(enumerate(states))
    for n, output in enumerate(stored, mine.states):
        state = theirs.arrays[states[mine.arrays.index(output)]]
        if state not in outputs[theirs.states :]:
            outputs.append(state)
        at[n] = outputs.index(state, theirs.states)
    made = replace(other, op=with_outputs(other.op, outputs))
    new: dict[Step, Step] = {other: made}
    for step in plan.steps:
        if isinstance(step.op, ops.Item) and step.operands[0] is one:
            new[step] = replace(step, op=ops.Item(at[step.op.number]), operands=(made,))
        elif step not in new and any(o in new for o in step.operands):
            new[step] = replace(step, operands=tuple(new.get(o, o) for o in step.operands))
    return with_steps(plan, new)
