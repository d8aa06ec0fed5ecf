"""What a matrix expression means, in NumPy and node by node: the interpreter that matrix forms are held against.

Everything is a matrix: vectors are columns, numbers 1 × 1; a tensor of four slots has pairs of slots for its rows and
columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import numpy.typing as npt

from combdiff.meaning.evaluate import evaluate
from combdiff.notation.matrix.expr import (
    Adjoint,
    AtMost,
    Conjugate,
    Contraction,
    Diag,
    Diagonal,
    Entrywise,
    Function,
    Identity,
    Item,
    KhatriRao,
    Kronecker,
    Leaf,
    MatrixExpr,
    Named,
    Norm,
    Number,
    OfMatrix,
    Ones,
    Pi,
    Power,
    Product,
    Reciprocal,
    Scale,
    Size,
    Sum,
    Tensor,
    Trace,
    Transpose,
    Unfolding,
    Value,
    Vec,
)
from combdiff.terms.terms import Const, Term
from combdiff.terms.types import Domain

Array = npt.NDArray[np.complex128]
NUMPY = {"abs2": lambda v: np.abs(v) ** 2, "atan": np.arctan, "real": np.real, "imag": np.imag}
NUMPY |= {"sigmoid": lambda v: 1 / (1 + np.exp(-v))}


def as_matrix(array: npt.ArrayLike) -> Array:
    """Numbers and vectors as columns; four slots as two pairs."""
    array = np.asarray(array)
    match array.ndim:
        case 0 | 1:
            return array.reshape(-1, 1)
        case 4:
            return array.reshape(array.shape[0] * array.shape[1], -1)
        case _:
            return array


def number(value: Const) -> complex:
    return complex(float(value.real), float(value.imag))


def of_slots(expr: MatrixExpr, values: Mapping[Term, object]) -> Array:
    """A tensor with all its axes."""
    match expr:
        case Conjugate(of):
            return of_slots(of, values).conj()
        case Sum(items):
            return sum(of_slots(item, values) for item in items)
        case Scale(coefficient, (), of):
            return number(coefficient) * of_slots(of, values)
        case Tensor(var, order):
            array = np.asarray(values[var])
            result = np.zeros([array.shape[order.index(n + 1)] for n in range(len(order))], dtype=array.dtype)
            for at in np.ndindex(*result.shape):
                result[at] = array[tuple(at[slot - 1] for slot in order)]
            return result
        case _:
            raise AssertionError(type(expr).__name__)


def meaning(expr: MatrixExpr, values: Mapping[Term, object], sizes: Mapping[Domain, int]) -> Array:
    """`expr` as a matrix, one case a node."""
    match expr:
        case Leaf(var):
            return as_matrix(values[var])
        case Number(value):
            return as_matrix(number(value))
        case Pi():
            return as_matrix(np.pi)
        case Size(domain):
            return as_matrix(sizes[domain])
        case Ones(domain):
            return np.ones((sizes[domain], 1))
        case Identity(domain):
            return np.eye(sizes[domain])
        case Sum() | Scale() | Product() | Entrywise():
            return of_arithmetic(expr, values, sizes)
        case Transpose(of) | Adjoint(of) | Conjugate(of) | Diag(of) | Diagonal(of):
            return rearranged(expr, meaning(of, values, sizes))
        case Trace(of) | Reciprocal(of) | OfMatrix(_, of) | Norm(of):
            return as_matrix(of_whole_matrix(expr, meaning(of, values, sizes)))
        case AtMost() | Function() | Power() | Value() | Item():
            return of_functions(expr, values, sizes)
        case _:
            return of_tensors(expr, values, sizes)


def of_arithmetic(expr: MatrixExpr, values: Mapping[Term, object], sizes: Mapping[Domain, int]) -> Array:
    """Sums and products of matrices, which must fit."""

    def of(e: MatrixExpr) -> Array:
        return meaning(e, values, sizes)

    match expr:
        case Sum(items):
            terms = [of(e) for e in items]
            assert len({term.shape for term in terms}) == 1
            return sum(terms[1:], terms[0])
        case Scale(coefficient, scalars, inner):
            result = number(coefficient) * of(inner)
            for scalar in scalars:
                assert of(scalar).shape == (1, 1)
                result = of(scalar)[0, 0] * result
            return result
        case Product(items):
            return reduce(np.matmul, map(of, items))
        case Entrywise(items):
            result = of(items[0])
            for e in items[1:]:
                assert of(e).shape == result.shape
                result = result * of(e)
            return result
        case _:
            raise AssertionError(type(expr).__name__)


def rearranged(expr: MatrixExpr, of: Array) -> Array:
    """The entries of one matrix at other places, conjugated or not."""
    match expr:
        case Transpose():
            return of.T
        case Adjoint():
            return of.T.conj()
        case Conjugate():
            return of.conj()
        case Diag():
            assert of.shape[1] == 1
            return np.diag(of[:, 0])
        case Diagonal():
            assert of.shape[0] == of.shape[1]
            return np.diagonal(of).reshape(-1, 1)
        case _:
            raise AssertionError(type(expr).__name__)


def of_whole_matrix(expr: MatrixExpr, of: Array) -> npt.ArrayLike:
    """What all entries of a matrix have a share in: its trace, its norm, its inverse, its determinant."""
    match expr:
        case Trace():
            assert of.shape[0] == of.shape[1]
            return np.trace(of)
        case Norm():
            return np.sqrt(np.sum(np.abs(of) ** 2))
        case Reciprocal():
            return np.linalg.pinv(of)
        case OfMatrix("adjugate"):
            return np.linalg.det(of) * np.linalg.inv(of)
        case OfMatrix(name):
            sign, logarithm = np.linalg.slogdet(of)
            return sign * np.exp(logarithm) if name == "det" else logarithm + np.log(sign)
        case _:
            raise AssertionError(type(expr).__name__)


def of_functions(expr: MatrixExpr, values: Mapping[Term, object], sizes: Mapping[Domain, int]) -> Array:
    """What is a function of other matrices, entry by entry or as a whole."""

    def of(e: MatrixExpr) -> Array:
        return meaning(e, values, sizes)

    match expr:
        case AtMost(left, right):
            return np.where(of(left).real <= of(right).real, 1.0, 0.0)
        case Function("softmax", inner):
            # of a vector over its entries, of a matrix over each row
            found = np.exp(of(inner))
            return found / found.sum(axis=0 if is_vector(inner) else 1, keepdims=True)
        case Function("logsumexp", inner):
            return as_matrix(np.log(np.sum(np.exp(of(inner)))))
        case Function(name, inner):
            return (NUMPY.get(name) or getattr(np, name))(of(inner))
        case Power(base, exponent, True):
            return of(base) ** of(exponent)[0, 0]
        case Power(base, exponent, False):
            if of(base).shape == (1, 1):
                return of(base) ** of(exponent)[0, 0]
            return np.linalg.matrix_power(of(base), int(of(exponent)[0, 0].real))
        case Value(function, args, True):
            return np.vectorize(values[function])(*(of(e).real for e in args))
        case Value():
            return as_matrix(whole(expr, values, sizes))
        case Item(item, Value() as value):
            return as_matrix(whole(value, values, sizes)[item])
        case _:
            raise AssertionError(type(expr).__name__)


def is_vector(expr: MatrixExpr) -> bool:
    """Whether it has one index: a matrix of one column has two."""
    match expr:
        case Leaf(var) | Named(var):
            return len(getattr(var.kind, "params", ())) == 1
        case Ones() | Diagonal() | Vec():
            return True
        case Sum(items) | Entrywise(items):
            return any(map(is_vector, items))
        case Product(items):
            return is_vector(items[-1])
        case Scale(_, _, of) | Conjugate(of) | Function(_, of) | Power(of, _, True):
            return is_vector(of)
        case Value(_, args, True):
            return any(map(is_vector, args))
        case _:
            return False


def whole(value: Value, values: Mapping[Term, object], sizes: Mapping[Domain, int]) -> object:
    """A value of a map of vectors and numbers, perhaps a tuple."""
    args = (meaning(e, values, sizes).real for e in value.args)
    return values[value.function](*(a.item() if a.size == 1 else a[:, 0] for a in args))


def of_tensors(expr: MatrixExpr, values: Mapping[Term, object], sizes: Mapping[Domain, int]) -> Array:
    """What is made of more than two slots, and what stands under a name."""

    def of(e: MatrixExpr) -> Array:
        return meaning(e, values, sizes)

    match expr:
        case Tensor():
            return as_matrix(of_slots(expr, values))
        case Contraction(tensor, inner, slots):
            array = of_slots(tensor, values)
            assert of(inner).shape == (*array.shape[-slots:], 1)[:2]
            return as_matrix(np.tensordot(array, of(inner).reshape(array.shape[-slots:]), slots))
        case Unfolding(var, mode):
            array = np.moveaxis(np.asarray(values[var]), mode - 1, 0)
            return array.reshape(array.shape[0], -1)
        case KhatriRao(left, right):
            return np.array([np.outer(a, b).ravel() for a, b in zip(of(left).T, of(right).T, strict=True)]).T
        case Kronecker(left, right):
            return np.kron(of(left), of(right))
        case Vec(inner):
            return of(inner).reshape(-1, 1)
        case Named(_, value):
            return as_matrix(evaluate(value, values, sizes))
        case _:
            raise AssertionError(type(expr).__name__)
