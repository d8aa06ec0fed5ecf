"""What depends on an index only through an array of integers is computed for each value that this array may hold.

    t = X[a]; u = np.exp(t - t.max(axis=1)[:, None])              a row for each entry of a
    t = X[occurring(a, m)]; u = np.exp(t - t.max(axis=1)[:, None]); u[a]          a row for each of the m values

    scatter(w[:, None] * u, a)                                    u scatter(w, a)[:, None], with the rows u of values

That is less to do where the entries are many and the values few. In the row of a value that is not among the entries
stands the row of one that is: nothing is computed of rows that nobody reads, which may have no logarithm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from combdiff.arrays import ops
from combdiff.arrays.numbers import exponent_of
from combdiff.arrays.passes.gathers.rows import NEW
from combdiff.arrays.plan import Plan, Step, interned, ordered
from combdiff.records import dataclass
from combdiff.simplify.graph.running import CALL
from combdiff.terms.terms import ONE, Const
from combdiff.terms.types import Domain

Factor: TypeAlias = tuple[Step, ops.Row]
"""A step, and the labels of its axes."""

_STEP = 2000  # the time that NumPy takes for a step, in the time in which an entry is read and written
_QUICK = (-1, 2)  # the exponents of powers that take no call
_CLEARLY = 0.8  # tables leave less than this share of the time


def with_tables(plan: Plan) -> Plan:
    """The plan with tables of values where they are clearly less to do; the same plan where they are not."""
    if plan.loops:
        return plan
    taken = [s for s in plan.steps if _is_by_rows(s) and plan.entries(s) > plan.entries(s.operands[0])]
    for places in dict.fromkeys(s.operands[1] for s in taken):
        made = _Tables(plan, places).outputs()
        if made is None:
            continue
        found = replace(plan, outputs=made[0], names=made[1])
        if _seconds(found) < _CLEARLY * _seconds(plan):
            plan = found
    return plan


def _is_by_rows(step: Step) -> bool:
    """Whether rows are taken at the places of one array of integers, all of its indices in order."""
    match step.op:
        case ops.Gather(slots, rank):
            return rank > 0 and slots.count(None) == len(slots) - 1 and tuple(range(rank)) in slots
        case _:
            return False


def _seconds(plan: Plan) -> float:
    """About how long the steps take, in the time in which an entry is read and written."""
    return sum(_STEP + _entries(plan, s) for s in plan.steps if not isinstance(s.op, ops.SHOWING))


def _entries(plan: Plan, step: Step) -> float:
    written = plan.entries(step)
    match step.op:
        case ops.Power() if exponent_of(step.operands[1]) in _QUICK:
            return written
        case ops.Call() | ops.Unknown() | ops.Power():
            return CALL * written
        case ops.Occurring():
            return 3 * plan.entries(step.operands[0]) + written
        case ops.Contraction():
            return plan.flops(step) / 32 + written
        case op if isinstance(op, (*_REDUCING, ops.Placing)):
            return sum(map(plan.entries, step.operands)) + written
        case _:
            return written


_REDUCING = (ops.Sum, ops.Reduced, ops.Norm)
_ROW_BY_ROW = (
    *ops.ENTRYWISE,
    ops.Unknown,
    ops.Conj,
    ops.AsFloat,
    *_REDUCING,
    ops.Cumulative,
    ops.Permute,
    ops.LaidOut,
    ops.Pick,
)
"""What is done with each row alone."""


@dataclass(frozen=True, slots=True)
class _Table:
    """What an array is at the entries of an array of integers: rows of `step` for its values, at the first of `at`.

    `at` are the axes of the array that carry the indices of the integers, in the order of these.
    """

    step: Step
    at: ops.Row

    @property
    def axis(self) -> int:
        return min(self.at)

    def labels(self, row: Sequence[int]) -> ops.Row:
        """The labels of the axes of the table, if those of the array's are `row`."""
        return tuple(NEW if n == self.axis else v for n, v in enumerate(row) if n == self.axis or n not in self.at)


