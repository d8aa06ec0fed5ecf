"""Numbers arrays so that those with one number are equal up to a factor and the order of their axes.

    (x / 30 + Z Wᵀ / 10) Vᵀ   and   Σ_k (Σ_l Z(i, l) W(k, l) + x(i, k) / 3) V(j, k)   are 1/30 and 1/10 of one number

An array is a sum of coefficients times numbered values, each with the places of its axes. Values are functions and
products of numbered values; products with a sum are sums of products. The values of one step of a loop, and arrays of
those of all steps, get the same numbers: `of` numbers an array without one of its axes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import permutations, product
from math import prod

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.records import dataclass
from combdiff.terms.arithmetic import reciprocal
from combdiff.terms.terms import ONE, ZERO, Const, times
from combdiff.terms.types import Domain

MOST = 12
"""Terms of a sum of products, or orders of equal factors, that are looked at."""

Placed = tuple[int, ops.Row]
"""A value, and where its axes lie among those of an array."""

Linear = Mapping[Placed, Const]
"""Σ coefficient · value."""

UNIT: Placed = (0, ())
"""The number 1."""


@dataclass(slots=True)
class Values:
    """The numbers of arrays; `given` has those of the arguments of a step of a loop."""

    given: Mapping[Step, Linear] = field(default_factory=dict)
    _known: dict[Hashable, int] = field(default_factory=dict)
    _factors: dict[int, tuple[Placed, ...]] = field(default_factory=dict)
    _linear: dict[tuple[Step, int | None], Linear] = field(default_factory=dict)

    def inside(self, given: Mapping[Step, Linear]) -> Values:
        """The same numbers for the steps of a loop with these arguments."""
        return Values(given, self._known, self._factors)

    def of(self, step: Step, without: int | None = None) -> Linear:
        """An array as a sum of values, without one of its axes, along which it is taken at one place."""
        key = step, without
        if key not in self._linear:
            self._linear[key] = self._found(step, without)
        return self._linear[key]

    def number(self, step: Step, without: int | None = None) -> tuple[Placed, Const]:
        """The value that an array is, and its factor."""
        return self._as_one(self.of(step, without))

    def set(self, step: Step, without: int | None, found: Linear) -> None:
        """Say what an array is."""
        self._linear[step, without] = found

    def _found(self, step: Step, without: int | None) -> Linear:
        if step in self.given:
            return self.given[step]
        if isinstance(step.op, ops.Constant):
            return {UNIT: step.op.value}
        made = self._made(step, without)
        if made is not None:
            return made
        # what counts, or has a name, is the same in a step and beside the loop
        own: Hashable = step if step.operands or isinstance(step.op, ops.Input) else step.op
        return self._single(("step", own, without), _others(step.rank, without))

    def _made(self, step: Step, without: int | None) -> Linear | None:
        """The value of an operation that this knows, of the values of its operands."""
        *rows, result = step.rows
        label = None if without is None else result[without]
        if label == ops.WHOLE or any(ops.WHOLE in row for row in (*rows, result)):
            return self._of_whole_axes(step, without)
        operands = []
        for operand, row in zip(step.operands, rows, strict=True):
            places = [axis for axis, at in enumerate(row) if at == label]
            if len(places) > 1 or len({*row}) < len(row):
                return None
            found = self.of(operand, places[0] if places else None)
            operands.append((found, tuple(at for at in row if at != label)))
        wanted = tuple(at for at in result if at != label)
        match step.op:
            case ops.Add(coefficients):
                return _added([(c, _moved(u, row, wanted)) for c, (u, row) in zip(coefficients, operands, strict=True)])
            case ops.Permute() | ops.Broadcast() | ops.AsFloat():
                ((found, row),) = operands
                return _moved(found, row, wanted)
            case ops.Mul() | ops.Contraction() | ops.Sum():
                coefficient = step.op.coefficient if isinstance(step.op, ops.Mul) else ONE
                domains = {at: d for o, row in zip(step.operands, rows, strict=True) for at, d in _labelled(o, row)}
                return self._product(coefficient, operands, wanted, domains)
            case ops.Conj() if not step.operands[0].complex:
                return operands[0][0]
            case ops.Conj():
                return self._function(step.op, operands, wanted)
            case ops.Power() | ops.Call() | ops.Where():
                return self._function(step.op.placed(()), operands, wanted)
            case _:
                return None

    def _of_whole_axes(self, step: Step, without: int | None) -> Linear | None:
        """A function along axes, as a maximum or a transform is."""
        if not isinstance(step.op, ops.Reduced | ops.Norm | ops.Fourier) or len(step.operands) != 1:
            return None
        (row, result) = step.rows
        label = None if without is None else result[without]
        if label == ops.WHOLE:
            return None
        places = [axis for axis, at in enumerate(row) if at == label] if label is not None else []
        found = self.of(step.operands[0], places[0] if places else None)
        # what is taken along has labels of its own
        own = iter(range(-2, -2 - len(row), -1))
        marked = tuple(next(own) if at == ops.WHOLE else at for at in row)
        after = iter(at for at in marked if at < 0)
        wanted = tuple(next(after) if at == ops.WHOLE else at for at in result)
        op = replace(step.op, axis=0) if isinstance(step.op, ops.Fourier) else step.op
        op = replace(op, axes=()) if isinstance(op, ops.Reduced) else op
        given = tuple(at for at in marked if at != label)
        if not all({at for at in given if at < 0} <= {given[n] for n in at} for _, at in found):
            return None  # of an array that is the same along an axis, the size of the axis counts
        return self._function(op, [(found, given)], tuple(at for at in wanted if at != label))

    # --- products ---------------------------------------------------------------------------------------------------

    def _product(
        self,
        coefficient: Const,
        operands: Sequence[tuple[Linear, ops.Row]],
        wanted: ops.Row,
        domains: Mapping[int, Domain],
    ) -> Linear:
        """Σ over the labels that are not wanted of a product: term by term, if there is such a sum.

        A term that is the same along a label that is summed over is multiplied by the size of its domain.
        """
        summed = {at for _, row in operands for at in row} - {*wanted}
        if summed and prod(len(u) for u, _ in operands) <= MOST:
            parts = [u.items() for u, _ in operands]
        else:
            parts = [dict([self._as_one(u)]).items() for u, _ in operands]
        rows = [row for _, row in operands]
        found = []
        for terms in product(*parts):
            c = coefficient
            factors = []
            for ((value, at), own), row in zip(terms, rows, strict=True):
                c = times(c, own)
                factors.append((value, tuple(row[n] for n in at)))
            alike = summed.difference(*(row for _, row in factors))
            factors += [(self._named(("size", domains[at])), ()) for at in sorted(alike)]
            found.append((c, {self._of_factors(factors, wanted): ONE}))
        return _added(found)

    def _of_factors(self, factors: Sequence[Placed], wanted: ops.Row) -> Placed:
        """The product of values with labels, of which those that are not wanted are summed over."""
        whole: list[Placed] = []
        for value, row in factors:
            inner = self._factors.get(value, ((value, tuple(range(len(row)))),))
            whole += [(v, tuple(row[n] for n in at)) for v, at in inner]
        whole = [f for f in whole if f != UNIT]
        free = {at for at in wanted if any(at in row for _, row in whole)}
        if len(whole) == 1 and {*whole[0][1]} <= free:
            return whole[0][0], tuple(wanted.index(at) for at in whole[0][1])
        best: tuple[tuple[tuple[Placed, ...], ops.Row], list[int]] | None = None
        for order in _orders(whole):
            labels: dict[int, int] = {}
            key = tuple((v, tuple(labels.setdefault(at, len(labels)) for at in row)) for v, row in order)
            kept = tuple(n for at, n in labels.items() if at in free)
            if best is None or (key, kept) < best[0]:
                best = (key, kept), [at for at in labels if at in free]
        assert best is not None, "there is an order"
        (key, kept), own = best
        made = self._named(("product", key, kept))
        if len({at for _, row in whole for at in row}) == len(kept) and kept == tuple(range(len(kept))):
            self._factors[made] = key
        return made, tuple(wanted.index(at) for at in own)

    # --- functions --------------------------------------------------------------------------------------------------

    def _function(self, op: Hashable, operands: Sequence[tuple[Linear, ops.Row]], wanted: ops.Row) -> Linear:
        """A function of values entry by entry, or along labels below 0."""
        labels: dict[int, int] = {}
        found = []
        for linear, row in operands:
            (value, at), c = self._as_one(linear)
            found.append((value, c, tuple(labels.setdefault(row[n], len(labels)) for n in at)))
        along = tuple(n for at, n in labels.items() if at < 0)
        own = tuple(at for at in labels if at in wanted)
        return self._single(("function", op, tuple(found), along), tuple(wanted.index(at) for at in own))

    def _single(self, key: Hashable, places: ops.Row) -> Linear:
        return {(self._named(key), places): ONE}

    def _named(self, key: Hashable) -> int:
        return self._known.setdefault(key, len(self._known) + 1)

    def _as_one(self, linear: Linear) -> tuple[Placed, Const]:
        """A sum as one value with a factor."""
        if len(linear) == 1:
            return next(iter(linear.items()))
        if not linear:
            return UNIT, ZERO
        terms = sorted(linear.items(), key=lambda term: term[0])
        labels: dict[int, int] = {}
        first = terms[0][1]
        share = reciprocal(first)
        key = tuple(
            (v, tuple(labels.setdefault(at, len(labels)) for at in row), times(c, share)) for (v, row), c in terms
        )
        return (self._named(("sum", key)), tuple(labels)), first


def _labelled(operand: Step, row: ops.Row) -> Iterator[tuple[int, Domain]]:
    """The labels of axes with their domains."""
    return zip(row, operand.domains, strict=True)


def _others(rank: int, without: int | None) -> ops.Row:
    return tuple(range(rank if without is None else rank - 1))


def _moved(linear: Linear, row: ops.Row, wanted: ops.Row) -> Linear:
    """The same where axis n has the label row[n], among axes with the wanted labels."""
    return {(v, tuple(wanted.index(row[n]) for n in at)): c for (v, at), c in linear.items()}


def _added(terms: Sequence[tuple[Const, Linear]]) -> Linear:
    found: dict[Placed, Const] = {}
    for c, linear in terms:
        for key, own in linear.items():
            found[key] = _plus(found.get(key, ZERO), times(c, own))
    return {key: c for key, c in found.items() if c.real or c.imag}


def _plus(a: Const, b: Const) -> Const:
    return Const(a.real + b.real, a.imag + b.imag)


def _orders(factors: Sequence[Placed]) -> Iterator[Sequence[Placed]]:
    """The orders of factors by their numbers: all those of equal ones, if these are few."""
    ordered = sorted(factors)
    numbers = [v for v, _ in ordered]
    if len({*numbers}) == len(numbers) or len(numbers) > 4:
        yield ordered
        return
    for order in permutations(ordered):
        if [v for v, _ in order] == numbers:
            yield order
