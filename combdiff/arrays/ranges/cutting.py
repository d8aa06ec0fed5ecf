"""Turns conditions that cut a range into slices: no mask is made, and nothing outside of the slice is computed.

    np.where(i < n - 1, np.roll(x, -1) - x, 0)      becomes     d = x[1:] - x[:-1], with a 0 behind it
    where(1 <= i, 2 * roll(d)) - where(…, 2 * d)    becomes     g = np.zeros(n); g[1:] = 2 * d; g[:-1] -= 2 * d

`regions.py` says in which part of its range each array is needed and not zero; here it is made for that part. A shift
that does not leave the range is a slice, so that what differs by a shift is often the same array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.passes.scaling import scaled_early
from combdiff.arrays.plan import Step, ordered
from combdiff.arrays.ranges.intervals import Region, chosen, domains_in, everywhere
from combdiff.arrays.ranges.products import summed_product
from combdiff.arrays.ranges.regions import Regions
from combdiff.arrays.ranges.shifts import shared
from combdiff.arrays.ranges.sums import Sums, Term
from combdiff.arrays.ranges.views import permuted, window
from combdiff.terms.terms import MINUS_ONE, ONE, times
from combdiff.terms.types import Domain


def cut(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int]
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps with what stands under conditions computed where these hold.

    >>> import combdiff as cd
    >>> d = cd.grad("(x::RV{n}) -> sum(i, i < n - 1, (x(i + 1) - x(i))^3)")
    >>> any(isinstance(step.op, ops.Where) for step in d.plan().steps)
    False
    """
    steps = ordered(outputs)
    if not any(chosen(step) is not None or _is_written_in_part(step) for step in steps):
        return tuple(outputs), dict(names)
    regions = Regions(steps, outputs)
    whole = all(region == everywhere(step) for step, region in regions.of.items())
    if whole and not any(map(_is_written_in_part, steps)):
        return tuple(outputs), dict(names)
    cutting = _Cutting(regions, steps, outputs)
    made = tuple(cutting.part(o, everywhere(o)) for o in outputs)
    kept = {cutting.made[step]: name for step, name in names.items() if step in cutting.made}
    return scaled_early(*shared(made, kept), sizes)


def _is_written_in_part(step: Step) -> bool:
    """Whether a step is zero but in a part of a range that has bounds."""
    return isinstance(step.op, ops.Put) and any(step.op.starts)


