"""Turns sums of products of whole arrays into contractions, once no mask separates the sum from the product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from combdiff.arrays import ops
from combdiff.arrays.numbers import exponent_of
from combdiff.arrays.plan import Step
from combdiff.terms.terms import ONE, Const, number
from combdiff.terms.types import Domain

Make: TypeAlias = Callable[[ops.Op, tuple[Step, ...], Sequence[Domain], bool], Step]


def summed_product(step: Step, make: Make) -> Step:
    """A sum over axes as a contraction, if it is one of products of two arrays.

    >>> from combdiff.arrays.plan import Builder
    >>> from combdiff.terms.terms import TWO
    >>> builder, n = Builder(), Domain("n")
    >>> x, two = builder.step(ops.Input("x"), (), (n,), False), builder.step(ops.Constant(TWO), (), (), False)
    >>> square = builder.step(ops.Power(places=((0,), ())), (x, two), (n,))
    >>> summed_product(builder.step(ops.Sum((0,)), (square,), ()), builder.step).op
    Tensordot(left=(0,), right=(0,))
    """
    (product,) = step.operands
    assert isinstance(step.op, ops.Sum), "over axes"
    match product.op:
        case ops.Power():
            return _of_power(step, product, make)
        case ops.Call("abs2") if product.operands[0].complex:
            base = product.operands[0]
            conjugate = make(ops.Conj(), (base,), base.domains, True)
            found = _contracted(step, (conjugate, base), make)
            return make(ops.Call("real", places=(tuple(range(step.rank)),)), (found,), step.domains, False)
        case ops.Mul(coefficient, places=places):
            return _of_factors(step, product, coefficient, places, make)
        case ops.Add(coefficients, places=places) if all(at == tuple(range(product.rank)) for at in places):
            sums = [make(step.op, (o,), step.domains, o.complex) for o in product.operands]
            terms = tuple(summed_product(s, make) for s in sums)
            rows = (tuple(range(step.rank)),) * len(terms)
            # one pass over a sum is quicker than one over each of its terms
            if any(term is s for term, s in zip(terms, sums, strict=True)):
                return step
            return make(ops.Add(coefficients, places=rows), terms, step.domains, step.complex)
        case ops.Contraction():
            return _of_contraction(step, product, make)
        case ops.Sum(axes):
            left = [axis for axis in range(product.operands[0].rank) if axis not in axes]
            every = tuple(sorted((*axes, *(left[axis] for axis in step.op.axes))))
            return summed_product(make(ops.Sum(every), product.operands, step.domains, step.complex), make)
        case _:
            return step


def _of_power(step: Step, product: Step, make: Make) -> Step:
    """Σ a^n as Σ a^m a^(n − m)."""
    assert isinstance(product.op, ops.Power), "a power"
    base, n = product.operands[0], exponent_of(product.operands[1])
    if n is None or n.denominator != 1 or n < 2 or product.op.places[0] != tuple(range(product.rank)):
        return step
    half = n.numerator // 2
    powers = []
    for exponent in (half, n.numerator - half):
        constant = make(ops.Constant(number(exponent)), (), (), False)
        operands = (base, constant)
        powers.append(base if exponent == 1 else make(product.op, operands, product.domains, product.complex))
    return _contracted(step, (powers[0], powers[1]), make)


def _of_factors(step: Step, product: Step, coefficient: Const, places: ops.Rows, make: Make) -> Step:
    """Σ number · a · b as number · Σ a b."""
    arrays = tuple(o for o, at in zip(product.operands, places, strict=True) if at)
    straight = tuple(range(product.rank))
    if any(at and at != straight for at in places) or not 1 <= len(arrays) <= 2:
        return step
    numbers = tuple(o for o in product.operands if not o.rank)
    if len(arrays) == 2:
        found = _contracted(step, (arrays[0], arrays[1]), make)
    else:
        alone = make(step.op, arrays, step.domains, arrays[0].complex)
        found = summed_product(alone, make)
        if found is alone:
            return step
    if coefficient == ONE and not numbers:
        return found
    rows = (*(() for _ in numbers), tuple(range(step.rank)))
    return make(ops.Mul(coefficient, places=rows), (*numbers, found), step.domains, step.complex)


def _of_contraction(step: Step, product: Step, make: Make) -> Step:
    """Σ over an index that a contraction keeps in step in both operands."""
    assert isinstance(step.op, ops.Sum), "over axes"
    left, right, out = product.rows
    gone = {out[axis] for axis in step.op.axes}
    rest = tuple(label for label in out if label not in gone)
    if not gone <= {*left} & {*right}:
        return step
    if rest or {*left} != {*right}:
        return make(ops.Einsum(left, right, rest), product.operands, step.domains, step.complex)
    return make(
        ops.Tensordot(tuple(range(len(left))), tuple(map(right.index, left))), product.operands, (), step.complex
    )


def _contracted(step: Step, pair: tuple[Step, Step], make: Make) -> Step:
    """Σ a b over the axes of a sum."""
    assert isinstance(step.op, ops.Sum), "over axes"
    row = tuple(range(pair[0].rank))
    complex = any(o.complex for o in pair)
    rest = tuple(axis for axis in row if axis not in step.op.axes)
    op = ops.Einsum(row, row, rest) if rest else ops.Tensordot(row, row)
    return make(op, pair, step.domains, complex)
