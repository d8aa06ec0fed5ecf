"""Sums of products of whole arrays as contractions, where no mask stands between the sum and the product any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from combdiff.arrays import ops
from combdiff.arrays.numbers import exponent_of
from combdiff.arrays.plan import Step
from combdiff.terms.terms import ONE, Const
from combdiff.terms.types import Domain

Make: TypeAlias = Callable[[ops.Op, tuple[Step, ...], Sequence[Domain], bool], Step]


def summed_product(step: Step, make: Make) -> Step:
    """A sum over axes, as the contraction of what a product is made of where it is one of two arrays.

    >>> from combdiff.arrays.plan import Builder
    >>> from combdiff.terms.terms import TWO
    >>> builder, n = Builder(), Domain("n")
    >>> x, two = builder.step(ops.Input("x"), (), (n,), False), builder.step(ops.Constant(TWO), (), (), False)
    >>> square = builder.step(ops.Power(places=((0,), ())), (x, two), (n,))
    >>> summed_product(builder.step(ops.Sum((0,)), (square,), ()), builder.step).op
    Tensordot(left=(0,), right=(0,))
    """
    (product,) = step.operands
    straight = tuple(range(product.rank))
    match product.op:
        case ops.Power(places=places) if exponent_of(product.operands[1]) == 2 and places[0] == straight:
            base = product.operands[0]
            return _contracted(step, (base, base), make)
        case ops.Call("abs2") if product.operands[0].complex:
            base = product.operands[0]
            conjugate = make(ops.Conj(), (base,), base.domains, True)
            found = _contracted(step, (conjugate, base), make)
            rows = (tuple(range(step.rank)),)
            return make(ops.Call("real", places=rows), (found,), step.domains, False)
        case ops.Mul(coefficient, places=places):
            return _of_factors(step, product, coefficient, places, make)
        case _:
            return step


def _of_factors(step: Step, product: Step, coefficient: Const, places: ops.Rows, make: Make) -> Step:
    """Σ number · a · b as number · Σ a b."""
    arrays = [o for o, at in zip(product.operands, places, strict=True) if at]
    straight = tuple(range(product.rank))
    if any(at and at != straight for at in places) or not 1 <= len(arrays) <= 2:
        return step
    numbers = tuple(o for o in product.operands if not o.rank)
    inner = make(step.op, tuple(arrays), step.domains, arrays[0].complex) if len(arrays) == 1 else None
    found = _contracted(step, (arrays[0], arrays[1]), make) if inner is None else summed_product(inner, make)
    if coefficient == ONE and not numbers:
        return found
    rows = (*(() for _ in numbers), tuple(range(step.rank)))
    return make(ops.Mul(coefficient, places=rows), (*numbers, found), step.domains, step.complex)


def _contracted(step: Step, pair: tuple[Step, Step], make: Make) -> Step:
    """Σ a b over the axes of a sum."""
    assert isinstance(step.op, ops.Sum), "over axes"
    row = tuple(range(pair[0].rank))
    complex = any(o.complex for o in pair)
    rest = tuple(axis for axis in row if axis not in step.op.axes)
    op = ops.Einsum(row, row, rest) if rest else ops.Tensordot(row, row)
    return make(op, pair, step.domains, complex)