class _Tables:
    """The outputs of a plan with tables of all that depends on indices only through `places`."""

    def __init__(self, plan: Plan, places: Step) -> None:
        self._plan, self._places = plan, places
        self._uses = Counter([o for s in plan.steps for o in s.operands] + list(plan.outputs))
        self._found: dict[Step, _Table] = {}
        self._new: dict[Step, Step] = {}

    def outputs(self) -> tuple[tuple[Step, ...], dict[Step, str]] | None:
        """The outputs and the names of steps; None if nothing but rows would be in a table."""
        for step in self._plan.steps:
            table = self._of_rows(step) if _is_by_rows(step) else self._of_tables(step)
            if table is not None:
                self._found[step] = table
        if all(map(_is_by_rows, self._found)):
            return None
        outputs = [self._changed(o) for o in self._plan.outputs]
        names = {self._new[s]: name for s, name in self._plan.names.items() if s in self._new}
        return interned(outputs, names)

    def _of_rows(self, step: Step) -> _Table | None:
        """Rows of an array, of all of its values that are read."""
        array, places = step.operands
        if places is not self._places:
            return None
        assert isinstance(step.op, ops.Gather), "rows are taken"
        (axis,) = step.op.gathered
        slots = tuple((0,) if n == axis else None for n in range(array.rank))
        read = self._occurring(array.domains[axis])
        table = Step(ops.Gather(slots, 1), (array, read), array.domains, array.complex)
        return _Table(table, tuple(range(axis, axis + step.op.rank)))

    def _occurring(self, domain: Domain) -> Step:
        return Step(ops.Occurring(), (self._places,), (domain,), False)

    def _of_tables(self, step: Step) -> _Table | None:
        """What is made of tables, and of what does not depend on the indices."""
        if not isinstance(step.op, _ROW_BY_ROW) or self._found.keys().isdisjoint(step.operands):
            return None
        *rows, out = step.rows
        given = [self._found.get(o) for o in step.operands]
        own = {tuple(row[n] for n in t.at) for row, t in zip(rows, given, strict=True) if t is not None}
        domains = {t.step.domains[t.axis] for t in given if t is not None}
        if len(own) > 1 or len(domains) > 1 or not {*(indices := own.pop())} <= {*out} - {ops.WHOLE}:
            return None
        if any(t is None and not {*row}.isdisjoint(indices) for row, t in zip(rows, given, strict=True)):
            return None
        labels = [row if t is None else t.labels(row) for row, t in zip(rows, given, strict=True)]
        table = _Table(step, tuple(out.index(v) for v in indices))
        to = table.labels(out)
        of = dict(zip(out, step.domains, strict=True)) | {NEW: domains.pop()}
        operands = tuple(o if t is None else t.step for o, t in zip(step.operands, given, strict=True))
        made = Step(_relabelled(step.op, labels, to), operands, tuple(of[v] for v in to), step.complex)
        return replace(table, step=made)

    # --- what is made of them ----------------------------------------------------------------------------------------

    def _changed(self, output: Step) -> Step:
        """A step with what it is made of read from tables."""
        for step in ordered((output,)):
            if step in self._new:
                continue
            if step in self._found and not _is_by_rows(step):
                self._new[step] = self._read(step)
            elif (added := self._added(step)) is not None:
                self._new[step] = added
            else:
                operands = tuple(self._new[o] for o in step.operands)
                self._new[step] = step if operands == step.operands else replace(step, operands=operands)
        return self._new[output]

    def _read(self, step: Step) -> Step:
        """Rows of a table at the places, with axes as the array has them that they are."""
        table = self._found[step]
        rank, axis = self._places.rank, table.axis
        slots = tuple(tuple(range(rank)) if n == axis else None for n in range(table.step.rank))
        rest = [n for n in range(step.rank) if n not in table.at]
        axes = (*rest[:axis], *table.at, *rest[axis:])
        op = ops.Gather(slots, rank)
        made = Step(op, (table.step, self._places), tuple(step.domains[n] for n in axes), step.complex)
        if axes == tuple(range(step.rank)):
            return made
        order = tuple(axes.index(n) for n in range(step.rank))
        return Step(ops.Permute(order), (made,), step.domains, step.complex)

    def _added(self, step: Step) -> Step | None:
        """Σ_e δ(a(e), v) w(e) u(a(e)) as u(v) Σ_e δ(a(e), v) w(e), where `step` adds such rows."""
        match step.op:
            case ops.Scatter(at, places, rank, True) if step.operands[1] is self._places:
                if places != (tuple(range(rank)),):
                    return None
            case _:
                return None
        values = step.operands[0]
        coefficient, factors = _factors(values, at)
        if values in self._found or self._uses[values] > 1:
            coefficient, factors = ONE, [(values, at)]
        own = tuple(range(rank))
        tables = [(t.step, t.labels(row)) for f, row in factors if (t := self._table(f, row, own)) is not None]
        rest = [(f, row) for f, row in factors if self._table(f, row, own) is None]
        weights = [(self._new[f], row) for f, row in rest if not {*row}.isdisjoint(own)]
        beside = [(self._new[f], row) for f, row in rest if {*row}.isdisjoint(own)]
        if not tables or (weights and not {*own} <= {v for _, row in weights for v in row}):
            return None
        of = {NEW: step.domains[0]} | dict(enumerate(step.domains[1:], rank))
        of |= dict(enumerate(self._places.domains))
        count, row = self._scattered(_product(ONE, weights, of) if weights else self._ones(), of)
        read = self._occurring(step.domains[0])
        taken = ops.Gather(((0,), *(None,) * (len(row) - 1)), 1)
        count = Step(taken, (count, read), count.domains, count.complex)
        out = (NEW, *range(rank, rank + step.rank - 1))
        made, _ = _product(coefficient, [*tables, *beside, (count, row)], of, out)
        # what a row that nobody reads would add, 0 times the row of another value, is not added
        put = ops.Scatter(tuple(range(step.rank)), ((0,),), 1, False)
        return Step(put, (made, read), step.domains, made.complex)

    def _table(self, step: Step, row: ops.Row, indices: ops.Row) -> _Table | None:
        """The table that a factor is, if its axes with the labels of the indices are those of the places."""
        table = self._found.get(step)
        return table if table is not None and tuple(row[n] for n in table.at) == indices else None

    def _ones(self) -> Factor:
        one = Step(ops.Constant(ONE), (), (), False)
        ones = Step(ops.Broadcast(()), (one,), self._places.domains, False)
        return ones, tuple(range(self._places.rank))

    def _scattered(self, values: Factor, of: Mapping[int, Domain]) -> Factor:
        """What is added up at the places, with the labels of its axes."""
        step, row = values
        rank = self._places.rank
        rest = sorted(v for v in row if v >= rank)
        numbers = {v: rank + n for n, v in enumerate(rest)} | {v: v for v in range(rank)}
        op = ops.Scatter(tuple(numbers[v] for v in row), (tuple(range(rank)),), rank, True)
        domains = (of[NEW], *(of[v] for v in rest))
        return Step(op, (step, self._places), domains, step.complex), (NEW, *rest)


