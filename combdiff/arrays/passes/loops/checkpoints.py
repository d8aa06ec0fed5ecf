"""Loops that keep some of their states, and run again from there when a loop against their direction needs the others.

    h = scan(…)                             h' = scan(…, every=32)
    a = scan(…, f(h), reverse=True)         for blocks of 32 steps, the last one first:
    g = Σ_t a(t) h(t)                           h = scan(…) of the block, from the state that was kept at its start
                                                a = scan(…, f(h), reverse=True) of the block; g += Σ_t a(t) h(t)

With blocks of √T steps, some 2 √T states exist at once instead of T (Griewank 1992). What the values at all times are
needed for only comes into the loop over blocks, cut as `cuts.py` says, and exists for a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from itertools import count
from math import isqrt

from combdiff.arrays import ops
from combdiff.arrays.cuts import Cut, cuts, part
from combdiff.arrays.passes.loops.blocks import sliced
from combdiff.arrays.plan import Builder, Loop, Member, Plan, Recurrence, Scan, Step, has_order, ordered
from combdiff.records import dataclass
from combdiff.terms.types import Domain

_LEAST = 2  # steps of a block


def with_checkpoints(plan: Plan) -> Plan:
    """The plan with blocks of √T steps, for each loop whose stored states a loop against its direction needs.

    >>> import combdiff as cd
    >>> d = cd.grad("(x::RV{n}) -> iterate((s, t) -> s^2 + x(t), 0, n)")
    >>> [(loop.width, loop.reverse) for loop in with_checkpoints(d.plan(x=(100,))).loops]
    [(10, True)]
    """
    assert not plan.loops, "other loops come later"
    for body in dict.fromkeys(s.op.body for s in plan.steps if isinstance(s.op, Scan) and _stores(s.op)):
        # what a loop reads is another step when the loop before has checkpoints
        blocked = _checkpointed(plan, next(s for s in plan.steps if isinstance(s.op, Scan) and s.op.body is body))
        # a loop whose states others need, within a block and beyond, keeps them all
        plan = blocked if has_order(blocked) else plan
    return plan


def _stores(op: Scan) -> bool:
    """Whether a loop runs forwards, and stores the states of all steps."""
    return not op.reverse and op.every == 1 and len(op.body.plan.outputs) > op.body.states


def _checkpointed(plan: Plan, forward: Step) -> Plan:
    """The plan with a loop over blocks of the steps of `forward`, or as it was if nothing runs back over them."""
    assert isinstance(forward.op, Scan), "a loop"
    if not any(isinstance(s.op, Scan) for s in _Group.of(plan, forward).cuts if s is not forward):
        return plan
    extent = forward.op.domain.extent(plan.sizes)
    width = max(isqrt(extent), _LEAST)
    kept = _keeping(forward, forward.op, width)
    last = {s: _item(kept, n) for s in plan.steps if (n := _last_state(s, forward)) is not None}
    plan, new = _rewritten(plan, last)
    group = _Group.of(plan, new.get(forward, forward))
    loop = _Blocks(plan, group, kept, width, len(plan.loops)).loop()
    sizes = {**plan.sizes, loop.block: width, loop.domain.blocks(width): -(-extent // width)}
    return replace(plan, loops=(*plan.loops, loop), sizes=sizes)


def _keeping(forward: Step, op: Scan, width: int) -> Step:
    """The loop that keeps the states before each block."""
    body = op.body
    following = body.plan.outputs[: body.states]
    inner = replace(body.plan, outputs=(*following, *body.arrays[: body.states]))
    recurrence = Recurrence(body.name, inner, body.states, body.sequences)
    return replace(forward, op=replace(op, body=recurrence, every=width))


def _item(scan: Step, number: int) -> Step:
    assert isinstance(scan.op, Scan), "a loop"
    domains, complex_ = scan.op.items[number]
    return Step(ops.Item(number), (scan,), domains, complex_)


def _last_state(step: Step, scan: Step) -> int | None:
    """Which of the last states of a loop a step is, if it is one, and not what the loop stored."""
    assert isinstance(scan.op, Scan), "a loop"
    if not isinstance(step.op, ops.Item) or step.operands[0] is not scan or step.op.number >= scan.op.body.states:
        return None
    return step.op.number


def _rewritten(plan: Plan, values: Mapping[Step, Step]) -> tuple[Plan, dict[Step, Step]]:
    """The plan with some of its steps as others, and what became of the steps that are made of them."""
    new = dict(values)
    for step in plan.steps:
        if step not in new and any(o in new for o in step.operands):
            new[step] = replace(step, operands=tuple(new.get(o, o) for o in step.operands))
    names = {new.get(s, s): name for s, name in plan.names.items()}
    loops = tuple(_moved(loop, new) for loop in plan.loops)
    return replace(plan, outputs=tuple(new.get(o, o) for o in plan.outputs), names=names, loops=loops), new


def _moved(loop: Loop, new: Mapping[Step, Step]) -> Loop:
    """A loop over blocks that reads the rewritten steps."""
    inside = {s: s for s in loop.body}
    made: dict[Step, Step] = {}
    for step in ordered([m.part for m in loop.members]):
        if step in inside:
            made[step] = replace(step, operands=tuple(made.get(o, new.get(o, o)) for o in step.operands))
    members = (replace(m, step=new.get(m.step, m.step), part=made.get(m.part, m.part)) for m in loop.members)
    return replace(loop, members=tuple(members))


# --- what comes into the loop over blocks ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """The steps that are computed block by block, with the cut of each, and those that `waiting` for the end."""

    plan: Plan
    forward: Step
    cuts: dict[Step, Cut] = field(default_factory=dict)
    waiting: set[Step] = field(default_factory=set)

    @classmethod
    def of(cls, plan: Plan, forward: Step) -> _Group:
        """What hangs on the states that `forward` stores, as far as a block of them is enough."""
        found = cls(plan, forward)
        elsewhere = {s for loop in plan.loops for s in loop.steps}
        for step in plan.steps:
            if step is forward:
                found.cuts[step] = _of_scan(step)
            elif step in elsewhere or not found.waiting.isdisjoint(step.operands):
                if not (found.waiting | found.cuts.keys()).isdisjoint(step.operands):
                    found.waiting.add(step)
            elif _last_state(step, forward) is None and not found.cuts.keys().isdisjoint(step.operands):
                found.take(step)
        return found

    def take(self, step: Step) -> None:
        """Compute a step block by block if its operands allow it; else it waits until the loop is done."""
        cut = self._cut(step)
        if cut is not None:
            self.cuts[step] = cut
        if cut is None or (cut.axis is None and not isinstance(step.op, Scan)):
            self.waiting.add(step)

    def _cut(self, step: Step) -> Cut | None:
        found: Iterable[Cut] = cuts(step)
        if isinstance(step.op, ops.Item) and isinstance(step.operands[0].op, Scan):
            found = (Cut(None if step.op.number < step.operands[0].op.body.states else 0, (None,)),)
        elif isinstance(step.op, Scan):
            assert isinstance(self.forward.op, Scan), "a loop"
            against = step.op.domain == self.forward.op.domain and step.op.reverse != self.forward.op.reverse
            found = (_of_scan(step),) if against else ()
        return next((c for c in found if self._fits(step, c)), None)

    def _fits(self, step: Step, cut: Cut) -> bool:
        pairs = [(o, at) for o, at in zip(step.operands, cut.slices, strict=True) if o in self.cuts]
        return all(at == self.cuts[o].axis for o, at in pairs if not isinstance(o.op, Scan))

    def is_kept(self, step: Step) -> bool:
        """Whether a step is needed as a whole."""
        if isinstance(step.op, Scan):
            return False
        users = (s for s in self.plan.steps if step in s.operands)
        return step in self.plan.outputs or self.cuts[step].axis is None or any(s not in self.cuts for s in users)


def _of_scan(step: Step) -> Cut:
    """A loop over a block takes that block of its sequences."""
    assert isinstance(step.op, Scan), "a loop"
    states, moving = step.op.body.states, step.op.body.states + step.op.body.sequences
    return Cut(None, tuple(0 if states <= n < moving else None for n in range(len(step.operands))))


# --- the loop over blocks -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Blocks:
    """Makes the loop over blocks of `width` steps; `kept` is the loop that keeps the states at their starts."""

    plan: Plan
    group: _Group
    kept: Step
    width: int
    number: int
    make: Builder = field(default_factory=Builder)
    parts: dict[Step, Step] = field(default_factory=dict)
    carried: count[int] = field(default_factory=count)

    def loop(self) -> Loop:
        """The loop, whose blocks are taken from the last one on."""
        assert isinstance(self.kept.op, Scan), "a loop"
        domain = self.kept.op.domain
        block = Domain(f"{domain.name} block {self.number}")
        for step, cut in self.group.cuts.items():
            self.parts[step] = self._part(step, cut, block)
        members = tuple(
            Member(s, c.axis, c.slices, self.parts[s], self.group.is_kept(s)) for s, c in self.group.cuts.items()
        )
        return Loop(domain, self.width, block, members, reverse=not self.kept.op.reverse)

    def _part(self, step: Step, cut: Cut, block: Domain) -> Step:
        elsewhere = {s for loop in self.plan.loops for s in loop.steps}
        operands = [
            self.parts[o] if o in self.parts else o if at is None else sliced(self.make, o, at, block, block, elsewhere)
            for o, at in zip(step.operands, cut.slices, strict=True)
        ]
        if not isinstance(step.op, Scan):
            return part(self.make, step, cut, tuple(operands), block)
        for n in range(step.op.body.states):
            operands[n] = self._first(step, n, block)
        return self.make.step(replace(step.op, domain=block), tuple(operands), step.domains, step.complex)

    def _first(self, scan: Step, state: int, block: Domain) -> Step:
        """A state at the beginning of a block: one that was kept, or what the turn before has made."""
        assert isinstance(self.kept.op, Scan), "a loop"
        if scan is self.group.forward:
            stored = _item(self.kept, self.kept.op.body.states + state)
            op: ops.Op = ops.Checkpoint(block, self.width)
            return self.make.step(op, (stored,), stored.domains[1:], stored.complex)
        first = scan.operands[state]
        return self.make.step(ops.Carried(block, next(self.carried)), (first,), first.domains, first.complex)
