"""Numbers where they cost least: 4 · (A B) as (4 · A) B, if A is much smaller than the product; 2 (s a) as (2 s) a."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.arrays import ops
from combdiff.arrays.passes.overwriting import LARGE
from combdiff.arrays.plan import Step, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import ONE, Const, times
from combdiff.terms.types import Domain

_SMALLER = 2  # times: by which what is multiplied is smaller than the product for this to pay


def scaled_early(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int], large: int = LARGE
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps after the numbers before large contractions are put on what is small.

    A contraction that has a name, or that is needed without the number too, stays.
    """
    steps = ordered(outputs)
    uses = Counter([o for s in steps for o in s.operands] + list(outputs))
    free = {step for step in steps if step.operands and uses[step] == 1 and step not in names}
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(made.op, ops.Mul) and isinstance(operands[-1].op, ops.Contraction) and operands[-1] in free:
            made = _Scaling(made, made.op, free, sizes).result(large)
        if isinstance(made.op, ops.Mul) and len(operands) == 1 and operands[0] in free:
            made = _joined(made, made.op)
        if isinstance(made.op, ops.Add):
            made = _with_scaled_terms(made, made.op, free)
        new[step] = made
        free |= {made} if step in free else set()
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


def _joined(product: Step, op: ops.Mul) -> Step:
    """4 · (a · s) as 4 · a · s, where the number meets the smallest factor."""
    (inner,) = product.operands
    if not isinstance(inner.op, ops.Mul):
        return product
    places = tuple(tuple(op.places[0][axis] for axis in own) for own in inner.op.places)
    joined = ops.Mul(times(op.coefficient, inner.op.coefficient), places=places)
    return replace(product, op=joined, operands=inner.operands)


def _with_scaled_terms(total: Step, op: ops.Add, free: set[Step]) -> Step:
    """A sum whose products hold the numbers before them, so that numbers meet numbers before they meet arrays."""
    coefficients, operands = list(op.coefficients), list(total.operands)
    for n, (term, c) in enumerate(zip(operands, coefficients, strict=True)):
        if isinstance(term.op, ops.Mul) and term in free and term.rank and not c.imag and abs(c.real) != 1:
            size = Const(abs(c.real))
            operands[n] = replace(term, op=replace(term.op, coefficient=times(size, term.op.coefficient)))
            coefficients[n] = Const(c.real / size.real)
            free.add(operands[n])
    return replace(total, operands=tuple(operands), op=replace(op, coefficients=tuple(coefficients)))


@dataclass
class _Scaling:
    """numbers · contraction, to be made another way; `free` are steps that nothing else needs."""

    product: Step
    op: ops.Mul
    free: set[Step]
    sizes: Mapping[Domain, int]

    def result(self, large: int) -> Step:
        """The contraction of something with the numbers on it; the product as it is if that does not pay."""
        *numbers, contraction = self.product.operands
        self.coefficient, places = self.op.coefficient, self.op.places
        self.numbers = tuple(numbers)
        complex = self.coefficient.imag or any(o.complex for o in numbers)
        spread = any(o.rank for o in numbers) or len(places[-1]) != self.product.rank
        if complex or spread or self._bytes(contraction) < large:
            return self.product
        if (self.coefficient == ONE and not numbers) or _SMALLER * self._cost(contraction) > self._bytes(contraction):
            return self.product
        made = self._with_numbers(contraction)
        order = tuple(sorted(range(made.rank), key=lambda axis: places[-1][axis]))
        straight = order == tuple(range(made.rank))
        return made if straight else Step(ops.Permute(order), (made,), self.product.domains, made.complex)

    def _cost(self, step: Step) -> int:
        """The bytes of what is multiplied where the numbers go into `step`."""
        match step.op if step in self.free else None:
            case ops.Contraction():
                return min(map(self._cost, step.operands))
            case ops.Permute():
                return self._cost(step.operands[0])
            case ops.Mul(coefficient):
                return 0 if coefficient != ONE else min(map(self._bytes, step.operands))
            case _:
                return self._bytes(step)

    def _with_numbers(self, step: Step) -> Step:
        """The same, times the numbers, which go where they cost least."""
        match step.op if step in self.free else None:
            case ops.Contraction():
                side = min((0, 1), key=lambda side: self._cost(step.operands[side]))
                step = step if step.operands[side] in self.free else _faced(step, side)
                operands = list(step.operands)
                operands[side] = self._with_numbers(operands[side])
                return replace(step, operands=tuple(operands))
            case ops.Permute():
                return replace(step, operands=(self._with_numbers(step.operands[0]),))
            case ops.Mul(coefficient) as op:
                places = (*(() for _ in self.numbers), *op.places)
                scaled = ops.Mul(times(coefficient, self.coefficient), places=places)
                return replace(step, operands=(*self.numbers, *step.operands), op=scaled)
            case _:
                places = (*(() for _ in self.numbers), tuple(range(step.rank)))
                scaled = ops.Mul(self.coefficient, places=places)
                made = Step(scaled, (*self.numbers, step), step.domains, step.complex)
                self.free.add(made)
                return made

    def _bytes(self, step: Step) -> int:
        return prod(self.sizes.get(d, 1) for d in step.domains) * (16 if step.complex else 8)


def _faced(contraction: Step, side: int) -> Step:
    """The same product of matrices, with a transpose that is spelled before the number: 2 * A.T @ B."""
    matrix, inner = contraction.operands[side], 1 - side
    if not isinstance(contraction.op, ops.Tensordot) or matrix.rank != 2:
        return contraction
    axes = [*contraction.op.axes]
    if len(axes[side]) != 1 or axes[side] == (inner,):
        return contraction
    turned = Step(ops.Permute((1, 0)), (matrix,), matrix.domains[::-1], matrix.complex)
    left, right = contraction.operands
    operands = (turned, right) if side == 0 else (left, turned)
    axes[side] = (inner,)
    return replace(contraction, operands=operands, op=ops.Tensordot(*axes))
