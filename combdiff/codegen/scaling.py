"""Numbers where they cost least: 4 · (A B) as (4 · A) B, if A is much smaller than the product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from combdiff.codegen.overwriting import LARGE
from combdiff.codegen.plan import Step, ordered
from combdiff.language.terms import ONE, Const
from combdiff.language.types import Domain

_SMALLER = 2  # times: by which an operand is smaller than the product for this to pay
_CONTRACTIONS = frozenset({"tensordot", "batched", "einsum"})


def scaled_early(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int], large: int = LARGE
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps after all numbers before large contractions are put on a small operand.

    A contraction that has a name, or that is needed without the number too, stays.
    """
    steps = ordered(outputs)
    uses = Counter([o for s in steps for o in s.operands] + list(outputs))
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        new[step] = step if operands == step.operands else replace(step, operands=operands)
        contraction = new[step].operands[-1] if step.op == "mul" else None
        if contraction is None or step.operands[-1] in names or uses[step.operands[-1]] > 1:
            continue
        if contraction.op in _CONTRACTIONS and _bytes(contraction, sizes) >= large:
            new[step] = _scaled(new[step], contraction, sizes)
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


def _scaled(product: Step, contraction: Step, sizes: Mapping[Domain, int]) -> Step:
    """numbers · contraction with the numbers on the smaller operand; `product` itself if that does not pay."""
    spec: Any = product.spec
    coefficient, places = spec
    numbers = product.operands[:-1]
    if any(o.rank for o in numbers) or len(places[-1]) != product.rank or (coefficient == ONE and not numbers):
        return product
    side = min((0, 1), key=lambda side: _bytes(contraction.operands[side], sizes))
    small = contraction.operands[side]
    if _SMALLER * _bytes(small, sizes) > _bytes(contraction, sizes) or product.complex != contraction.complex:
        return product
    contraction = _faced(contraction, side)
    scaled = _times(coefficient, numbers, contraction.operands[side])
    operands = (scaled, contraction.operands[1]) if side == 0 else (contraction.operands[0], scaled)
    made = replace(contraction, operands=operands)
    order = tuple(sorted(range(product.rank), key=lambda axis: places[-1][axis]))
    in_place = order == tuple(range(product.rank))
    return made if in_place else Step("permute", (made,), order, product.domains, product.complex)


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


def _times(coefficient: Const, numbers: tuple[Step, ...], array: Step) -> Step:
    axes = (*(() for _ in numbers), tuple(range(array.rank)))
    complex = bool(coefficient.imag) or array.complex or any(n.complex for n in numbers)
    return Step("mul", (*numbers, array), (coefficient, axes), array.domains, complex)


def _bytes(step: Step, sizes: Mapping[Domain, int]) -> int:
    return prod(sizes.get(d, 1) for d in step.domains) * (16 if step.complex else 8)
