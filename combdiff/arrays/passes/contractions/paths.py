"""Σ over a product of many arrays becomes products of two: in the cheapest order, with what is made already."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from math import prod

from combdiff.arrays import ops
from combdiff.arrays.lower.arrays import Arrays, Value, domain_of
from combdiff.arrays.passes.contractions.orders import Cost, Factors, Pairings, guessed, in_order, leaves
from combdiff.arrays.passes.contractions.reuse import KnownContractions
from combdiff.arrays.passes.contractions.sharing import Shared, shared_parts
from combdiff.arrays.plan import Step
from combdiff.records import dataclass
from combdiff.terms.terms import ONE, Const, Delta, Indicator, Term, Var, mul
from combdiff.terms.types import Domain

WIDEST = 8  # a product of more arrays is not joined with the sums inside it


@dataclass
class Network:
    """Σ over `summed` of coefficient · the product of `operands`, where the masks hold."""

    summed: list[Var]
    wanted: Sequence[Var] = ()
    coefficient: Const = ONE
    operands: list[Value] = field(default_factory=list)
    masks: list[Delta | Indicator] = field(default_factory=list)

    def scale(self, c: Term) -> None:
        product = mul(self.coefficient, c)
        assert isinstance(product, Const), "the product of two numbers"
        self.coefficient = product

    def order(self, free: Collection[Var]) -> Sequence[Var]:
        """The axes of a factor in the order in which it is best made: X (F C) wants what it sums over first."""
        return _facing(self.wanted, free, [v for v in self.summed if v in free])


class Contractions:
    """The contractions of one lowering: each Σ in the cheapest order, and none of its parts made a second time."""

    def __init__(self, arrays: Arrays, sizes: Mapping[Domain, int], shared: Shared | None = None) -> None:
        self.arrays = arrays
        self.sizes = sizes
        self.made = KnownContractions(arrays)
        self.shared = shared or {}
        self.networks: list[Factors] = []
        self.cost = Cost()

    def to_share(self) -> Shared:
        """What to make once for several of the contractions so far."""
        return shared_parts(self.networks, self.made, self.cost)

    def total(self, operands: Sequence[Value], kept: Collection[Var], wanted: Sequence[Var] = ()) -> Value:
        """Σ over every index that is not kept of the product of `operands`, two at a time.

        A conjugate of a large array is not formed: Σ A' x = (Σ A x')'.
        """
        values = [_without_lonely(self.arrays, v, operands, kept) for v in operands]
        factors = Factors(values, kept, self.sizes, self.arrays.symmetries)
        self.networks.append(factors)
        if not factors.exact:
            return self._made(factors, factors.all, guessed(factors), {}, wanted)
        known = self.made.among(factors)
        parts = self.shared.get(len(self.networks) - 1, frozenset()).difference(known)
        for group in sorted(parts, key=int.bit_count):
            known[group] = self._made(factors, group, factors.cheapest(known, group), known, ())
        ways = factors.cheapest(known)
        self.cost += ways[factors.all].cost
        return self._made(factors, factors.all, ways, known, wanted)

    def _made(
        self, factors: Factors, whole: int, ways: Pairings, known: Mapping[int, Value], wanted: Sequence[Var]
    ) -> Value:
        """The product over a set of factors, in a given order."""
        todo = {g: known[g] if g in known else factors.values[g.bit_length() - 1] for g in leaves(ways, whole)}
        for left, right in in_order(ways, whole):
            a, b = [todo.pop(g) for g in [*todo] if g in (left, right)]
            order = _order(list(todo.values()), a, b, wanted) if todo else wanted
            value = _contract(self.arrays, a, b, factors.free(left | right), self.sizes, order)
            self.made.add(factors, left | right, value)
            todo[left | right] = value
        return todo[whole]


def _order(rest: Sequence[Value], left: Value, right: Value, wanted: Sequence[Var]) -> Sequence[Var]:
    """The order of axes that the product should have: as in the largest array that it will be contracted with.

    A matrix lies as a product with it does in what is `wanted`.
    """
    made = {*left.labels, *right.labels}
    partners = [v.labels for v in rest if len(made.intersection(v.labels)) > 1]
    if partners:
        return max(partners, key=len)
    order = _facing(wanted, made, [x for v in rest for x in v.labels if x in made and x not in wanted])
    return order if len(order) == 2 else ()


def _facing(wanted: Sequence[Var], free: Collection[Var], summed: Sequence[Var]) -> Sequence[Var]:
    """The order of a factor's axes, some of which will be `summed`: last, or first if the other factor leads."""
    own = [v for v in wanted if v in free]
    if summed and own:
        return [*own, *summed] if own[0] is wanted[0] else [*summed, *own]
    return () if summed else own


def _without_lonely(arrays: Arrays, v: Value, operands: Sequence[Value], kept: Collection[Var]) -> Value:
    """`v` summed over the indices that no other operand has."""
    lonely = [x for x in v.labels if x not in kept and sum(x in other.labels for other in operands) == 1]
    return arrays.reduce(v, lonely)


def _contract(
    arrays: Arrays, a: Value, b: Value, kept: Collection[Var], sizes: Mapping[Domain, int], wanted: Sequence[Var]
) -> Value:
    for large, small in ((a, b), (b, a)):
        addends = _addends(large, small, kept)
        if addends:
            parts = [(c, _contract(arrays, v, small, kept, sizes, wanted)) for c, v in addends]
            return arrays.total(parts, wanted)
    conjugated = [v for v in (a, b) if isinstance(v.step.op, ops.Conj)]
    if conjugated and any(x not in kept for x in a.labels if x in b.labels):
        out = {x for x in (*a.labels, *b.labels) if x in kept}
        spared = sum(_entries(v.labels, sizes) for v in conjugated)
        spent = _entries(out, sizes) + sum(_entries(v.labels, sizes) for v in (a, b) if v not in conjugated)
        if spared > 2 * spent or (len(conjugated) == 2 and spared > _entries(out, sizes)):
            return arrays.conj(arrays.contract(arrays.conj(a), arrays.conj(b), kept, wanted))
    return arrays.contract(a, b, kept, wanted)


def _addends(large: Value, small: Value, kept: Collection[Var]) -> list[tuple[Const, Value]]:
    """The terms of a sum of arguments that is contracted with all of a smaller array: Σ P (2V − V×).

    The sum would take the memory of another argument, and reading these twice costs no more than making it.
    """
    contracted = [x for x in small.labels if x not in kept]
    if not isinstance(large.step.op, ops.Add) or not contracted or len(small.labels) >= len(large.labels):
        return []
    if not set(small.labels) <= set(large.labels) or not all(map(_is_argument, large.step.operands)):
        return []
    values = [
        Value(step, tuple(large.labels[axis] for axis in axes))
        for step, axes in zip(large.step.operands, large.step.op.places, strict=True)
    ]
    if not all(set(small.labels) <= set(v.labels) for v in values):
        return []
    return list(zip(large.step.op.coefficients, values, strict=True))


def _is_argument(step: Step) -> bool:
    """Whether it is an argument, or its conjugate, as it lies in memory."""
    while isinstance(step.op, ops.View | ops.Conj):
        step = step.operands[0]
    return isinstance(step.op, ops.Input)


def _entries(labels: Collection[Var], sizes: Mapping[Domain, int]) -> int:
    return prod(sizes[domain_of(x)] for x in labels)
