"""Traversal of matrix expressions: their parts, the same with other parts, all nodes, whether one is real."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from combdiff.notation.matrix.expr import (
    Adjoint,
    AtMost,
    Conjugate,
    Contraction,
    Diag,
    Diagonal,
    Entrywise,
    Function,
    Item,
    KhatriRao,
    Kronecker,
    Leaf,
    MatrixExpr,
    Named,
    Norm,
    Number,
    OfMatrix,
    Power,
    Product,
    Reciprocal,
    Scale,
    Sum,
    Tensor,
    Trace,
    Transpose,
    Unfolding,
    Value,
    Vec,
    entrywise,
    product,
    scaled,
    summed,
)
from combdiff.terms.types import is_complex


def parts(expr: MatrixExpr) -> tuple[MatrixExpr, ...]:
    """What `expr` is made of, from left to right.

    >>> from combdiff.notation.matrix.expr import Pi
    >>> parts(Transpose(Pi()))
    (Pi(),)
    """
    match expr:
        case Sum(items) | Product(items) | Entrywise(items) | Value(_, items, _):
            return items
        case Scale(_, scalars, of):
            return (*scalars, of)
        case (
            Power(left, right, _)
            | Contraction(left, right, _)
            | AtMost(left, right)
            | KhatriRao(left, right)
            | Kronecker(left, right)
        ):
            return left, right
        case Transpose(of) | Adjoint(of) | Conjugate(of) | Diag(of) | Diagonal(of) | Trace(of) | Norm(of) | Vec(of):
            return (of,)
        case Function(_, of) | OfMatrix(_, of) | Item(_, of) | Reciprocal(of):
            return (of,)
        case _:
            return ()


def rebuilt(expr: MatrixExpr, new: Sequence[MatrixExpr]) -> MatrixExpr:
    """`expr` with `new` for its parts; sums and products stay flat.

    >>> from combdiff.notation.matrix.expr import Pi
    >>> from combdiff.terms.terms import ONE
    >>> rebuilt(Trace(Pi()), [Number(ONE)])
    Trace(of=Number(value=Const(real=Fraction(1, 1), imag=Fraction(0, 1))))
    """
    match expr:
        case Sum():
            return summed(new)
        case Product():
            return product(new)
        case Entrywise():
            return entrywise(new)
        case Scale(coefficient):
            return scaled(coefficient, new[:-1], new[-1])
        case Value(function, _, by_entry):
            return Value(function, tuple(new), by_entry)
        case _:
            return _of_two(expr, *new) if len(new) == 2 else _of_one(expr, *new) if new else expr


def _of_two(expr: MatrixExpr, left: MatrixExpr, right: MatrixExpr) -> MatrixExpr:
    match expr:
        case Power(_, _, by_entry):
            return Power(left, right, by_entry)
        case Contraction(_, _, slots):
            return Contraction(left, right, slots)
        case AtMost() | KhatriRao() | Kronecker():
            return type(expr)(left, right)
        case _:
            raise AssertionError(f"{type(expr).__name__} has not two parts")


def _of_one(expr: MatrixExpr, of: MatrixExpr) -> MatrixExpr:
    match expr:
        case Function(name):
            return Function(name, of)
        case OfMatrix(name):
            return OfMatrix(name, of)
        case Item(item):
            return Item(item, of)
        case Transpose() | Adjoint() | Conjugate() | Diag() | Diagonal() | Trace() | Norm() | Vec() | Reciprocal():
            return type(expr)(of)
        case _:
            raise AssertionError(f"{type(expr).__name__} has not one part")


def replaced(expr: MatrixExpr, old: MatrixExpr, new: MatrixExpr) -> MatrixExpr:
    """`expr` with `new` wherever `old` stands.

    >>> from combdiff.notation.matrix.expr import Pi
    >>> replaced(Trace(Pi()), Pi(), Transpose(Pi()))
    Trace(of=Transpose(of=Pi()))
    """
    return new if expr == old else rebuilt(expr, [replaced(part, old, new) for part in parts(expr)])


def nodes(expr: MatrixExpr) -> Iterator[MatrixExpr]:
    """`expr` and all that it is made of.

    >>> from combdiff.notation.matrix.expr import Pi
    >>> [type(node).__name__ for node in nodes(Trace(Pi()))]
    ['Trace', 'Pi']
    """
    yield expr
    for part in parts(expr):
        yield from nodes(part)


def is_real(expr: MatrixExpr) -> bool:
    """Whether all that `expr` is made of is real.

    >>> from combdiff.notation.matrix.expr import Pi
    >>> is_real(Pi())
    True
    """
    match expr:
        case Leaf(var) | Tensor(var) | Unfolding(var):
            return not is_complex(var.kind)
        case Number(value):
            return not value.imag
        case Named(_, value):
            return not is_complex(value.type)
        case Value(function):
            return not is_complex(function.type)
        case Function("abs" | "abs2" | "real" | "imag") | Norm():
            return True
        case Scale(coefficient) if coefficient.imag:
            return False
        case _:
            return all(is_real(part) for part in parts(expr))
