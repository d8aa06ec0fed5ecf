"""Functions of matrices by the definition: determinants are expanded along rows, and no matrix is factorised.

Roots are iterated for, and exponentials are series; their derivatives along a matrix are read off a matrix of blocks.

A matrix that is larger than is expanded in a moment is left to NumPy.
"""

from __future__ import annotations

from math import ceil, inf, log, log2, nan
from typing import TYPE_CHECKING

import numpy as np

from combdiff.meaning.spectra import spectral_value, triangle, triangle_along, triangle_back
from combdiff.terms.nodes import SPECTRAL, VECTORS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from combdiff.meaning.values import Array, Scalar, Value

EXPANDED = 9
"""Up to so many rows the expansion is written out: 2^n n products."""


def determinant(matrix: Array) -> Scalar:
    """The determinant, by expansion along each row over the sets of columns that the rows above take.

    >>> determinant(np.array([[1.0, 2.0], [3.0, 4.0]])), determinant(np.zeros((0, 0)))
    (-2.0, 1)
    """
    n = len(matrix)
    if n > EXPANDED:
        found: Scalar = np.linalg.det(matrix).item()
        return found
    # by the set of columns that are taken, with the sign of their order
    sums: dict[int, Scalar] = {0: 1}
    for row in matrix.tolist():
        below: dict[int, Scalar] = {}
        for taken, value in sums.items():
            for column, entry in enumerate(row):
                if not taken >> column & 1:
                    sign = -1 if (taken >> column).bit_count() % 2 else 1
                    whole = taken | 1 << column
                    below[whole] = below.get(whole, 0) + sign * entry * value
        sums = below
    (result,) = sums.values()
    return result


def regular_determinant(matrix: Array) -> Scalar:
    """The determinant, and 0 where rounding leaves something else of 0: beside the sum of all products of its terms.

    >>> third = np.array([[0.1, 0.3], [0.1 / 3, 0.1]])
    >>> determinant(third) == 0, regular_determinant(third)
    (False, 0)
    """
    found = determinant(matrix)
    size = abs(matrix).sum(axis=1).prod()
    return 0 if abs(found) <= len(matrix) * np.finfo(float).eps * size else found


def adjugate(matrix: Array) -> Array:
    """The transposed matrix of cofactors.

    >>> adjugate(np.array([[1.0, 2.0], [2.0, 4.0]]))
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    n = len(matrix)
    found = np.empty((n, n), matrix.dtype)
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(matrix, i, axis=0), j, axis=1)
            found[j, i] = (-1) ** (i + j) * determinant(minor)
    return found


def adjugate_along(matrix: Array, direction: Array) -> Array:
    """The derivative of the adjugate, which is a polynomial: each minor with one row of `direction` after the other."""
    n = len(matrix)
    found = np.zeros((n, n), np.result_type(matrix, direction))
    for i in range(n):
        for j in range(n):
            minor, moved = (np.delete(np.delete(m, i, axis=0), j, axis=1) for m in (matrix, direction))
            for row in range(n - 1):
                one = minor.astype(found.dtype)
                one[row] = moved[row]
                found[j, i] += (-1) ** (i + j) * determinant(one)
    return found


def value_of(name: str, matrix: Array, *directions: Array, numbers: Sequence[Array] = ()) -> Value:
    """A function of matrices by its name; with directions, its derivative along them.

    >>> value_of("inv", np.array([[2.0]]))
    array([[0.5]])
    """
    direction = directions[0] if directions else None
    match name:
        case "cholesky":
            return triangle(matrix)
        case "cholesky_along" if direction is not None:
            return triangle_along(matrix, direction)
        case "cholback" if direction is not None:
            return triangle_back(matrix, direction)
        case _ if name in VECTORS | SPECTRAL:
            return spectral_value(name, matrix, direction, numbers)
        case "det":
            return determinant(matrix)
        case "logdet":
            return _logarithm(regular_determinant(matrix))
        case "logabsdet":
            return _logarithm(abs(regular_determinant(matrix)))
        case "adjugate":
            return adjugate(matrix)
        case "adjugate_along" if direction is not None:
            return adjugate_along(matrix, direction)
        case "sqrtm" | "sqrtm_along" | "expm" | "expm_along":
            return _along(_FUNCTIONS[name.removesuffix("_along")], matrix, directions)
        case "inv":
            whole = regular_determinant(matrix)
            inverse = np.asarray(adjugate(matrix) / whole if whole else np.full(matrix.shape, nan), matrix.dtype)
            return inverse
    raise AssertionError(f"no function of matrices is {name}")


def _along(function: Callable[[Array], Array], matrix: Array, directions: Sequence[Array]) -> Array:
    """f(A), and its derivative along K, a part of f of the matrix of blocks (A, K; 0, A), and so on for more."""
    n, whole, scale = len(matrix), matrix, 1.0
    for k in directions:
        size = abs(k).sum() or 1.0
        beside = np.kron(np.eye(len(whole) // n if n else 1), k / size)
        whole, scale = np.block([[whole, beside], [np.zeros(whole.shape), whole]]), scale * size
    found = function(np.asarray(whole))
    return np.asarray(scale * found[:n, len(found) - n :])


def exponential(matrix: Array) -> Array:
    """The sum of all powers over factorials, of a matrix that is halved until it is small, and squared as often.

    Or of a stack of matrices, which are halved equally often.

    >>> exponential(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[1., 1.],
           [0., 1.]])
    """
    halvings = max(0, ceil(log2(max(1e-300, abs(matrix).sum(axis=-2).max(initial=0)))) + 4)
    small: Array = np.asarray(matrix / 2.0**halvings)
    power: Array = np.asarray(np.eye(matrix.shape[-1]) + 0 * small)
    found = power
    # the norm of `small` is 1/16 at most: its 13th power is below rounding
    for n in range(1, 20):
        power = np.asarray(power @ small / n)
        found = np.asarray(found + power)
    for _ in range(halvings):
        found = np.asarray(found @ found)
    return found


def root(matrix: Array) -> Array:
    """The principal root, by Newton's iteration for it and its inverse; nan where there is none.

    >>> root(np.array([[4.0, 0.0], [0.0, 9.0]])).round(12)
    array([[2., 0.],
           [0., 3.]])
    """
    found: Array = matrix
    inverse: Array = np.asarray(np.eye(len(matrix)) + 0 * matrix)
    try:
        for _ in range(60):
            turned = np.linalg.inv(inverse), np.linalg.inv(found)
            found, inverse = np.asarray((found + turned[0]) / 2), np.asarray((inverse + turned[1]) / 2)
    except np.linalg.LinAlgError:
        return np.full(matrix.shape, nan)
    off = abs(found @ found - matrix).max(initial=0)
    return found if off <= 1e-6 * abs(matrix).max(initial=0) else np.full(matrix.shape, nan)


_FUNCTIONS = {"sqrtm": root, "expm": exponential}


def _logarithm(x: Scalar) -> Scalar:
    """log x; of a negative real number nan, of zero −∞."""
    if isinstance(x, complex):
        return np.log(np.complex128(x) + 0).item() if x else complex(-inf)
    return log(x) if x > 0 else -inf if x == 0 else nan
