"""Lowers products with an inverse to linear solves; a matrix is inverted only where something else needs the inverse.

    y = A⁻¹ b, z = yᵀ A⁻¹      A y = b, Aᵀ z = y

Where entries of the inverse are needed by themselves, in the gradient of log det A, products take what is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_

from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Step, ordered
from combdiff.terms.types import Domain

_TURNED = ops.Permute((1, 0))


def solved(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int]
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps, with systems for products with inverses.

    >>> n, make = Domain("n"), Builder().step
    >>> A, b = make(ops.Input("A"), (), (n, n)), make(ops.Input("b"), (), (n,))
    >>> inverse = make(ops.OfMatrices("inv"), (A,), (n, n))
    >>> (x,), _ = solved((make(ops.Tensordot((1,), (0,)), (inverse, b), (n,)),), {}, {})
    >>> x.op, x.operands == (A, b)
    (Solve(adjoint=False, triangular=False, positive=False, about=''), True)
    """
    steps = ordered(outputs)
    kept = set(filter(None, map(_inverse, outputs)))
    for step in steps:
        if not _is_view(step):
            inverses = [_inverse(o) for o in step.operands]
            single = sum(p is not None for p in inverses) == 1 and _is_product(step)
            kept.update(p for p in inverses if p is not None and not single)
    if not any(_inverse(step) not in (None, *kept) for step in steps):
        return tuple(outputs), dict(names)
    builder = Builder()
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        side = next((n for n, o in enumerate(step.operands) if _inverse(o) not in (None, *kept)), None)
        if side is not None and not _is_view(step):
            new[step] = _solution(builder, step, operands, side)
        elif _is_view(step) and _inverse(step) not in (None, *kept):
            # a view of the inverse is one of the matrix, from which the system is made
            new[step] = builder.step(step.op, operands, operands[0].domains[:: -1 if step.op == _TURNED else 1])
        elif _is_inverse(step) and step not in kept:
            new[step] = operands[0]
        else:
            # arguments are known by their steps
            same = all(map(is_, operands, step.operands))
            new[step] = step if same else builder.step(step.op, operands, step.domains, step.complex)
    return tuple(new[o] for o in outputs), {new[step]: name for step, name in names.items() if step in new}


def _is_view(step: Step) -> bool:
    return step.op == _TURNED or isinstance(step.op, ops.Conj)


def _inverse(step: Step) -> Step | None:
    """The inverse that a step is, or is the transpose or the conjugate of; of a stack of matrices there is none."""
    while _is_view(step):
        (step,) = step.operands
    return step if _is_inverse(step) else None


def _is_inverse(step: Step) -> bool:
    return isinstance(step.op, ops.OfMatrices) and step.op.kind == "inv" and step.rank == 2


def _is_product(step: Step) -> bool:
    return isinstance(step.op, ops.Tensordot) and len(step.op.left) == 1


def _solution(builder: Builder, step: Step, operands: Sequence[Step], side: int) -> Step:
    """The product of an inverse with another array, from the matrix in the place of the inverse."""
    assert isinstance(step.op, ops.Tensordot), "a product over one index"
    matrix, k = operands[side], operands[1 - side]
    inverse = _inverse(step.operands[side])
    assert inverse is not None and isinstance(inverse.op, ops.OfMatrices), "one side is an inverse"
    op = ops.Solve(positive=inverse.op.positive, about=inverse.op.about)
    (axis,), (over,) = step.op.axes[side], step.op.axes[1 - side]
    if axis == 0:
        matrix = builder.step(_TURNED, (matrix,), matrix.domains[::-1])
    order = (over, *(n for n in range(k.rank) if n != over))
    if over:
        k = builder.step(ops.Permute(order), (k,), [k.domains[n] for n in order])
    found = builder.step(op, (matrix, k), (matrix.domains[1], *k.domains[1:]), step.complex)
    if side == 0 or found.rank == 1:
        return found
    # what is left of the other array comes first
    back = (*range(1, found.rank), 0)
    return builder.step(ops.Permute(back), (found,), [found.domains[n] for n in back])
