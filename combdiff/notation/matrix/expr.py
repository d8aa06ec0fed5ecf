"""Expressions of linear algebra: what `matrix_form` turns a term into (paper, section 6.1: Eq. 47–49).

A vector is a column, a number is a matrix of one entry, so that `Product` is always the product of matrices. The nodes
say nothing of how they are written; `matrix_text` prints them.
"""

from __future__ import annotations

from collections.abc import Iterable

from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE, ZERO, Const, Term, Var, mul, number
from combdiff.terms.types import Domain


@dataclass(frozen=True, slots=True)
class Leaf:
    """A variable: a number, a vector or a matrix."""

    var: Var


@dataclass(frozen=True, slots=True)
class Number:
    value: Const


@dataclass(frozen=True, slots=True)
class Pi:
    """The number π."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many values an index of a domain has whose size has a name."""

    domain: Domain


@dataclass(frozen=True, slots=True)
class Ones:
    """The vector of ones."""

    domain: Domain


@dataclass(frozen=True, slots=True)
class Identity:
    """The unit matrix."""

    domain: Domain


@dataclass(frozen=True, slots=True)
class Sum:
    items: tuple[MatrixExpr, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers in front: `coefficient` · scalars · of."""

    coefficient: Const
    scalars: tuple[MatrixExpr, ...]
    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Product:
    items: tuple[MatrixExpr, ...]


@dataclass(frozen=True, slots=True)
class Entrywise:
    """The product entry by entry."""

    items: tuple[MatrixExpr, ...]


@dataclass(frozen=True, slots=True)
class Transpose:
    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Adjoint:
    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Conjugate:
    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Diag:
    """The diagonal matrix of a vector."""

    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Diagonal:
    """The vector on the diagonal of a matrix."""

    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Trace:
    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function, entry by entry."""

    name: str
    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class OfMatrix:
    """A function of a whole matrix: its determinant, the logarithm of that, its adjugate."""

    name: str
    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Norm:
    """The Euclidean norm of a vector, the Frobenius norm of a matrix."""

    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Reciprocal:
    """1/c of a number c ≥ 0, and 0 where c is 0."""

    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class AtMost:
    """One where left ≤ right, else zero, entry by entry (each side a number or of one shape)."""

    left: MatrixExpr
    right: MatrixExpr


@dataclass(frozen=True, slots=True)
class Tensor:
    """A variable of three or four slots: (a₁, …) ↦ T(a_π(1), …) with `order` = (π(1), …), slots counted from 1."""

    var: Var
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contraction:
    """Σ over the last one or two `slots` of a tensor: (T : A)(p, q) = Σ_rs T(p, q, r, s) A(r, s), T · x with one."""

    tensor: MatrixExpr
    of: MatrixExpr
    slots: int


@dataclass(frozen=True, slots=True)
class Unfolding:
    """The matrix of a tensor of three slots: rows are slot `mode` (from 1), columns the pairs of the others."""

    var: Var
    mode: int


@dataclass(frozen=True, slots=True)
class KhatriRao:
    """Columns by columns: (A ⊙ B)(ij, n) = A(i, n) B(j, n), pairs in row-major order."""

    left: MatrixExpr
    right: MatrixExpr


@dataclass(frozen=True, slots=True)
class Kronecker:
    """(A ⊗ B)(ik, jl) = A(i, j) B(k, l), pairs in row-major order."""

    left: MatrixExpr
    right: MatrixExpr


@dataclass(frozen=True, slots=True)
class Vec:
    """The entries of a matrix as a vector, in row-major order."""

    of: MatrixExpr


@dataclass(frozen=True, slots=True)
class Named:
    """What has no matrix form, under a name of its own: `value` is written beside the formula, in index form."""

    var: Var
    value: Term


@dataclass(frozen=True, slots=True)
class Power:
    """base ^ exponent: entry by entry if `entrywise`, otherwise of a number or, with a whole exponent, of a matrix."""

    base: MatrixExpr
    exponent: MatrixExpr
    entrywise: bool


@dataclass(frozen=True, slots=True)
class Value:
    """A value of an unknown map, or of its derivative: `function` is a variable, or `Diff` of one.

    `entrywise`: the map is of numbers and is applied to each entry.
    """

    function: Term
    args: tuple[MatrixExpr, ...]
    entrywise: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """Item number `item` (from 0) of a tuple of values."""

    item: int
    of: MatrixExpr


MatrixExpr = (
    Leaf
    | Number
    | Pi
    | Size
    | Ones
    | Identity
    | Sum
    | Scale
    | Product
    | Entrywise
    | Transpose
    | Adjoint
    | Conjugate
    | Diag
    | Diagonal
    | Trace
    | Norm
    | OfMatrix
    | Reciprocal
    | AtMost
    | Tensor
    | Contraction
    | Unfolding
    | KhatriRao
    | Kronecker
    | Vec
    | Named
    | Function
    | Power
    | Value
    | Item
)


def summed(items: Iterable[MatrixExpr]) -> MatrixExpr:
    """The sum, flat."""
    flat: list[MatrixExpr] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Sum) else (item,))
    return flat[0] if len(flat) == 1 else Sum(tuple(flat))


def product(items: Iterable[MatrixExpr]) -> MatrixExpr:
    """The product of matrices, flat."""
    flat: list[MatrixExpr] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Product) else (item,))
    return flat[0] if len(flat) == 1 else Product(tuple(flat))


def entrywise(items: Iterable[MatrixExpr]) -> MatrixExpr:
    """The product entry by entry: flat, equal items gathered into powers."""
    counts: dict[MatrixExpr, int] = {}
    for item in items:
        for part in item.items if isinstance(item, Entrywise) else (item,):
            match part:
                case Power(base, Number(exponent), True) if exponent.is_integer:
                    counts[base] = counts.get(base, 0) + int(exponent.real)
                case _:
                    counts[part] = counts.get(part, 0) + 1
    powers = [base if n == 1 else Power(base, Number(number(n)), entrywise=True) for base, n in counts.items()]
    return powers[0] if len(powers) == 1 else Entrywise(tuple(powers))


def scaled(coefficient: Const, scalars: Iterable[MatrixExpr], of: MatrixExpr | None) -> MatrixExpr:
    """coefficient · scalars · of; `of` is None for a plain number."""
    front: list[MatrixExpr] = []
    for scalar in (*scalars, *(() if of is None else (of,))):
        if isinstance(scalar, Scale):
            coefficient = _product_of(coefficient, scalar.coefficient)
            front += [*scalar.scalars, scalar.of]
        elif isinstance(scalar, Number):
            coefficient = _product_of(coefficient, scalar.value)
        else:
            front.append(scalar)
    if coefficient == ZERO or not front:
        return Number(coefficient)
    if coefficient == ONE and len(front) == 1:
        return front[0]
    return Scale(coefficient, tuple(front[:-1]), front[-1])


def inverse(of: MatrixExpr) -> MatrixExpr:
    """The inverse of a matrix."""
    return Power(of, Number(MINUS_ONE), entrywise=False)


def raised(of: MatrixExpr, n: int) -> MatrixExpr:
    """A number or a square matrix to a power, not entry by entry."""
    return of if n == 1 else Power(of, Number(number(n)), entrywise=False)


def _product_of(a: Const, b: Const) -> Const:
    result = mul(a, b)
    assert isinstance(result, Const), "numbers multiply to a number"
    return result
