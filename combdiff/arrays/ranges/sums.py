"""Sums whose terms cover parts of a range: `g[1:] = d`, `g[:-1] -= d`, one statement a term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction

from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Step
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE, Const, times
from combdiff.terms.types import Domain


@dataclass(frozen=True, slots=True)
class Term:
    """coefficient · value, whose axes lie `at` those of a sum.

    `starts` has the axes of the sum on which it is shorter, each with the place of its first entry.
    """

    coefficient: Const
    value: Step
    at: ops.Row
    starts: tuple[tuple[int, int], ...] = ()

    @property
    def complex(self) -> bool:
        """Whether its entries may be complex."""
        return self.value.complex or bool(self.coefficient.imag)

    @property
    def place(self) -> Hashable:
        """Equal for terms that lie at one place."""
        return self.starts, tuple(self.value.domains[self.at.index(axis)] for axis, _ in self.starts)

    def within(self, c: Const, value: Step, at: ops.Row) -> Term:
        """A term of what this one is a sum of."""
        coefficient = times(self.coefficient, c)
        return replace(self, coefficient=coefficient, value=value, at=tuple(self.at[axis] for axis in at))

    def scaled(self, c: Const) -> Term:
        """c · term."""
        return replace(self, coefficient=times(c, self.coefficient))


class Sums:
    """Makes steps; sums and products that differ in the order of their operands only are one."""

    def __init__(self) -> None:
        self.builder = Builder()
        self._known: dict[Hashable, Step] = {}

    def step(self, op: ops.Op, operands: tuple[Step, ...], domains: Sequence[Domain], complex: bool) -> Step:
        """The step of this operation, or one that is equal to it."""
        step = self.builder.step(op, operands, domains, complex)
        if not isinstance(op, ops.Add | ops.Mul):
            return step
        return self._known.setdefault(_in_any_order(op, operands, domains, complex), step)

    def scaled(self, c: Const, value: Step) -> Step:
        """c · value."""
        if c == ONE:
            return value
        op = ops.Mul(c, places=(tuple(range(value.rank)),))
        return self.step(op, (value,), value.domains, value.complex or bool(c.imag))

    def total(self, terms: Sequence[Term], domains: Sequence[Domain], complex: bool) -> Step:
        """The sum of terms that all lie in the whole of a range."""
        if [(term.coefficient, term.at) for term in terms] == [(ONE, tuple(range(len(domains))))]:
            return terms[0].value
        return self.step(*_added(terms), domains, complex)

    def in_parts(self, terms: Sequence[Term], domains: Sequence[Domain], complex: bool) -> Step:
        """The sum of terms of which some lie in a part of a range."""
        dense = [term for term in terms if not term.starts]
        if len(dense) == len(terms):
            return self.total(dense, domains, complex)
        covered = {axis for term in dense for axis in term.at} == set(range(len(domains)))
        fits = covered and any(term.complex for term in dense) == complex
        base = (self.total(dense, domains, complex),) if fits else ()
        places: dict[Hashable, list[Term]] = {}
        for term in terms if not base else (term for term in terms if term.starts):
            places.setdefault(term.place, []).append(term)
        parts = [self._at_one_place(alike) for alike in places.values()]
        common = ONE if base else _in_common(parts)
        parts = sorted((part.scaled(Const(1 / common.real)) for part in parts), key=_is_subtracted)
        put = ops.Put(
            ((),) * len(parts),
            tuple(part.at for part in parts),
            bool(base),
            tuple(part.starts for part in parts),
            tuple(map(_is_subtracted, parts)),
        )
        operands = (*base, *(self.scaled(_size(part), part.value) for part in parts))
        return self.scaled(common, self.builder.step(put, operands, domains, complex))

    def _at_one_place(self, terms: Sequence[Term]) -> Term:
        """Terms that lie at one place as one."""
        axes = tuple(sorted({axis for term in terms for axis in term.at}))
        found = {axis: term.value.domains[term.at.index(axis)] for term in terms for axis in term.at}
        domains = [found[axis] for axis in axes]
        aligned = [replace(term, at=tuple(axes.index(axis) for axis in term.at)) for term in terms]
        aligned, scale = self._as_known(aligned, domains) or _without_number(aligned)
        value = self.total(aligned, domains, any(term.complex for term in aligned))
        return Term(scale, value, axes, terms[0].starts)

    def _as_known(self, terms: Sequence[Term], domains: Sequence[Domain]) -> tuple[list[Term], Const] | None:
        """Terms whose sum is there already, and the number that it takes to make the given ones of it."""
        if len(terms) == 1 or any(term.coefficient.imag for term in terms):
            return None
        complex = any(term.value.complex for term in terms)
        for number in dict.fromkeys(term.coefficient.real for term in terms):
            for factor in (number, -number):
                scaled = [term.scaled(Const(1 / factor)) for term in terms]
                if _in_any_order(*_added(scaled), domains, complex) in self._known:
                    return scaled, Const(factor)
        return None


def _in_any_order(
    op: ops.Add | ops.Mul, operands: tuple[Step, ...], domains: Sequence[Domain], complex: bool
) -> Hashable:
    """What a sum or a product has in common with those of the same operands in another order."""
    own = op.coefficients if isinstance(op, ops.Add) else (ONE,) * len(operands)
    rest = op.placed(()) if isinstance(op, ops.Mul) else ops.Add
    parts = frozenset(Counter(zip(own, operands, op.places, strict=True)).items())
    return rest, parts, tuple(domains), complex


def _added(terms: Sequence[Term]) -> tuple[ops.Add, tuple[Step, ...]]:
    op = ops.Add(tuple(term.coefficient for term in terms), places=tuple(term.at for term in terms))
    return op, tuple(term.value for term in terms)


def _without_number(terms: Sequence[Term]) -> tuple[list[Term], Const]:
    """Terms without the number that they have in common but for signs, and the number, with the sign of the first."""
    numbers = [term.coefficient for term in terms]
    real = not any(c.imag for c in numbers)
    if len(terms) == 1 or (real and len({abs(c.real) for c in numbers}) == 1):
        return [replace(t, coefficient=ONE if t.coefficient == numbers[0] else MINUS_ONE) for t in terms], numbers[0]
    if real and all(c.real < 0 for c in numbers):
        return [term.scaled(MINUS_ONE) for term in terms], MINUS_ONE
    return list(terms), ONE


def _in_common(parts: Sequence[Term]) -> Const:
    """The least number before parts, if it stands before several: it is multiplied with once, at the end."""
    numbers = [abs(part.coefficient.real) for part in parts]
    least = min(numbers)
    shared = numbers.count(least) > 1 and not any(part.coefficient.imag for part in parts)
    return Const(least if shared else Fraction(1))


def _is_subtracted(term: Term) -> bool:
    return not term.coefficient.imag and term.coefficient.real < 0


def _size(term: Term) -> Const:
    """The number before a term without its sign."""
    return Const(-term.coefficient.real) if _is_subtracted(term) else term.coefficient
