"""Products with tables of windows, x(i + p, j + q), read the windows from memory in which they overlap.

    t = x[i[:, None, None, None] + p[:, None, None], j[:, None] + q]; y = tensordot(t, k)    a table of n²m² entries
    t = windows of x along j, n²m entries; y(i, j) = Σ k(p, q) t(i + p, q, j)                n products of k with m rows

The rows of t at i are those of its part from i on: a view, in which the rows for i and i + 1 have all but m numbers in
common, so that each i takes one product of matrices for BLAS. Channels are further rows. Where nothing is left for
columns, as of one direction, the table is copied from a view. Zeros beyond the ends are put round x first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.arrays import ops
from combdiff.arrays.passes.gathers.affine import Form, Table, size_of, table
from combdiff.arrays.plan import Builder, Plan, Recurrence, Scan, Step, interned
from combdiff.arrays.ranges.views import permuted
from combdiff.records import dataclass
from combdiff.terms.types import Domain

LARGE = 1 << 10
"""Entries of a table from which on windows are quicker."""


def with_windows(plan: Plan, large: int = LARGE) -> Plan:
    """The plan with windows for tables of at least so many entries that only products read.

    >>> import combdiff as cd
    >>> blurred = "sum((p, q), i + p < n and j + q < m, k(p, q) * x(i + p, j + q))"
    >>> text = f"(k::RM{{3, 3}}) -> (x::RM{{n, m}}) -> sum((i::N{{n}}, j::N{{m}}), exp({blurred}))"
    >>> plan = cd.grad(text).plan(backend="jax", x=(40, 50))
    >>> [sum(isinstance(s.op, ops.Windows) for s in p.steps) for p in (plan, with_windows(plan))]
    [0, 2]
    """
    if plan.loops:
        return plan
    plan = _with_steps_of_loops(plan, large)
    tables = {s: t for s in plan.steps if s.rank > 1 and plan.entries(s) >= large and (t := table(s)) is not None}
    sides = {s: n for s in plan.steps for n in (1, 0) if _is_product(s, n, tables)}
    while sides:
        made = _with_products(plan, tables, sides)
        there = {*made.steps}
        kept = {s: n for s, n in sides.items() if _gather(s.operands[n]) not in there}
        if len(kept) == len(sides):
            return made
        sides = kept
    return plan


def _with_steps_of_loops(plan: Plan, large: int) -> Plan:
    """The plan with windows in the steps of loops."""
    new = dict[Step, Step]()
    for step in plan.steps:
        operands = tuple(new[o] for o in step.operands)
        op = step.op
        if isinstance(op, Scan) and (inner := with_windows(op.body.plan, large)) is not op.body.plan:
            op = replace(op, body=Recurrence(op.body.name, inner, op.body.states, op.body.sequences))
        new[step] = step if (op, operands) == (step.op, step.operands) else replace(step, op=op, operands=operands)
    if all(new[s] is s for s in new):
        return plan
    names = {new[s]: name for s, name in plan.names.items() if s in new}
    return replace(plan, outputs=tuple(new[o] for o in plan.outputs), names=names)


def _is_product(step: Step, side: int, tables: Mapping[Step, Table]) -> bool:
    """Whether a step contracts a table, in which each index counts along one axis of the array."""
    if not isinstance(step.op, ops.Tensordot | ops.Einsum | ops.Batched):
        return False
    found = tables.get(step.operands[side])
    return found is not None and sum(len(form.steps) for form in found.slots) == len(found.domains)


def _gather(table: Step) -> Step:
    """The gather that a table is made of."""
    while not isinstance(table.op, ops.Gather):
        table = table.operands[-1]
    return table


def _with_products(plan: Plan, tables: Mapping[Step, Table], sides: Mapping[Step, int]) -> Plan:
    builder, new = Builder(), dict[Step, Step]()
    for step in plan.steps:
        operands = tuple(new[o] for o in step.operands)
        if step in sides:
            side = sides[step]
            found, other = tables[step.operands[side]], operands[1 - side]
            # the conjugate of the product with what is conjugated: so all products have the same windows
            other = _conjugated(builder, other) if found.conjugated else other
            made = _Product(plan, builder, step, side, replace(found, of=new[found.of]), other).step()
            new[step] = _conjugated(builder, made) if found.conjugated else made
        else:
            new[step] = step if operands == step.operands else replace(step, operands=operands)
    outputs, names = interned([new[o] for o in plan.outputs], {new.get(s, s): name for s, name in plan.names.items()})
    return replace(plan, outputs=outputs, names=names)


def _conjugated(builder: Builder, step: Step) -> Step:
    if isinstance(step.op, ops.Conj):
        return step.operands[0]
    return builder.step(ops.Conj(), (step,), step.domains) if step.complex else step


_FEWEST, _ENOUGH = 4, 32
"""Columns of a matrix below which calls of BLAS take longer than a table, and from which on they take little."""


@dataclass(frozen=True, slots=True)
class _Product:
    """A step that contracts a table with `other`, an operand that has been made. Indices are labels of axes."""

    plan: Plan
    builder: Builder
    of: Step
    side: int
    table: Table
    other: Step

    def step(self) -> Step:
        """The same with windows."""
        inner, _, _ = self._rows
        pair = self._pair()
        if (found := self._correlated()) is not None:
            return found
        if pair is not None:
            return self._by_rows(*pair)
        windows = self._windows(inner, None)
        operands = (windows, self.other) if self.side == 0 else (self.other, windows)
        return self.builder.step(self.of.op, operands, self.of.domains, self.of.complex)

    @property
    def _rows(self) -> ops.Rows:
        """The labels of the table, of the other operand, and of the result."""
        rows = self.of.rows
        return rows[self.side], rows[1 - self.side], rows[2]

    def _domain(self, label: int) -> Domain:
        inner, own, _ = self._rows
        return self.table.domains[inner.index(label)] if label in inner else self.other.domains[own.index(label)]

    def _size(self, label: int) -> int:
        domain = self._domain(label)
        return self.plan.sizes.get(domain, domain.count or 1)

    def _pair(self) -> tuple[int, int] | None:
        """Two labels of one slot, the longer one first, of which one is summed over, and the other one is free.

        Windows along this axis of the array are a view.
        """
        inner, own, out = self._rows
        found: list[tuple[tuple[bool, int, int], int, int]] = []
        for form in self.table.slots:
            steps = {inner[axis]: c for axis, c in form.steps.items()}
            if len(steps) != 2 or sorted((v in own, v in out) for v in steps) != [(False, True), (True, False)]:
                continue
            short, long = sorted(steps, key=self._size)
            columns = prod(map(self._size, self._groups(long, short)[-1]))
            if columns >= _FEWEST:
                found.append(((abs(steps[short]) == 1, min(columns, _ENOUGH), self._size(short)), long, short))
        if not found:
            return None
        # windows along the others are copied; results are in the order of the array if the first one is not
        *kind, most = max(merit for merit, *_ in found)
        return next((long, short) for merit, long, short in found if [*merit[:2]] == kind and 2 * merit[2] > most)

    def _groups(self, long: int, short: int) -> tuple[list[int], list[int], list[int]]:
        """The other labels of the table: of a stack of matrices, of their rows, of their columns.

        Rows are in the sum, or in the result, like the shorter label, and columns like the longer one.
        """
        inner, own, out = self._rows
        batch = [v for v in inner if v in own and v in out]
        rows, columns = (
            [v for v in inner if v not in (*batch, long, short) and (v in out) == (like in out)]
            for like in (short, long)
        )
        plain = {inner[axis] for form in self.table.slots if len(form.steps) == 1 for axis in form.steps}
        alone = [v for v in columns if v in plain and long in out]
        if len(alone) == len(columns):
            return batch, rows, columns
        return [*batch, *alone], rows, [v for v in columns if v not in alone]

    def _correlated(self) -> Step | None:
        """A product of vectors, if the table is that of two indices, one of them summed over."""
        inner, own, out = self._rows
        if len(self.table.slots) > 1 or len(inner) != 2 or len(own) != 1 or len(out) != 1 or own == out:
            return None
        (form,) = self.table.slots
        by, step = (form.steps[inner.index(row[0])] for row in (out, own))
        if abs(by) > 1 and abs(step) > 1:
            return None
        op = ops.Correlated(by, step, (form.constant, form.sizes))
        return self.builder.step(op, (self.table.of, self.other), self.of.domains, self.of.complex)

    def _by_rows(self, long: int, short: int) -> Step:
        """A product for each value of `long`, with rows for `short` and other indices."""
        inner, own, out = self._rows
        stack, rows, columns = self._groups(long, short)
        order = (*stack, long, short, *rows, *columns)
        batch = [v for v in stack if v in own]
        backwards = any(form.steps.get(inner.index(short), 0) < 0 for form in self.table.slots)
        windows = self._windows(order, len(stack), short if backwards else None)
        if long in out:
            other = self._flipped(self.other, own.index(short)) if backwards else self.other
            return self._placed(*self._contracted(windows, order, other, own, batch, [short, *rows]))
        made, labels = self._contracted(windows, order, self.other, own, [*batch, long], columns)
        rest = [v for v in labels if v != long]
        summed = self.builder.step(ops.Sum((labels.index(long),)), (made,), map(self._domain, rest))
        return self._placed(self._flipped(summed, rest.index(short)) if backwards else summed, rest)

    def _windows(self, order: Sequence[int], shared: int | None, backwards: int | None = None) -> Step:
        """The table with its axes in an order; one that is read backwards counts from its other end."""
        inner, *_ = self._rows
        along, by = [], []
        slots = [*self.table.slots]
        for label in order:
            axis = inner.index(label)
            slot = next(n for n, form in enumerate(slots) if axis in form.steps)
            step = slots[slot].steps[axis]
            if label == backwards:
                last = size_of(self._domain(label)).plus(Form({}, -1))
                slots[slot] = slots[slot].plus(last, step).plus(Form({axis: 1}), -2 * step)
            along.append(slot)
            by.append(-step if label == backwards else step)
        starts = tuple((form.constant, form.sizes) for form in slots)
        op = ops.Windows(tuple(along), tuple(by), starts, shared)
        # a product would make complex numbers of all entries of the view
        complex = self.table.of.complex or (self.other.complex and shared is not None)
        return self.builder.step(op, (self.table.of,), map(self._domain, order), complex)

    def _contracted(
        self,
        left: Step,
        order: Sequence[int],
        right: Step,
        own: Sequence[int],
        batch: Sequence[int],
        over: Sequence[int],
    ) -> tuple[Step, list[int]]:
        """Windows times another array, for each value of a batch, with the labels of the result."""
        pairs = [(tuple(order.index(v) for v in group), tuple(own.index(v) for v in group)) for group in (batch, over)]
        axes, summed = pairs
        op = ops.Batched(axes, summed) if batch else ops.Tensordot(*summed)
        labels = [*batch, *(v for v in (*order, *own) if v not in (*batch, *over))]
        return self.builder.step(op, (left, right), map(self._domain, labels)), labels

    def _flipped(self, step: Step, axis: int) -> Step:
        return self.builder.step(ops.Flip(axis), (step,), step.domains)

    def _placed(self, step: Step, labels: Sequence[int]) -> Step:
        """A result with its axes in the order of the step that it stands for."""
        return permuted(self.builder, step, tuple(labels.index(v) for v in self._rows[2]))
