"""Sums of arrays that are zero but at constants as writes of what stands there: `t = 2 * x`, then `t[0] += a`.

The gradient by an entry x(0) is δ(i, 0) a, which is `np.where(0 == i, a, 0)` by itself: one pass over an array as large
as x, and another where it is added to the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Step, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import ONE, ZERO, Const, times
from combdiff.terms.types import Domain


def written_at(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int]
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps with what is zero but at constants written there.

    A sum that something else needs, or that has a name, is not taken apart.
    """
    steps = ordered(outputs)
    uses = Counter([o for s in steps for o in s.operands] + list(outputs))
    found = _Sparse({step for step in steps if uses[step] == 1 and step not in names})
    for step in steps:
        found.add(step)
    new = found.whole
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


@dataclass(frozen=True, slots=True)
class _Part:
    """An array that is zero but at `fixed`, axes and places, where coefficient · value stands; its axes are `axes`."""

    fixed: tuple[tuple[int, int], ...]
    value: Step
    axes: ops.Row
    coefficient: Const = ONE

    def summed(self, axes: ops.Row) -> _Part:
        """The sum over some of the axes of the value."""
        over = tuple(n for n, axis in enumerate(self.axes) if axis in axes)
        domains = tuple(d for n, d in enumerate(self.value.domains) if n not in over)
        value = Step(ops.Sum(over), (self.value,), domains, self.value.complex)
        return replace(self, value=value, axes=tuple(axis for axis in self.axes if axis not in axes))

    def moved(self, places: Sequence[int] | Mapping[int, int]) -> _Part:
        """The same with axis n at places[n]."""
        fixed = tuple(sorted((places[axis], place) for axis, place in self.fixed))
        return replace(self, fixed=fixed, axes=tuple(places[axis] for axis in self.axes))

    def along(self, axis: int, place: int) -> _Part:
        """The same where it is zero along one axis more."""
        return replace(self, fixed=tuple(sorted((*self.fixed, (axis, place)))))

    def scaled(self, coefficient: Const) -> _Part:
        """coefficient · part."""
        return replace(self, coefficient=times(coefficient, self.coefficient))

    def times(self, factors: Sequence[tuple[Step, ops.Row]], complex: bool) -> _Part:
        """Factors · part, which hold its number."""
        rows = (*(at for _, at in factors), self.axes)
        operands = (*(factor for factor, _ in factors), self.value)
        out, places = _aligned(rows)
        op = ops.Mul(self.coefficient, places=places)
        return _Part(self.fixed, Step(op, operands, _domains(operands, rows, out), complex), out)

    @property
    def product(self) -> _Part:
        """The same with the coefficient in the value, whose axes are in order then."""
        if self.coefficient == ONE:
            return self
        return self.times((), self.value.complex or bool(self.coefficient.imag))


