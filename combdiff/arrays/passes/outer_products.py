"""Sums of outer products as one product of matrices: Σ_t l_t r_tᵀ is Lᵀ R, the vectors stacked to L and R.

The gradient by a matrix that several rounds use, K in K (K (K x)) or the weights of a recurrent network, is such a sum,
a term for each round. Term by term it takes two passes over the matrix each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.arrays import ops
from combdiff.arrays.plan import Step, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import ONE, Const, times
from combdiff.terms.types import Domain

_FEWEST = 3  # terms: of fewer, the passes that are spared are those that stacking takes
_LARGE = 1 << 14  # entries of the matrix


def stacked(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int], large: int = _LARGE
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps with sums of outer products as products of matrices.

    Terms that something else needs, or that have names, stay as they are.
    """
    steps = ordered(outputs)
    uses = Counter([o for s in steps for o in s.operands] + list(outputs))
    free = {step for step in steps if uses[step] == 1 and step not in names}
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(made.op, ops.Add) and made.rank == 2 and prod(sizes.get(d, 1) for d in made.domains) >= large:
            loose = [n for n, o in enumerate(step.operands) if o in free]
            made = _with_product(made, made.op, loose)
        new[step] = made
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


@dataclass(frozen=True, slots=True)
class _Outer:
    """coefficient · rows(i) · columns(j)."""

    coefficient: Const
    rows: tuple[Step, ...]
    columns: tuple[Step, ...]


def _with_product(total: Step, op: ops.Add, loose: Sequence[int]) -> Step:
    """A sum whose outer products among the terms in `loose` are one product of matrices."""
    found = {
        n: outer for n in loose if (outer := _as_outer(total.operands[n], op.places[n], op.coefficients[n])) is not None
    }
    if len(found) < _FEWEST:
        return total
    rows = _stack([_vector(o.coefficient, o.rows, total.domains[0]) for o in found.values()])
    columns = _stack([_vector(ONE, o.columns, total.domains[1]) for o in found.values()])
    complex = rows.complex or columns.complex
    product = Step(ops.Tensordot((0,), (0,)), (rows, columns), total.domains, complex)
    rest = [n for n in range(len(total.operands)) if n not in found]
    if not rest:
        return product
    places = ((0, 1), *(op.places[n] for n in rest))
    added = ops.Add((ONE, *(op.coefficients[n] for n in rest)), places=places)
    return Step(added, (product, *(total.operands[n] for n in rest)), total.domains, total.complex)


def _as_outer(term: Step, at: ops.Row, coefficient: Const) -> _Outer | None:
    """A term of a sum as an outer product; `at` are the axes of the sum that its own are."""
    factors = _factors(term, at)
    if factors is None:
        return None
    own, vectors = factors
    rows = tuple(v for v, axis in vectors if axis != 1)
    columns = tuple(v for v, axis in vectors if axis == 1)
    if not columns or not any(axis == 0 for _, axis in vectors):
        return None
    return _Outer(times(coefficient, own), rows, columns)


def _factors(term: Step, at: ops.Row) -> tuple[Const, list[tuple[Step, int | None]]] | None:
    """The number before a product of vectors and numbers, and these with the axis of each; None if it is no such."""
    match term.op:
        case ops.Mul(coefficient, places=places):
            found: list[tuple[Step, int | None]] = []
            for factor, own in zip(term.operands, places, strict=True):
                inner = _vector_of(factor, tuple(at[n] for n in own))
                if inner is None:
                    return None
                found.append(inner)
            return coefficient, found
        case _:
            return None


def _vector_of(factor: Step, at: ops.Row) -> tuple[Step, int | None] | None:
    """A vector with its axis, or a number."""
    if len(at) > 1:
        return None
    return factor, at[0] if at else None


def _vector(coefficient: Const, factors: Sequence[Step], domain: Domain) -> Step:
    """The product of vectors over one index, and numbers."""
    if len(factors) == 1 and coefficient == ONE:
        return factors[0]
    places = tuple((0,) if f.rank else () for f in factors)
    complex = bool(coefficient.imag) or any(f.complex for f in factors)
    return Step(ops.Mul(coefficient, places=places), tuple(factors), (domain,), complex)


def _stack(vectors: Sequence[Step]) -> Step:
    """Vectors as the rows of a matrix."""
    count = Domain(f"{len(vectors)} terms", declared=True, lower=0, upper=len(vectors) - 1)
    complex = any(v.complex for v in vectors)
    return Step(ops.Stack(), tuple(vectors), (count, *vectors[0].domains), complex)
