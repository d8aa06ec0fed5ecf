"""Matrices that several systems are solved with are factorised once.

    x = A⁻¹ b, y = A⁻ᴴ x      F = the factors of A, x and y from F

A matrix, its transpose, its conjugate and its adjoint have the same factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_

from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Step, ordered
from combdiff.terms.types import Domain


def factored(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int]
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps, systems with one matrix solved by its factors.

    >>> n, make = Domain("n"), Builder().step
    >>> A, b = make(ops.Input("A"), (), (n, n)), make(ops.Input("b"), (), (n,))
    >>> x = make(ops.Solve(), (A, b), (n,))
    >>> y = make(ops.Solve(), (make(ops.Permute((1, 0)), (A,), (n, n)), x), (n,))
    >>> (y,), _ = factored((y,), {}, {})
    >>> y.op, y.operands[0].op
    (Solve(adjoint=True), Factors(positive=False, eigen=False))
    """
    steps = ordered(outputs)
    found = {step: _seen_through(step.operands[0]) for step in steps if _is_system(step)}
    matrices = [matrix for matrix, _, _ in found.values()]
    shared = {step: image for step, image in found.items() if matrices.count(image[0]) > 1}
    if not shared:
        return tuple(outputs), dict(names)
    builder = Builder()
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        if step in shared:
            matrix, transposed, conjugated = shared[step]
            new[step] = _solution(builder, step, new[matrix], operands[1], transposed, conjugated)
        else:
            # arguments are known by their steps
            same = all(map(is_, operands, step.operands))
            new[step] = step if same else builder.step(step.op, operands, step.domains, step.complex)
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


def _is_system(step: Step) -> bool:
    """A system with one matrix, whose factors are of the numbers that the solution is of."""
    is_one = isinstance(step.op, ops.Solve) and len(step.operands) == 2 and not step.op.adjoint
    return is_one and step.operands[0].complex == step.complex


def _seen_through(matrix: Step) -> tuple[Step, bool, bool]:
    """What a matrix is the transpose or the conjugate of, and whether it is that."""
    half = matrix.rank // 2
    turn = (*range(half, matrix.rank), *range(half))
    transposed = conjugated = False
    while True:
        match matrix.op:
            case ops.Permute(order) if order == turn:
                transposed = not transposed
            case ops.Conj():
                conjugated = not conjugated
            case _:
                return matrix, transposed, conjugated
        (matrix,) = matrix.operands


def _solution(builder: Builder, step: Step, matrix: Step, k: Step, transposed: bool, conjugated: bool) -> Step:
    """Aᵀ y = k is Aᴴ y' = k', and A' y = k is A y' = k'."""
    factors = builder.step(ops.Factors(), (matrix,), matrix.domains)
    turned = step.complex and transposed != conjugated
    if turned and k.complex:
        k = builder.step(ops.Conj(), (k,), k.domains)
    found = builder.step(ops.Solve(transposed), (factors, k), step.domains, step.complex)
    return builder.step(ops.Conj(), (found,), step.domains) if turned else found
