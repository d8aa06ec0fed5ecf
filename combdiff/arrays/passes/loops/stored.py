"""Values that the steps of a loop make, and code after it makes again for all steps at once, are stored by the loop.

    for t: x2[t] = x; x = tanh(x @ W) @ V            for t: h = tanh(x @ W); x2[t] = x; h2[t] = h; x = h @ V
    h2 = tanh(x2 @ W)

A value that is made again takes as much memory, unless it is large and made in a loop over its parts: then only what is
no larger than the states is stored. It is stored where that takes less time, also if it is a multiple of what a step
makes, or has its axes in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from itertools import count

from combdiff.arrays import ops
from combdiff.arrays.costs import seconds_of
from combdiff.arrays.passes.loops.values import Linear, Placed, Values
from combdiff.arrays.plan import Argument, Plan, Recurrence, Scan, Step, interned
from combdiff.records import dataclass
from combdiff.terms.arithmetic import reciprocal
from combdiff.terms.terms import ONE, Const, times
from combdiff.terms.types import COMPLEX, REAL, Index, Map

LARGE = 16 << 20
"""Bytes from which on what is made again may never exist as a whole."""

TURN = 300
"""The time in which a row is stored, by that of one entry of an array that is read and written."""


def with_values_stored(plan: Plan) -> Plan:
    """The plan with loops that store what is made again after them.

    >>> import combdiff as cd
    >>> step = "i -> tanh(sum(j, W(i, j) * sin(h(j))))"
    >>> d = cd.grad("(x::RV{n}) -> (W::RM{n, n}) -> sum(i, iterate((h, t) -> " + step + ", x, 900)(i)^2)")
    >>> plan = d.plan(backend="jax", W=(90, 90))
    >>> def sines(p): return sum(step.op == ops.Call("sin", places=((0, 1),)) for step in p.steps)
    >>> sines(plan), sines(with_values_stored(plan))
    (1, 0)
    """
    if plan.loops:
        return plan
    for body in [s.op.body for s in plan.steps if isinstance(s.op, Scan) and s.op.halts is None and s.op.every == 1]:
        for turned in (_with_values, _with_readers, without_idle):
            # what was made before may have made other steps of this one
            scan = next((s for s in plan.steps if isinstance(s.op, Scan) and s.op.body.arrays == body.arrays), None)
            plan = turned(plan, scan, scan.op) if scan is not None and isinstance(scan.op, Scan) else plan
    return plan


def _with_values(plan: Plan, scan: Step, op: Scan) -> Plan:
    """The plan with a loop that stores what is made again after it."""
    storing = _Storing(plan, scan, op)
    storing.compare()
    return storing.written()


def _with_readers(plan: Plan, scan: Step, op: Scan) -> Plan:
    """The plan with loops that read what a loop stores, rather than make it again."""
    values, _ = _numbered(plan, scan, op)
    stored: dict[int, tuple[Placed, Const, Step]] = {}
    for item in plan.steps:
        if isinstance(item.op, ops.Item) and item.operands[0] is scan and item.op.number >= op.body.states:
            placed, c = values.number(item, 0)
            if c.real or c.imag:
                stored.setdefault(placed[0], (placed, c, item))
    return _Reading(plan, scan, op, values, stored).plan_with_values()


@dataclass(frozen=True, slots=True)
class _Made:
    """An array of all steps as what a step makes, times a number: its axis for the step, and those of the others."""

    inner: Step
    axis: int
    order: ops.Row
    coefficient: Const


def _numbered(plan: Plan, scan: Step, op: Scan) -> tuple[Values, Values]:
    """The numbers of arrays, and those of the values of the steps of a loop, some of which it stores."""
    values = Values()
    inside = values.inside(_given(values, scan, op))
    for item in plan.steps:
        if isinstance(item.op, ops.Item) and item.operands[0] is scan and item.op.number >= op.body.states:
            values.set(item, 0, inside.of(op.body.plan.outputs[item.op.number]))
    return values, inside


def _given(values: Values, scan: Step, op: Scan) -> dict[Step, Linear]:
    """What the steps of a loop are given, but for its states: rows of sequences, and what is the same for all."""
    body = op.body
    pairs = [*zip(body.arrays, scan.operands, strict=True)]
    sequences = pairs[body.states : body.states + body.sequences]
    others = pairs[body.states + body.sequences :]
    return {a: values.of(o, 0) for a, o in sequences} | {a: values.of(o) for a, o in others}


def with_steps(plan: Plan, new: Mapping[Step, Step]) -> Plan:
    """The plan with other steps in the place of some."""
    names = {new.get(s, s): name for s, name in plan.names.items()}
    outputs, names = interned([new.get(o, o) for o in plan.outputs], names)
    return replace(plan, outputs=outputs, names=names)


@dataclass(slots=True)
class _Storing:
    """A loop, and which arrays after it are those of values of its steps."""

    plan: Plan
    scan: Step
    op: Scan
    made: dict[Step, _Made] = field(default_factory=dict)

    def compare(self) -> None:
        """Find the arrays that are made of what the loop stores as its steps make their values."""
        values, inside = _numbered(self.plan, self.scan, self.op)
        body = self.op.body
        inner: dict[int, tuple[Placed, Const, Step]] = {}
        for step in body.plan.steps:
            if step.operands and not isinstance(step.op, ops.View | ops.Number | Scan):
                placed, c = inside.number(step)
                if c.real or c.imag:
                    inner.setdefault(placed[0], (placed, c, step))
        most = max([LARGE, *(self.plan.size(s) for s in self.plan.steps if self._is_stored(s))])
        after: set[Step] = {self.scan}
        for step in self.plan.steps:
            if step is self.scan or after.isdisjoint(step.operands):
                continue
            after.add(step)
            if not isinstance(step.op, ops.View | Scan) and self.plan.size(step) <= most:
                self._match(step, values, inner)

    def _match(self, step: Step, values: Values, inner: Mapping[int, tuple[Placed, Const, Step]]) -> None:
        for axis in (n for n, d in enumerate(step.domains) if d == self.op.domain):
            (value, at), c = values.number(step, axis)
            if value not in inner:
                continue
            (_, own), factor, found = inner[value]
            if len(own) != found.rank or len(at) != step.rank - 1 or found.complex != step.complex:
                continue
            share = times(c, reciprocal(factor))
            # axis n of the array without its axis for the step is this axis of what is stored
            order = tuple(own[at.index(n)] for n in range(len(at)))
            if tuple(found.domains[n] for n in order) == (*step.domains[:axis], *step.domains[axis + 1 :]):
                self.made[step] = _Made(found, axis, order, share)
                return

    # --- what is stored -------------------------------------------------------------------------------------------

    def written(self) -> Plan:
        """The plan with the values stored for which that pays."""
        stored = self._paying()
        return self._written(stored) if stored else self.plan

    def _paying(self) -> dict[Step, _Made]:
        """Of the arrays that something else than another of them needs, those that are stored in less time."""
        chosen = {step: self.made[step] for step in self._needed(self.made) if step in self.made}
        for step in list(chosen):
            rest = {s: m for s, m in chosen.items() if s is not step}
            if self._time(rest) <= self._time(chosen):
                chosen = rest
        return chosen if self._time(chosen) < self._time({}) else {}

    def _needed(self, stored: Collection[Step]) -> list[Step]:
        """What has to be there after the loop, with some arrays stored, of which nothing is needed."""
        needed: dict[Step, None] = {}
        left = list(self.plan.outputs)
        while left:
            step = left.pop()
            if step not in needed:
                needed[step] = None
                left += () if step in stored else step.operands
        return list(needed)

    def _time(self, stored: Mapping[Step, _Made]) -> float:
        """The time of all that is computed beside loops, and of storing what is needed of the steps of this one."""
        steps = self._needed(stored)
        rows = {m.inner: self.plan.entries(s) for s in steps if (m := stored.get(s)) is not None}
        rows |= {self._output(s): self.plan.entries(s) for s in steps if self._is_stored(s)}
        turns = self.op.domain.extent(self.plan.sizes)
        multiples = sum(self.plan.entries(s) for s in steps if s in stored and stored[s].coefficient != ONE)
        made = sum(seconds_of(self.plan, s) for s in steps if s not in stored)
        return made + multiples + sum(turns * TURN + entries for entries in rows.values())

    def _is_stored(self, step: Step) -> bool:
        """Whether the loop stores an array already."""
        match step.op:
            case ops.Item(number):
                return step.operands[0] is self.scan and number >= self.op.body.states
            case _:
                return False

    def _output(self, step: Step) -> Step:
        """What a step makes of an array that is stored."""
        assert isinstance(step.op, ops.Item), "an item of the loop"
        return self.op.body.plan.outputs[step.op.number]

    def _written(self, stored: Mapping[Step, _Made]) -> Plan:
        body = self.op.body
        kept = [*body.plan.outputs]
        at = {output: n for n, output in reversed([*enumerate(kept)]) if n >= body.states}
        for m in stored.values():
            if m.inner not in at:
                at[m.inner] = len(kept)
                kept.append(m.inner)
        scan = replace(self.scan, op=_with_outputs(self.op, kept))
        new: dict[Step, Step] = {self.scan: scan}
        for step in self.plan.steps:
            if step in stored:
                new[step] = _stored(scan, at[stored[step].inner], stored[step], step)
            elif step not in new and any(o in new for o in step.operands):
                new[step] = replace(step, operands=tuple(new.get(o, o) for o in step.operands))
        return with_steps(self.plan, new)


def _with_outputs(op: Scan, outputs: Collection[Step]) -> Scan:
    """A loop whose steps make other outputs."""
    body = op.body
    return replace(
        op, body=Recurrence(body.name, replace(body.plan, outputs=tuple(outputs)), body.states, body.sequences)
    )


def _stored(scan: Step, number: int, made: _Made, step: Step) -> Step:
    """What is stored as the array that it is."""
    assert isinstance(scan.op, Scan), "a loop"
    domains, complex_ = scan.op.items[number]
    found = Step(ops.Item(number), (scan,), domains, complex_)
    order = [n + 1 for n in made.order]
    order.insert(made.axis, 0)
    if order != sorted(order):
        found = Step(ops.Permute(tuple(order)), (found,), step.domains, complex_)
    if made.coefficient == ONE:
        return found
    return Step(ops.Mul(made.coefficient, places=(tuple(range(step.rank)),)), (found,), step.domains, step.complex)


def without_idle(plan: Plan, scan: Step, op: Scan) -> Plan:
    """The plan with a loop that stores only what is needed."""
    states, outputs = op.body.states, op.body.plan.outputs
    read = {s.op.number: s for s in plan.steps if isinstance(s.op, ops.Item) and s.operands[0] is scan}
    kept = [n for n in range(len(outputs)) if n < states or n in read]
    if len(kept) == len(outputs):
        return plan
    made = replace(scan, op=_with_outputs(op, [outputs[n] for n in kept]))
    new = {scan: made} | {s: replace(s, op=ops.Item(kept.index(n)), operands=(made,)) for n, s in read.items()}
    for step in plan.steps:
        if step not in new and any(o in new for o in step.operands):
            new[step] = replace(step, operands=tuple(new.get(o, o) for o in step.operands))
    return with_steps(plan, new)


@dataclass(slots=True)
class _Reading:
    """A loop, and what it stores by its number: the steps of other loops read it rather than make it again."""

    plan: Plan
    scan: Step
    op: Scan
    values: Values
    stored: Mapping[int, tuple[Placed, Const, Step]]

    def plan_with_values(self) -> Plan:
        """The plan with other loops over the same steps that read what is stored."""
        new: dict[Step, Step] = {}
        for step in self.plan.steps:
            made = step
            if any(o in new for o in step.operands):
                made = replace(step, operands=tuple(new.get(o, o) for o in step.operands))
            if isinstance(step.op, Scan) and step is not self.scan and step.op.domain == self.op.domain:
                made = self._reading(step, made, step.op)
            if made is not step:
                new[step] = made
        return with_steps(self.plan, new) if new else self.plan

    def _reading(self, scan: Step, made: Step, op: Scan) -> Step:
        """A loop whose steps are given what is stored and what they make anew."""
        body = op.body
        inside = self.values.inside(_given(self.values, scan, op))
        found: dict[Step, Step] = {}
        rows: dict[Step, Step] = {}
        names: set[str] = set()
        for step in body.plan.steps:
            if not seconds_of(body.plan, step):
                continue
            (value, at), c = inside.number(step)
            if value not in self.stored:
                continue
            (_, own), factor, item = self.stored[value]
            if c == factor and at == own and item.domains[1:] == step.domains and item.complex == step.complex:
                if item not in rows:
                    taken = {a.name for a in body.plan.arguments} | names
                    name = next(name for n in count() if (name := f"value{n or ''}") not in taken)
                    names.add(name)
                    rows[item] = Step(ops.Input(name), (), step.domains, step.complex)
                found[step] = rows[item]
        if not found:
            return made
        return _given_rows(made, op, found, rows)


def _given_rows(scan: Step, op: Scan, found: Mapping[Step, Step], rows: Mapping[Step, Step]) -> Step:
    """A loop with more sequences, whose rows are what some steps are; without those that are needed no more."""
    body, new = op.body, dict(found)
    for step in body.plan.steps:
        if step not in new and any(o in new for o in step.operands):
            new[step] = replace(step, operands=tuple(new.get(o, o) for o in step.operands))
    plan = with_steps(body.plan, new)
    needed = {*plan.steps}
    first, last = body.states, body.states + body.sequences
    kept = [n for n, a in enumerate(body.arrays) if n < first or n >= last or a in needed]
    dropped = {a for n, a in enumerate(body.arrays) if n not in kept}
    more = [(item, row) for item, row in rows.items() if row in needed]
    taken = [a for a in plan.arguments if a.step not in dropped]
    place = next((n for n, a in enumerate(taken) if a.step in body.arrays[last:] or a.step is None), len(taken))
    taken[place:place] = [argument_of(row) for _, row in more]
    sequences = sum(first <= n < last for n in kept) + len(more)
    operands = [scan.operands[n] for n in kept if n < last] + [item for item, _ in more]
    operands += [scan.operands[n] for n in kept if n >= last]
    made = Recurrence(body.name, replace(plan, arguments=tuple(taken)), body.states, sequences)
    return replace(scan, op=replace(op, body=made), operands=tuple(operands))


def argument_of(row: Step) -> Argument:
    """The argument of a step that is a row of an array."""
    assert isinstance(row.op, ops.Input), "an argument"
    result = COMPLEX if row.complex else REAL
    kind = Map(tuple(Index(d) for d in row.domains), result) if row.domains else result
    return Argument(row.op.argument, kind, step=row)
