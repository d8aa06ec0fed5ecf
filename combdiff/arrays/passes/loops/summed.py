"""Products of what the steps of a loop make, summed over the steps, are added up by the loop instead of stored for it.

    for t: a2[t] = a; a = (d[t] * a) @ V.T           for t: g = g + h[t].T @ a; a = (d[t] * a) @ V.T
    g = tensordot(h, a2, axes=([0, 1], [0, 1]))

That is the derivative by the weights of a recurrent network or a flow, with a batch of states. Where the states of one
step are many, arrays of those of all steps are written to fresh memory and read from there again; what is added up is
in the cache. Where they are few, one large product takes less time than a small one in each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import count

from combdiff.arrays import ops
from combdiff.arrays.passes.loops.stored import TURN, argument_of, with_steps, without_idle
from combdiff.arrays.plan import Argument, Plan, Recurrence, Scan, Step, interned, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import ONE, ZERO
from combdiff.terms.types import Domain

_STATEMENTS = 3
"""A sum that a loop adds up takes so many statements a step: a product, a sum, and what is read of arrays."""


def with_sums_in_loops(plan: Plan) -> Plan:
    """The plan with loops that add up products which are summed over their steps, where that pays.

    >>> import combdiff as cd
    >>> step = "(i, k) -> tanh(sum(j, W(k, j) * h(i, j)))"
    >>> d = cd.grad("(x::RM{b, n}) -> (W::RM{n, n}) -> norm(iterate((h, t) -> " + step + ", x, 9))^2")
    >>> plan = d.plan(backend="jax", W=(20, 20), x=(500, 20))
    >>> def sums(p): return sum(isinstance(s.op, ops.Tensordot) and len(s.op.left) == 2 for s in p.steps)
    >>> sums(plan), sums(with_sums_in_loops(plan))
    (1, 0)
    """
    if plan.loops:
        return plan
    for body in [s.op.body for s in plan.steps if isinstance(s.op, Scan) and s.op.halts is None and s.op.every == 1]:
        scan = next((s for s in plan.steps if isinstance(s.op, Scan) and s.op.body is body), None)
        if scan is not None and isinstance(scan.op, Scan):
            plan = _Summing(plan, scan, scan.op).written()
    return plan


@dataclass(slots=True)
class _Summing:
    """A loop, and what its steps are given of other arrays: a row of each, or the whole."""

    plan: Plan
    scan: Step
    op: Scan
    inside: dict[tuple[Step, int | None], Step | None] = field(default_factory=dict)
    rows: dict[tuple[Step, int], Step] = field(default_factory=dict)
    wholes: dict[Step, Step] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    after: set[Step] = field(default_factory=set)

    def written(self) -> Plan:
        self.after = {self.scan}
        for step in self.plan.steps:
            if not self.after.isdisjoint(step.operands):
                self.after.add(step)
        sums: dict[Step, Step] = {}
        for step in self.plan.steps:
            made = self._of_one_step(step) or _linear(step, sums) if step in self.after else None
            if made is not None:
                sums[step] = made
        needed = {o for s in self.plan.steps if s not in sums for o in s.operands} | {*self.plan.outputs}
        kept = {s: made for s, made in sums.items() if s in needed}
        read = {*ordered(kept.values())}
        self.rows = {of: row for of, row in self.rows.items() if row in read}
        self.wholes = {of: whole for of, whole in self.wholes.items() if whole in read}
        return self._with(kept) if kept else self.plan

    # --- what a step adds -----------------------------------------------------------------------------------------

    def _of_one_step(self, step: Step) -> Step | None:
        """The product of one step of the loop, of which `step` is the sum over all; None if that does not pay."""
        if not isinstance(step.op, ops.Tensordot):
            return None
        pairs = [*zip(*step.op.axes, strict=True)]
        left, right = step.operands
        along = next(((a, b) for a, b in pairs if left.domains[a] == right.domains[b] == self.op.domain), None)
        others = [(a - (a > along[0]), b - (b > along[1])) for a, b in pairs if (a, b) != along] if along else []
        if along is None or not others or not self._pays(step):
            return None
        one, other = self._inside(left, along[0]), self._inside(right, along[1])
        if one is None or other is None:
            return None
        op = ops.Tensordot(tuple(a for a, _ in others), tuple(b for _, b in others))
        return Step(op, (one, other), step.domains, step.complex)

    def _pays(self, step: Step) -> bool:
        turns = self.op.domain.extent(self.plan.sizes)
        stored = sum(map(self.plan.entries, step.operands)) / max(turns, 1)
        return turns > 1 and stored > _STATEMENTS * TURN + 2 * self.plan.entries(step)

    def _inside(self, step: Step, axis: int | None) -> Step | None:
        """A row along `axis` of an array, or the whole of it, as a step of the loop has it; None if it has it not."""
        key = step, axis
        if key not in self.inside:
            self.inside[key] = self._made_inside(step, axis)
        return self.inside[key]

    def _made_inside(self, step: Step, axis: int | None) -> Step | None:
        if isinstance(step.op, ops.Number):
            return step
        if axis is None:
            return None if step in self.after else self._given(step, None)
        match step.op:
            case ops.Item(number) if step.operands[0] is self.scan:
                return self.op.body.plan.outputs[number] if axis == 0 and number >= self.op.body.states else None
            case ops.Add() | ops.Mul() | ops.Conj() | ops.Permute() if self._argument(step, axis) is None:
                return self._worked_out(step, axis)
            case ops.Power() | ops.Call() | ops.Contraction() if step in self.after:
                return self._worked_out(step, axis)
            case _:
                return None if step in self.after else self._given(step, axis)

    def _worked_out(self, step: Step, axis: int) -> Step | None:
        """A row of what is made entry by entry, or of products."""
        *rows, own = step.rows
        at = [row.index(own[axis]) if own[axis] in row else None for row in rows]
        operands = [self._inside(o, n) for o, n in zip(step.operands, at, strict=True)]
        if any(o is None for o in operands):
            return None
        domains = (*step.domains[:axis], *step.domains[axis + 1 :])
        return Step(_without(step, axis), tuple(o for o in operands if o is not None), domains, step.complex)

    def _given(self, step: Step, axis: int | None) -> Step:
        """An argument of the steps: that which has an array already, or a new one."""
        known = self._argument(step, axis)
        if known is not None:
            return known
        if axis is None:
            return self.wholes.setdefault(step, self._input(step.domains, step.complex))
        domains = (*step.domains[:axis], *step.domains[axis + 1 :])
        return self.rows.setdefault((step, axis), self._input(domains, step.complex))

    def _argument(self, step: Step, axis: int | None) -> Step | None:
        """The argument that steps have for a row of an array along its first axis, or for the whole of it."""
        body = self.op.body
        first, last = body.states, body.states + body.sequences
        known = [*zip(body.arrays, self.scan.operands, strict=True)]
        of_rows = known[first:last] if axis == 0 else []
        return next((a for a, o in (known[last:] if axis is None else of_rows) if o is step), None)

    def _input(self, domains: tuple[Domain, ...], complex_: bool, name: str = "given") -> Step:
        """A new argument of the steps."""
        taken = {a.name for a in self.op.body.plan.arguments} | self.names
        found = next(text for n in count() if (text := f"{name}{n or ''}") not in taken)
        self.names.add(found)
        return Step(ops.Input(found), (), domains, complex_)

    # --- the loop -------------------------------------------------------------------------------------------------

    def _with(self, sums: Mapping[Step, Step]) -> Plan:
        """The plan whose loop adds up these products, each in a state of its own."""
        body = self.op.body
        own = {step: self._input(step.domains, step.complex, "total") for step in sums}
        places = {s: (tuple(range(s.rank)),) * 2 for s in sums}
        added = [Step(ops.Add((ONE, ONE), places=places[s]), (own[s], sums[s]), s.domains, s.complex) for s in sums]
        outputs = body.plan.outputs
        made = replace(
            body.plan,
            outputs=(*outputs[: body.states], *added, *outputs[body.states :]),
            arguments=self._arguments([*own.values()]),
        )
        outputs, names = interned(made.outputs, made.names)
        made = replace(made, outputs=outputs, names=names)
        states, sequences = body.states + len(sums), body.sequences + len(self.rows)
        op = replace(self.op, body=Recurrence(body.name, made, states, sequences))
        return self._placed(replace(self.scan, op=op, operands=self._operands(sums)), op.body, sums)

    def _arguments(self, totals: Sequence[Step]) -> tuple[Argument, ...]:
        """Those of a step: states, rows of sequences, and what is the same for all, then what is no array."""
        body = self.op.body
        arrays = [a for a in body.plan.arguments if a.step is not None]
        first, last = body.states, body.states + body.sequences
        sums, rows, wholes = (map(argument_of, new) for new in (totals, self.rows.values(), self.wholes.values()))
        others = [a for a in body.plan.arguments if a.step is None]
        return (*arrays[:first], *sums, *arrays[first:last], *rows, *arrays[last:], *wholes, *others)

    def _operands(self, sums: Iterable[Step]) -> tuple[Step, ...]:
        body = self.op.body
        first, last = body.states, body.states + body.sequences
        zeros = [Step(ops.Constant(ZERO), (), (), s.complex) for s in sums]
        starts = [Step(ops.Broadcast(()), (o,), s.domains, s.complex) for o, s in zip(zeros, sums, strict=True)]
        rows = [_first(step, axis) for step, axis in self.rows]
        given = self.scan.operands
        return (*given[:first], *starts, *given[first:last], *rows, *given[last:], *self.wholes)

    def _placed(self, scan: Step, body: Recurrence, sums: Mapping[Step, Step]) -> Plan:
        """The plan with the new loop, whose totals are in the places of the sums."""
        states = self.op.body.states
        new: dict[Step, Step] = {self.scan: scan}
        totals = {s: states + n for n, s in enumerate(sums)}
        for step in self.plan.steps:
            if step in totals:
                new[step] = Step(ops.Item(totals[step]), (scan,), step.domains, step.complex)
            elif isinstance(step.op, ops.Item) and step.operands[0] is self.scan:
                number = step.op.number + (len(sums) if step.op.number >= states else 0)
                new[step] = replace(step, op=ops.Item(number), operands=(scan,))
            elif step not in new and any(o in new for o in step.operands):
                new[step] = replace(step, operands=tuple(new.get(o, o) for o in step.operands))
        plan = with_steps(self.plan, new)
        # interning may have made another step of the loop
        again = next(s for s in plan.steps if isinstance(s.op, Scan) and s.op.body is body)
        return without_idle(plan, again, replace(self.op, body=body))


def _without(step: Step, axis: int) -> ops.Op:
    """The operation of a step, on rows along one of its axes."""
    *rows, own = step.rows
    gone = own[axis]
    left = [[label for label in row if label != gone] for row in (*rows, own)]
    match step.op:
        case ops.Permute(order):
            return ops.Permute(_closed(n for n in order if n != order[axis]))
        case ops.Tensordot():
            one, other, _ = left
            over = [label for label in one if label in other]
            return ops.Tensordot(tuple(map(one.index, over)), tuple(map(other.index, over)))
        case ops.Contraction():
            return ops.Einsum(*(tuple(label - (label > gone) for label in row) for row in left))
        case ops.Aligned() as op:
            return op.placed(tuple(tuple(label - (label > gone) for label in row) for row in left[:-1]))
        case op:
            return op


def _closed(places: Iterable[int]) -> ops.Row:
    """The places, of which one is left out, without a gap."""
    found = [*places]
    return tuple(sorted(found).index(n) for n in found)


def _linear(step: Step, sums: Mapping[Step, Step]) -> Step | None:
    """What a step of the loop adds to a sum, or a multiple, of sums over all steps."""
    linear = isinstance(step.op, ops.Add | ops.Permute | ops.Conj) or (
        isinstance(step.op, ops.Mul) and len(step.operands) == 1
    )
    if not linear or any(o not in sums for o in step.operands):
        return None
    return replace(step, operands=tuple(sums[o] for o in step.operands))


def _first(step: Step, axis: int) -> Step:
    """The array with one of its axes first."""
    if axis == 0:
        return step
    order = (axis, *(n for n in range(step.rank) if n != axis))
    return Step(ops.Permute(order), (step,), tuple(step.domains[n] for n in order), step.complex)
