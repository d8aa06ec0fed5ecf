"""Functions that take the place of those in `numpy.py` for all other libraries.

These libraries have no LAPACK under SciPy's names, and the values of their arrays may be unknown (traced or lazy).
Where NumPy's function raises an error because of a value, the result is nan.
"""

import numpy as np

from solvers.numpy import lu_solution


def euclidean_norm(x):
    """√Σ|x|² along the last axis, divided by the largest entry first: squares overflow or vanish."""
    sizes = abs(x)
    if not x.shape[-1]:
        return sizes.sum(-1)
    largest = sizes.max(-1, keepdims=True)
    largest = np.where((largest > 0) & (largest < np.inf), largest, 1)
    return largest[..., 0] * np.sqrt(((sizes / largest) ** 2).sum(-1))


def cumulative_logsumexp(x, axis):
    """log Σ exp(x) up to each entry along an axis: with each step twice as many are added."""
    x, step = np.moveaxis(x, axis, 0), 1
    while step < len(x):
        x = np.concatenate([x[:step], np.logaddexp(x[step:], x[:-step])])
        step *= 2
    return np.moveaxis(x, 0, axis)


def cumulative_maximum(x, axis):
    """The largest up to each entry along an axis: with each step of twice as many."""
    x, step = np.moveaxis(x, axis, 0), 1
    while step < len(x):
        x = np.concatenate([x[:step], np.maximum(x[step:], x[:-step])])
        step *= 2
    return np.moveaxis(x, 0, axis)


def cumulative_minimum(x, axis):
    """The least up to each entry along an axis."""
    return -cumulative_maximum(-x, axis)


def shares_of_cumulative_ties(x, axis):
    """The share of each entry, in the first of two last axes, in the maximum of x up to each of them, in the second."""
    rows = np.moveaxis(x, axis, -1)
    tied = np.triu(rows[..., :, None] == cumulative_maximum(rows, rows.ndim - 1)[..., None, :])
    return tied / tied.sum(-2).clip(1)[..., None, :]


def sums_of_cumulative_ties(weight, x, axis):
    """The sum of weights from each entry on, times the share of the entry in the maximum of x up to each of them."""
    found = (shares_of_cumulative_ties(x, axis) * np.moveaxis(weight, axis, -1)[..., None, :]).sum(-1)
    return np.moveaxis(found, -1, axis)


def means_of_cumulative_ties(values, x, axis):
    """The mean, up to each entry, of the values of those that are the maximum of x up to there."""
    found = (shares_of_cumulative_ties(x, axis) * np.moveaxis(values, axis, -1)[..., :, None]).sum(-2)
    return np.moveaxis(found, -1, axis)


def cumulative_exponentials(weight, x, level, axis):
    """exp(level) Σ weight · exp(x) up to each entry along an axis, where the exponentials alone may overflow."""
    above, below = (
        cumulative_logsumexp(np.where(part > 0, x + np.log(np.where(part > 0, part, 1)), -np.inf), axis)
        for part in (weight, -weight)
    )
    return np.exp(level + above) - np.exp(level + below)


def powers(x, n):
    """1, x, x², … along a new first axis of n values: with each product there are twice as many."""
    found, square = np.ones_like(x)[None], x
    while len(found) < n:
        found = np.concatenate([found, found * square])
        square = square * square
    return found[:n]


def inverted(equation, inverse, y, name):
    """The x that an inverse gives for y; nan where equation(x), the residual and its slope, does not hold."""
    x = np.asarray(inverse(y) + 0 * y)
    residual, slopes = equation(x)
    wrong = ~(abs(residual) <= np.finfo(x.dtype).eps ** 0.5 * (1 + abs(x)) * abs(slopes))
    return np.where(wrong, np.nan, x)


def lu_inv(factors):
    """The inverse of a matrix, from its LU factors."""
    matrix, _ = factors
    n = len(matrix)
    return lu_solution(factors, np.eye(n, dtype=matrix.dtype))


def cholesky(matrix, name):
    """The lower factor of a Hermitian matrix."""
    return np.linalg.cholesky(matrix)


def cholesky_solution(factor, k):
    """The solution of a system with a positive matrix."""
    from scipy.linalg import solve_triangular

    y = solve_triangular(factor, k, 0, lower=True, check_finite=False)
    return solve_triangular(factor, y, 2, lower=True, check_finite=False)


def cholesky_inv(matrix):
    """The inverse of a positive matrix, from Cholesky's factor."""
    n = len(matrix)
    return cholesky_solution(matrix, np.eye(n, dtype=matrix.dtype))


def sqrtm(matrix):
    """The principal root of a matrix; nan where a real one has none that is real."""
    n = matrix.shape[-1]
    unit = np.eye(n, dtype=matrix.dtype)
    root = rest = matrix
    for step in range(24):
        inverse = np.linalg.inv(rest)
        scale = np.exp(-np.linalg.slogdet(rest)[1] / max(n, 1))[..., None, None] if step < 8 else 1.0
        root = root @ (unit * scale**0.5 + inverse / scale**0.5) / 2
        rest = (unit + (rest * scale + inverse / scale) / 2) / 2
    off = abs(root @ root - matrix).sum((-2, -1))[..., None, None]
    return np.where(off <= 1e-6 * abs(matrix).sum((-2, -1))[..., None, None], root, np.nan)


def sqrtm_along(matrix, direction):
    """The X with S X + X S = K, for the root S of a matrix and a direction K."""
    n = matrix.shape[-1]
    # it is linear in the direction, which is made small: a large one costs digits
    size = abs(direction).sum((-2, -1))[..., None, None]
    size = size + (size == 0)
    upper = np.concatenate([matrix, direction / size], -1)
    lower = np.concatenate([np.zeros_like(matrix), matrix], -1)
    return size * sqrtm(np.concatenate([upper, lower], -2))[..., :n, n:]


def without_equal(k, wrong, name):
    """The numbers k; nan where they are wrong, since the values that they belong to are equal."""
    return np.where(wrong, np.nan, k)