class _Sparse:
    """Finds steps that are sums of parts; `whole` has what becomes of each step, `free` are those used once."""

    def __init__(self, free: set[Step]) -> None:
        self.free = free
        self.whole: dict[Step, Step] = {}
        self.parts: dict[Step, tuple[_Part, ...]] = {}

    def add(self, step: Step) -> None:
        """Take the next step, whose operands have been taken."""
        operands = tuple(self.whole[o] for o in step.operands)
        same = step if operands == step.operands else replace(step, operands=operands)
        parts = self._parts_of(step)
        if parts and not isinstance(step.op, ops.Scatter):
            self.whole[step] = _put(step, None, parts)
        elif isinstance(step.op, ops.Add) and any(o in self.parts for o in step.operands):
            self.whole[step] = self._with_base(step, step.op)
        else:
            self.whole[step] = same
        if parts and (step in self.free or not isinstance(step.op, ops.Add)):
            self.parts[step] = parts

    def _parts_of(self, step: Step) -> tuple[_Part, ...]:
        """The parts that a step is the sum of; none where it is not known to be such a sum."""
        match step.op:
            case ops.Where("==", None, otherwise) if otherwise == ZERO:
                return self._chosen(step)
            case ops.Scatter():
                return self._scattered(step, step.op.at)
            case ops.Permute(order):
                inner = self.parts.get(step.operands[0], ())
                return tuple(part.moved([order.index(axis) for axis in range(step.rank)]) for part in inner)
            case ops.Sum(axes):
                return self._summed(step, axes)
            case ops.Mul() as op:
                return self._product(step, op)
            case ops.Add() as op if all(o in self.parts for o in step.operands):
                return self._terms(step, op, range(len(step.operands)))
            case _:
                return ()

    def _chosen(self, step: Step) -> tuple[_Part, ...]:
        """[i = 2] a, where a does not depend on i."""
        *sides, body = step.operands
        *rows, at = step.rows[:3]
        counted = [n for n, side in enumerate(sides) if isinstance(side.op, ops.Range)]
        if len(counted) != 1:
            return ()
        (axis,), other = rows[counted[0]], sides[1 - counted[0]]
        domain = step.domains[axis]
        place = _constant(other, domain)
        if place is None or domain.symmetric or domain.lower or axis in at:
            return ()
        inner = self.parts.get(body) or (_whole_of(self.whole[body]),)
        return tuple(part.moved(at).along(axis, place) for part in inner)

    def _scattered(self, step: Step, at: ops.Row) -> tuple[_Part, ...]:
        """A scatter to constants."""
        values, *places = step.operands
        found = [_constant(place, domain) for place, domain in zip(places, step.domains, strict=False)]
        known = [place for place in found if place is not None]
        if len(known) < len(places):
            return ()
        inner = self.parts.get(values) or (_whole_of(self.whole[values]),)
        parts = [part.moved([len(places) + axis for axis in at]) for part in inner]
        for axis, place in enumerate(known):
            parts = [part.along(axis, place) for part in parts]
        return tuple(parts)

    def _summed(self, step: Step, axes: ops.Row) -> tuple[_Part, ...]:
        """The sums of parts over axes that all of them have: an array that is zero but in one row is never made."""
        inner = self.parts.get(step.operands[0], ())
        if any(axis not in part.axes for part in inner for axis in axes):
            return ()
        rest = [axis for axis in range(step.operands[0].rank) if axis not in axes]
        return tuple(part.summed(axes).moved({axis: n for n, axis in enumerate(rest)}) for part in inner)

    def _product(self, step: Step, op: ops.Mul) -> tuple[_Part, ...]:
        """The parts of one factor, times the others, which do not depend on what is constant."""
        sparse = [n for n, o in enumerate(step.operands) if o in self.parts]
        if len(sparse) != 1:
            return ()
        (own,) = sparse
        inner = [part.moved(op.places[own]) for part in self.parts[step.operands[own]]]
        pairs = list(zip((self.whole[o] for o in step.operands), op.places, strict=True))
        others = [*pairs[:own], *pairs[own + 1 :]]
        mentioned = {axis for _, at in others for axis in at}
        if any(axis in mentioned for part in inner for axis, _ in part.fixed):
            return ()
        return tuple(part.scaled(op.coefficient).times(others, step.complex) for part in inner)

    def _terms(self, step: Step, op: ops.Add, which: Sequence[int]) -> tuple[_Part, ...]:
        """The parts of some terms of a sum, with their coefficients."""
        return tuple(
            part.moved(op.places[n]).scaled(op.coefficients[n]) for n in which for part in self.parts[step.operands[n]]
        )

    def _with_base(self, step: Step, op: ops.Add) -> Step:
        """A sum of which some terms are zero but at constants: these are written into the sum of the others."""
        sparse = [n for n, o in enumerate(step.operands) if o in self.parts]
        dense = [n for n in range(len(step.operands)) if n not in sparse]
        rest = ops.Add(tuple(op.coefficients[n] for n in dense), places=tuple(op.places[n] for n in dense))
        operands = tuple(self.whole[step.operands[n]] for n in dense)
        covered = {axis for at in rest.places for axis in at} == set(range(step.rank))
        complex = any(o.complex for o in operands) or any(c.imag for c in rest.coefficients)
        if not covered or complex != step.complex:
            return replace(step, operands=tuple(self.whole[o] for o in step.operands))
        base = Step(rest, operands, step.domains, complex)
        if rest == ops.Add((ONE,), places=(tuple(range(step.rank)),)):
            (base,) = operands
        return _put(step, base, self._terms(step, op, sparse))


def _constant(step: Step, domain: Domain) -> int | None:
    """The place along an axis that a step is, if it is known; below 0 it counts from the end, as n - 1 does."""
    match step.op:
        case ops.Position((), constant, None, None) if constant >= 0:
            return constant
        case ops.Position((1,), constant, None, None) if isinstance(size := step.operands[0].op, ops.Size):
            return _from_end(size.domain, constant, domain)
        case ops.Size(of):
            return _from_end(of, 0, domain)
        case _:
            return None


def _from_end(of: Domain, constant: int, domain: Domain) -> int | None:
    """Where the size of a range and a constant is, counted from the end of another one."""
    more = domain.fewer(of) if domain.from_zero else None
    return None if more is None or constant + more >= 0 else constant + more


def _whole_of(step: Step) -> _Part:
    return _Part((), step, tuple(range(step.rank)))


def _put(step: Step, base: Step | None, parts: Sequence[_Part]) -> Step:
    """An array of the axes of `step` with parts written into it: those at one place are summed before."""
    places: dict[tuple[tuple[int, int], ...], list[_Part]] = {}
    for part in parts:
        places.setdefault(part.fixed, []).append(part)
    joined = [_joined(alike).product for alike in places.values()]
    op = ops.Put(tuple(part.fixed for part in joined), tuple(part.axes for part in joined), base is not None)
    operands = (*(() if base is None else (base,)), *(part.value for part in joined))
    return Step(op, operands, step.domains, step.complex)


def _joined(parts: Sequence[_Part]) -> _Part:
    """The sum of parts at one place."""
    if len(parts) == 1:
        return parts[0]
    rows, operands = tuple(part.axes for part in parts), tuple(part.value for part in parts)
    out, places = _aligned(rows)
    op = ops.Add(tuple(part.coefficient for part in parts), places=places)
    complex = any(o.complex for o in operands) or any(part.coefficient.imag for part in parts)
    return _Part(parts[0].fixed, Step(op, operands, _domains(operands, rows, out), complex), out)


def _aligned(rows: ops.Rows) -> tuple[ops.Row, ops.Rows]:
    """All axes of some rows, in order, and where those of each row lie among them."""
    out = tuple(sorted({axis for row in rows for axis in row}))
    return out, tuple(tuple(out.index(axis) for axis in row) for row in rows)


def _domains(operands: Sequence[Step], rows: ops.Rows, out: ops.Row) -> tuple[Domain, ...]:
    """What the axes `out` range over."""
    found = {axis: d for o, row in zip(operands, rows, strict=True) for axis, d in zip(row, o.domains, strict=True)}
    return tuple(found[axis] for axis in out)