class _Cutting:
    """Makes each step for its region; `made` has those."""

    def __init__(self, regions: Regions, steps: Sequence[Step], outputs: Sequence[Step]) -> None:
        self.regions = regions
        self.uses = Counter([o for s in steps for o in s.operands] + list(outputs))
        self.sums = Sums()
        self.made: dict[Step, Step] = {}
        for step in steps:
            if step in regions.of:
                self.made[step] = self._make(step)

    def part(self, step: Step, region: Region) -> Step:
        """A step in a region: a part of it, with zeros where it is known to be zero."""
        own = self.regions.of[step]
        inner = tuple(a & b for a, b in zip(own, region, strict=True))
        made = self._window(self.made[step], step, own, inner)
        if inner == region:
            return made
        starts = tuple(
            (axis, small.within(large).before)
            for axis, (small, large) in enumerate(zip(inner, region, strict=True))
            if small != large
        )
        op = ops.Put(((),), (tuple(range(step.rank)),), False, (starts,))
        return self.sums.builder.step(op, (made,), domains_in(step, region), step.complex)

    def _window(self, made: Step, step: Step, whole: Region, region: Region) -> Step:
        """The part of what was made of a step for a region."""
        for axis, (large, small) in enumerate(zip(whole, region, strict=True)):
            if small != large:
                domain = step.domains[axis].shortened(small.less)
                made = window(self.sums.builder, made, axis, small.within(large).before, domain)
        return made

    def _make(self, step: Step) -> Step:
        region = self.regions.of[step]
        needs = self.regions.needs(step)
        match step.op:
            case ops.Where() if self.regions.holds(step):
                return self._placed(step, needs[2])
            case ops.Roll() if step.op.by and needs[0] != everywhere(step.operands[0]) and self._is_slice(step):
                return self.part(step.operands[0], needs[0] or region)
            case ops.Gather() if needs[1:] == (None,):
                return self.part(step.operands[0], needs[0] or region)
            case ops.Add():
                terms = [term for n in range(len(step.operands)) for term in self._terms(step, n)]
                return self.sums.in_parts(terms, domains_in(step, region), step.complex)
            case ops.Permute(order):
                return permuted(self.sums.builder, self.part(step.operands[0], needs[0] or region), order)
            case _:
                parts = zip(step.operands, needs, strict=True)
                operands = tuple(self.part(o, need or everywhere(o)) for o, need in parts)
                if operands == step.operands and region == everywhere(step):
                    return self.sums.builder.first(step)
                made = self.sums.step(step.op, operands, domains_in(step, region), step.complex)
                return summed_product(made, self.sums.step) if self._sums_a_part(step) else made

    def _is_slice(self, step: Step) -> bool:
        assert isinstance(step.op, ops.Roll), "a shift"
        return self.regions.of[step][step.op.axis].shifted(-step.op.by) is not None

    def _sums_a_part(self, step: Step) -> bool:
        """Whether a step sums what nothing else needs, and what is cut."""
        if not isinstance(step.op, ops.Sum):
            return False
        (operand,) = step.operands
        return self.uses[operand] == 1 and self.regions.of[operand] != everywhere(operand)

    def _placed(self, step: Step, need: Region | None) -> Step:
        """What is chosen, with the axes of the choice."""
        body, at = step.operands[2], step.rows[2]
        made = self.part(body, need or everywhere(body))
        domains = domains_in(step, self.regions.of[step])
        order = tuple(sorted(range(len(at)), key=at.__getitem__))
        made = permuted(self.sums.builder, made, order)
        if len(at) < step.rank:
            made = self.sums.builder.step(ops.Broadcast(tuple(sorted(at))), (made,), domains)
        return made

    # --- sums of parts ----------------------------------------------------------------------------------------------

    def _term(self, step: Step, n: int) -> Term:
        """A term of a sum, in the part of the sum's region in which it is not zero."""
        assert isinstance(step.op, ops.Add), "a sum"
        operand, at = step.operands[n], step.op.places[n]
        c = step.op.coefficients[n]
        own, region = self.regions.of[operand], self.regions.of[step]
        inner = tuple(own[m] & region[axis] for m, axis in enumerate(at))
        starts = tuple(
            (axis, small.within(region[axis]).before)
            for axis, small in zip(at, inner, strict=True)
            if small != region[axis]
        )
        return Term(c, self.part(operand, inner), at, tuple(sorted(starts)))

    def _terms(self, step: Step, n: int) -> list[Term]:
        """A term of a sum; if it is a sum itself that nothing else needs, under a condition or in parts, its terms."""
        term, inner = self._term(step, n), step.operands[n]
        while isinstance(inner.op, ops.Where) and self.uses[inner] == 1 and self.regions.holds(inner):
            inner = inner.operands[2]
        if self.uses[inner] > 1 or term.value is not self.made.get(inner):
            return [term]
        if isinstance(term.value.op, ops.Mul) and [type(o.op) for o in term.value.operands] == [ops.Put]:
            term = replace(term.scaled(term.value.op.coefficient), value=term.value.operands[0])
        match term.value.op:
            case ops.Add(coefficients, places=places) if term.starts and all(len(at) == len(term.at) for at in places):
                parts = zip(coefficients, term.value.operands, places, strict=True)
                return [term.within(c, o, at) for c, o, at in parts]
            case ops.Put(fixed, places) as op if not any(fixed):
                base = [term.within(ONE, term.value.operands[0], tuple(range(term.value.rank)))] if op.base else []
                values = enumerate(zip(term.value.operands[op.base :], places, strict=True))
                return [*base, *(self._part_within(term, op, n, value, at) for n, (value, at) in values)]
            case _:
                return [term]

    def _part_within(self, term: Term, put: ops.Put, n: int, value: Step, at: ops.Row) -> Term:
        """What is put in a part of a term."""
        c = MINUS_ONE if put.is_negative(n) else ONE
        straight = tuple(range(value.rank))
        if isinstance(value.op, ops.Mul):
            c, scaled = times(c, value.op.coefficient), replace(value.op, coefficient=ONE)
            alone = len(value.operands) == 1 and value.op.places == (straight,)
            complex = any(o.complex for o in value.operands)
            value = value.operands[0] if alone else self.sums.step(scaled, value.operands, value.domains, complex)
        outer, inner = dict(term.starts), put.starts_of(n)
        starts = outer | {term.at[axis]: outer.get(term.at[axis], 0) + start for axis, start in inner.items()}
        return replace(term.within(c, value, at), starts=tuple(sorted(starts.items())))
