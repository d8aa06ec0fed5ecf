"""Numbers where they cost least: 4 · (A B) as (4 · A) B, if A is much smaller than the product; 2 (s a) as (2 s) a."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from combdiff.arrays.passes.overwriting import LARGE
from combdiff.arrays.plan import Step, ordered
from combdiff.terms.terms import ONE, Const, mul
from combdiff.terms.types import Domain

_SMALLER = 2  # times: by which what is multiplied is smaller than the product for this to pay
_CONTRACTIONS = frozenset({"tensordot", "batched", "einsum"})


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
        if step.op == "mul" and operands[-1].op in _CONTRACTIONS and operands[-1] in free:
            made = _Scaling(made, free, sizes).result(large)
        if step.op == "add":
            made = _with_scaled_terms(made, free)
        new[step] = made
        free |= {made} if step in free else set()
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


def _with_scaled_terms(total: Step, free: set[Step]) -> Step:
    """A sum whose products hold the numbers before them, so that numbers meet numbers before they meet arrays."""
    spec: Any = total.spec
    coefficients, places = list(spec[0]), spec[1]
    operands = list(total.operands)
    for n, (term, c) in enumerate(zip(operands, coefficients, strict=True)):
        if term.op == "mul" and term in free and term.rank and not c.imag and abs(c.real) != 1:
            inner: Any = term.spec
            size = Const(abs(c.real))
            operands[n] = replace(term, spec=(mul(size, inner[0]), inner[1]))
            coefficients[n] = Const(c.real / size.real)
            free.add(operands[n])
    return replace(total, operands=tuple(operands), spec=(tuple(coefficients), places))


@dataclass
class _Scaling:
    """numbers · contraction, to be made another way; `free` are steps that nothing else needs."""

    product: Step
    free: set[Step]
    sizes: Mapping[Domain, int]

    def result(self, large: int) -> Step:
        """The contraction of something with the numbers on it; the product as it is if that does not pay."""
        *numbers, contraction = self.product.operands
        spec: Any = self.product.spec
        self.coefficient, places = spec
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
        return made if straight else Step("permute", (made,), order, self.product.domains, made.complex)

    def _cost(self, step: Step) -> int:
        """The bytes of what is multiplied where the numbers go into `step`."""
        spec: Any = step.spec
        match step.op if step in self.free else "":
            case "tensordot" | "batched" | "einsum":
                return min(map(self._cost, step.operands))
            case "permute":
                return self._cost(step.operands[0])
            case "mul":
                return 0 if spec[0] != ONE else min(map(self._bytes, step.operands))
            case _:
                return self._bytes(step)

    def _with_numbers(self, step: Step) -> Step:
        """The same, times the numbers, which go where they cost least."""
        spec: Any = step.spec
        match step.op if step in self.free else "":
            case "tensordot" | "batched" | "einsum":
                side = min((0, 1), key=lambda side: self._cost(step.operands[side]))
                step = step if step.operands[side] in self.free else _faced(step, side)
                operands = list(step.operands)
                operands[side] = self._with_numbers(operands[side])
                return replace(step, operands=tuple(operands))
            case "permute":
                return replace(step, operands=(self._with_numbers(step.operands[0]),))
            case "mul":
                places = (*(() for _ in self.numbers), *spec[1])
                return replace(
                    step, operands=(*self.numbers, *step.operands), spec=(mul(spec[0], self.coefficient), places)
                )
            case _:
                places = (*(() for _ in self.numbers), tuple(range(step.rank)))
                made = Step("mul", (*self.numbers, step), (self.coefficient, places), step.domains, step.complex)
                self.free.add(made)
                return made

    def _bytes(self, step: Step) -> int:
        return prod(self.sizes.get(d, 1) for d in step.domains) * (16 if step.complex else 8)


def _faced(contraction: Step, side: int) -> Step:
    """The same product of matrices, with a transpose that is spelled before the number: 2 * A.T @ B."""
    matrix, inner = contraction.operands[side], 1 - side
    spec: Any = contraction.spec
    if contraction.op != "tensordot" or matrix.rank != 2 or len(spec[side]) != 1 or spec[side] == (inner,):
        return contraction
    turned = Step("permute", (matrix,), (1, 0), matrix.domains[::-1], matrix.complex)
    left, right = contraction.operands
    operands = (turned, right) if side == 0 else (left, turned)
    axes = ((inner,), spec[1]) if side == 0 else (spec[0], (inner,))
    return replace(contraction, operands=operands, spec=axes)
