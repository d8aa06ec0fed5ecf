"""The order of contractions: Σ over a product of many arrays becomes products of two, cheapest for these sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from combdiff.codegen.arrays import Arrays, Value, domain_of
from combdiff.codegen.large_networks import path_of_large
from combdiff.codegen.plan import VIEWS, Step
from combdiff.language.terms import ONE, Const, Delta, Indicator, Term, Var, mul
from combdiff.language.types import Domain

_EXACT = 10
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


def contract_all(
    arrays: Arrays,
    operands: Sequence[Value],
    kept: Collection[Var],
    sizes: Mapping[Domain, int],
    wanted: Sequence[Var] = (),
) -> Value:
    """Σ over every index that is not kept of the product of `operands`, two at a time.

    The path is opt_einsum's, or cotengra's. A conjugate of a large array is not formed: Σ A' x = (Σ A x')'.
    """
    todo = [_without_lonely(arrays, v, operands, kept) for v in operands]
    for pair in contraction_path([v.labels for v in todo], kept, sizes):
        left, right = todo[pair[0]], todo[pair[1]]
        todo = [v for n, v in enumerate(todo) if n not in pair]
        needed = {*kept, *(x for v in todo for x in v.labels)}
        todo.append(_contract(arrays, left, right, needed, sizes, _order(todo, left, right) if todo else wanted))
    return todo[0]


def _order(rest: Sequence[Value], left: Value, right: Value) -> Sequence[Var]:
    """The order of axes that the product should have: as in the largest array that it will be contracted with."""
    made = {*left.labels, *right.labels}
    partners = [v.labels for v in rest if len(made.intersection(v.labels)) > 1]
    return max(partners, key=len, default=())


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
    conjugated = [v for v in (a, b) if v.step.op == "conj"]
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
    if large.step.op != "add" or not contracted or len(small.labels) >= len(large.labels):
        return []
    spec: Any = large.step.spec
    coefficients, alignments = spec
    if not set(small.labels) <= set(large.labels) or not all(map(_is_argument, large.step.operands)):
        return []
    values = [
        Value(step, tuple(large.labels[axis] for axis in axes))
        for step, axes in zip(large.step.operands, alignments, strict=True)
    ]
    if not all(set(small.labels) <= set(v.labels) for v in values):
        return []
    return list(zip(coefficients, values, strict=True))


def _is_argument(step: Step) -> bool:
    """Whether it is an argument, or its conjugate, as it lies in memory."""
    while step.op in VIEWS | {"conj"} and step.operands:
        step = step.operands[0]
    return step.op == "input"


def _entries(labels: Collection[Var], sizes: Mapping[Domain, int]) -> int:
    return prod(sizes[domain_of(x)] for x in labels)


def contraction_path(
    rows: Sequence[Sequence[Var]], kept: Collection[Var], sizes: Mapping[Domain, int]
) -> list[tuple[int, int]]:
    """Pairs of positions; the two are taken out and their product is put at the end."""
    if len(rows) <= 2:
        return [(0, 1)] if len(rows) == 2 else []
    # dynamic programming looks for the best path without outer products: T x x is (T x) x, and not T (x x)
    from opt_einsum.paths import DynamicProgramming

    search = DynamicProgramming(minimize="flops") if len(rows) <= _EXACT else path_of_large
    # opt_einsum breaks ties by the labels, so they are numbered as they come and not by identity
    names = {x: n for n, x in enumerate(dict.fromkeys(x for row in rows for x in row))}
    inputs = [frozenset(chr(0x100 + names[x]) for x in row) for row in rows]
    output = frozenset(chr(0x100 + names[x]) for x in kept if x in names)
    extents = {chr(0x100 + n): max(sizes[domain_of(x)], 1) for x, n in names.items()}
    pairs: list[tuple[int, int]] = []
    for group in search(inputs, output, extents):
        taken = sorted(group)
        count = len(rows) - len(pairs)
        while len(taken) >= 2:
            first, second = taken.pop(0), taken.pop(0)
            pairs.append((first, second))
            taken = [n - (n > first) - (n > second) for n in taken] + [count - 2]
            count -= 1
    return pairs
