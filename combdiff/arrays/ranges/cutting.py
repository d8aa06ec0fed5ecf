"""What stands under a condition that cuts a range as slices: no mask, and nothing computed that it leaves out.

    np.where(i < n - 1, np.roll(x, -1) - x, 0)      becomes     d = x[1:] - x[:-1], with a 0 behind it
    where(1 <= i, 2 * roll(d)) - where(…, 2 * d)    becomes     g = np.zeros(n); g[1:] = 2 * d; g[:-1] -= 2 * d

`regions.py` says in which part of its range each array is needed and not zero; here it is made for that part. A shift
that does not leave the range is a slice, so that what differs by a shift is often the same array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from combdiff.arrays import ops
from combdiff.arrays.passes.scaling import scaled_early
from combdiff.arrays.plan import Builder, Step, ordered
from combdiff.arrays.ranges.intervals import Region, chosen, domains_in, everywhere
from combdiff.arrays.ranges.products import summed_product
from combdiff.arrays.ranges.regions import Regions
from combdiff.arrays.ranges.shifts import shared
from combdiff.arrays.ranges.views import permuted, window
from combdiff.terms.terms import MINUS_ONE, ONE, Const, times
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


@dataclass(frozen=True, slots=True)
class _Term:
    """coefficient · value, which lies `at` axes of a sum; `starts` has those on which it is shorter, and from where."""

    coefficient: Const
    value: Step
    at: ops.Row
    starts: tuple[tuple[int, int], ...]

    @property
    def place(self) -> Hashable:
        """Equal for terms that lie at one place."""
        return self.starts, tuple(self.value.domains[self.at.index(axis)] for axis, _ in self.starts)


class _Cutting:
    """Makes each step for its region; `made` has those."""

    def __init__(self, regions: Regions, steps: Sequence[Step], outputs: Sequence[Step]) -> None:
        self.regions = regions
        self.uses = Counter([o for s in steps for o in s.operands] + list(outputs))
        self.builder = Builder()
        self.in_any_order: dict[Hashable, Step] = {}
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
        return self.builder.step(op, (made,), domains_in(step, region), step.complex)

    def _window(self, made: Step, step: Step, whole: Region, region: Region) -> Step:
        """The part of what was made of a step for a region."""
        for axis, (large, small) in enumerate(zip(whole, region, strict=True)):
            if small != large:
                domain = step.domains[axis].shortened(small.less)
                made = window(self.builder, made, axis, small.within(large).before, domain)
        return made

    def _make(self, step: Step) -> Step:
        region = self.regions.of[step]
        needs = self.regions.needs(step)
        match step.op:
            case ops.Where() if self.regions.holds(step):
                return self._placed(step, needs[2])
            case ops.Roll() if step.op.by and needs[0] != everywhere(step.operands[0]) and self._is_slice(step):
                return self.part(step.operands[0], needs[0] or region)
            case ops.Add() as op:
                return self._sum(step, op)
            case ops.Permute(order):
                return permuted(self.builder, self.part(step.operands[0], needs[0] or region), order)
            case _:
                parts = zip(step.operands, needs, strict=True)
                operands = tuple(self.part(o, need or everywhere(o)) for o, need in parts)
                if operands == step.operands and region == everywhere(step):
                    return self.builder.first(step)
                made = self._step(step.op, operands, domains_in(step, region), step.complex)
                return summed_product(made, self._step) if self._sums_a_part(step) else made

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
        made = permuted(self.builder, made, order)
        if len(at) < step.rank:
            made = self.builder.step(ops.Broadcast(tuple(sorted(at))), (made,), domains)
        return made

    def _step(self, op: ops.Op, operands: tuple[Step, ...], domains: Sequence[Domain], complex: bool) -> Step:
        """A step; sums and products that differ in the order of their operands only are one."""
        step = self.builder.step(op, operands, domains, complex)
        if not isinstance(op, ops.Add | ops.Mul):
            return step
        return self.in_any_order.setdefault(self._in_any_order((op, operands), domains, complex), step)

    @staticmethod
    def _in_any_order(made: tuple[ops.Add | ops.Mul, tuple[Step, ...]], domains: Sequence[Domain], complex: bool) -> Hashable:
        """What a sum or a product has in common with those of the same operands in another order."""
        op, operands = made
        own = op.coefficients if isinstance(op, ops.Add) else (ONE,) * len(operands)
        rest = op.placed(()) if isinstance(op, ops.Mul) else ops.Add
        parts = frozenset(Counter(zip(own, operands, op.places, strict=True)).items())
        return rest, parts, tuple(domains), complex

    # --- sums of parts ----------------------------------------------------------------------------------------------

    def _sum(self, step: Step, op: ops.Add) -> Step:
        """A sum, whose terms that are zero but in a part of its region are added to that part."""
        region = self.regions.of[step]
        terms = [term for n in range(len(step.operands)) for term in self._terms(step, n)]
        domains = domains_in(step, region)
        dense = [term for term in terms if not term.starts]
        if len(dense) == len(terms):
            return self._total(dense, domains, step.complex)
        covered = {axis for term in dense for axis in term.at} == set(range(step.rank))
        complex = any(term.value.complex or term.coefficient.imag for term in dense)
        base = self._total(dense, domains, step.complex) if covered and complex == step.complex else None
        places: dict[Hashable, list[_Term]] = {}
        for term in terms if base is None else (term for term in terms if term.starts):
            places.setdefault(term.place, []).append(term)
        signed = [self._at_one_place(alike) for alike in places.values()]
        parts = sorted(signed, key=lambda pair: pair[0])
        put = ops.Put(
            ((),) * len(parts),
            tuple(part.at for _, part in parts),
            base is not None,
            tuple(part.starts for _, part in parts),
            tuple(negative for negative, _ in parts),
        )
        operands = (*(() if base is None else (base,)), *(part.value for _, part in parts))
        return self.builder.step(put, operands, domains, step.complex)

    def _term(self, step: Step, n: int) -> _Term:
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
        value = self.part(operand, inner)
        if not starts and isinstance(value.op, ops.Put) and self.uses[operand] == 1:
            return _Term(c, value, at, ()) if value.op.base else self._put_apart(c, value, value.op, at)
        return _Term(c, value, at, tuple(sorted(starts)))

    def _terms(self, step: Step, n: int) -> list[_Term]:
        """A term of a sum; if it is a sum under a condition that nothing else needs, its terms."""
        term, inner = self._term(step, n), step.operands[n]
        while isinstance(inner.op, ops.Where) and inner in self.made and self.uses[inner] == 1:
            if not self.regions.holds(inner):
                break
            inner = inner.operands[2]
        op = term.value.op
        if not term.starts or self.uses[inner] > 1 or not isinstance(op, ops.Add) or term.value is not self.made[inner]:
            return [term]
        if any(len(at) < term.value.rank for at in op.places):
            return [term]
        parts = zip(op.coefficients, term.value.operands, op.places, strict=True)
        return [
            replace(term, coefficient=times(term.coefficient, c), value=o, at=tuple(term.at[axis] for axis in at))
            for c, o, at in parts
        ]

    def _put_apart(self, c: Const, value: Step, put: ops.Put, at: ops.Row) -> _Term:
        """What is put into zeros, if it is one array."""
        (inner, *others), straight = value.operands, tuple(range(value.rank))
        if others or put.fixed != ((),) or put.places != (straight,) or put.is_negative(0) or not put.starts:
            return _Term(c, value, at, ())
        if isinstance(inner.op, ops.Mul):
            c, scaled = times(c, inner.op.coefficient), replace(inner.op, coefficient=ONE)
            alone = len(inner.operands) == 1 and inner.op.places == (straight,)
            complex = any(o.complex for o in inner.operands)
            inner = inner.operands[0] if alone else self._step(scaled, inner.operands, inner.domains, complex)
        return _Term(c, inner, at, tuple(sorted((at[axis], start) for axis, start in put.starts[0])))

    def _total(self, terms: Sequence[_Term], domains: Sequence[Domain], complex: bool) -> Step:
        if [(term.coefficient, term.at) for term in terms] == [(ONE, tuple(range(len(domains))))]:
            return terms[0].value
        return self._step(*_sum_of(terms), domains, complex)

    def _at_one_place(self, terms: Sequence[_Term]) -> tuple[bool, _Term]:
        """Terms that lie at one place as one, and whether it is subtracted."""
        axes = tuple(sorted({axis for term in terms for axis in term.at}))
        found = {axis: term.value.domains[term.at.index(axis)] for term in terms for axis in term.at}
        domains = [found[axis] for axis in axes]
        aligned = [replace(term, at=tuple(axes.index(axis) for axis in term.at)) for term in terms]
        complex = any(bool(term.coefficient.imag) or term.value.complex for term in terms)
        aligned, scale = self._scaled_as_known(aligned, domains) or _without_number(aligned)
        value = self._total(aligned, domains, any(bool(t.coefficient.imag) or t.value.complex for t in aligned))
        negative = not scale.imag and scale.real < 0
        size = Const(-scale.real) if negative else scale
        if size != ONE:
            op = ops.Mul(size, places=(tuple(range(len(axes))),))
            value = self._step(op, (value,), domains, complex)
        return negative, _Term(ONE, value, axes, terms[0].starts)

    def _scaled_as_known(self, terms: Sequence[_Term], domains: Sequence[Domain]) -> tuple[list[_Term], Const] | None:
        """Terms whose sum is there already, and the number that it takes to make the given ones of it."""
        numbers = dict.fromkeys(term.coefficient.real for term in terms)
        if len(terms) == 1 or any(term.coefficient.imag for term in terms):
            return None
        complex = any(term.value.complex for term in terms)
        for number in numbers:
            for sign in (1, -1):
                scaled = [replace(t, coefficient=Const(sign * t.coefficient.real / number)) for t in terms]
                if self._in_any_order(_sum_of(scaled), domains, complex) in self.in_any_order:
                    return scaled, Const(sign * number)
        return None


def _without_number(terms: Sequence[_Term]) -> tuple[Sequence[_Term], Const]:
    """Terms without the number that they have in common but for signs, which is that of the first one."""
    first, real = terms[0].coefficient, all(not term.coefficient.imag for term in terms)
    if len(terms) == 1 or (real and len({abs(term.coefficient.real) for term in terms}) == 1):
        return [replace(t, coefficient=ONE if t.coefficient == first else MINUS_ONE) for t in terms], first
    if real and all(term.coefficient.real < 0 for term in terms):
        return [replace(t, coefficient=times(MINUS_ONE, t.coefficient)) for t in terms], MINUS_ONE
    return terms, ONE


def _sum_of(terms: Sequence[_Term]) -> tuple[ops.Add, tuple[Step, ...]]:
    op = ops.Add(tuple(term.coefficient for term in terms), places=tuple(term.at for term in terms))
    return op, tuple(term.value for term in terms)