def _factors(step: Step, row: ops.Row) -> tuple[Const, list[Factor]]:
    """A step as a product, with the labels of the axes of each factor."""
    match step.op:
        case ops.Mul(coefficient, places=places):
            pairs = zip(step.operands, places, strict=True)
            return coefficient, [(o, tuple(row[n] for n in at)) for o, at in pairs]
        case _:
            return ONE, [(step, row)]


def _product(
    coefficient: Const, factors: Sequence[Factor], of: Mapping[int, Domain], out: ops.Row | None = None
) -> Factor:
    """A product over the labels `out`, or over all that its factors have."""
    out = tuple(sorted({v for _, row in factors for v in row})) if out is None else out
    if len(factors) == 1 and coefficient == ONE and factors[0][1] == out:
        return factors[0]
    op = ops.Mul(coefficient, places=tuple(tuple(out.index(v) for v in row) for _, row in factors))
    complex = bool(coefficient.imag) or any(f.complex for f, _ in factors)
    return Step(op, tuple(f for f, _ in factors), tuple(of[v] for v in out), complex), out


def _relabelled(op: ops.Op, rows: Sequence[ops.Row], out: ops.Row) -> ops.Op:
    """An operation whose operands and result have other axes, with the labels of these."""
    match op:
        case ops.Aligned():
            return op.placed(tuple(tuple(out.index(v) for v in row) for row in rows))
        case ops.Sum() | ops.Reduced():
            return replace(op, axes=tuple(n for n, v in enumerate(rows[0]) if v not in out))
        case ops.Permute() | ops.LaidOut():
            return replace(op, order=tuple(rows[0].index(v) for v in out))
        case ops.Cumulative():
            return replace(op, axis=rows[0].index(ops.WHOLE))
        case ops.Pick(fixed):
            gone = [n for n, v in enumerate(rows[0]) if v == ops.WHOLE]
            placed = zip(gone, sorted(fixed), strict=True)
            return replace(op, fixed=tuple((n, index, domain) for n, (_, index, domain) in placed))
        case _:
            return op
