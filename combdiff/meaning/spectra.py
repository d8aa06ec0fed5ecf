"""Eigenvalues, singular values and triangular factors by the definition, from the Hermitian part of a matrix.

Eigenvectors are found by Jacobi's rotations, which factorise nothing; the singular values of A are the eigenvalues of
the matrix of blocks (0, A; Aᴴ, 0) that are not below 0, and those below 0 are their negatives.
"""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING

import numpy as np

from combdiff.terms.types import Map

if TYPE_CHECKING:
    from collections.abc import Sequence

    from combdiff.meaning.values import Array, Value
    from combdiff.terms.types import Type

SWEEPS = 60
"""So often each pair of rows is turned, at most."""


def spectral_value(name: str, matrix: Array, direction: Array | None, numbers: Sequence[Array]) -> Array:
    """A function of the eigenvalues or of the singular values of a matrix, by its name.

    >>> spectral_value("eigvals", np.array([[2.0, 1.0], [1.0, 2.0]]), None, []).round(12)
    array([1., 3.])
    """
    if not np.isfinite(matrix).all():
        shape = matrix.shape[1:] if name.startswith(("eigvals", "svdvals")) else matrix.shape
        return np.full(shape, np.nan)
    if name in ("svdvals", "svdvals_along", "singular", "singular_along"):
        return _of_blocks(name, matrix, direction, numbers)
    values, vectors = eigenvectors(_hermitian(matrix))
    inner = None if direction is None else vectors.conj().T @ _hermitian(direction) @ vectors
    match name:
        case "eigvals":
            return values
        case "eigvals_along" if inner is not None:
            return np.asarray(np.diag(inner).real)
        case "spectral":
            return np.asarray(vectors @ np.diag(numbers[0].real) @ vectors.conj().T)
        case "spectral_along" if inner is not None:
            divided = _divided(values, numbers[0].real, numbers[1].real)
            return np.asarray(vectors @ (divided * inner) @ vectors.conj().T)
    raise AssertionError(f"no function of eigenvalues is {name}")


def _of_blocks(name: str, matrix: Array, direction: Array | None, numbers: Sequence[Array]) -> Array:
    """The same of (0, A; Aᴴ, 0): numbers of a singular value and of its negative are opposite, their slopes alike."""
    m, n = matrix.shape
    if m < n:
        return np.full(matrix.shape[1:] if name.startswith("svdvals") else matrix.shape, np.nan)
    along = None if direction is None else _blocks(direction)
    if name in ("svdvals", "svdvals_along"):
        of_whole = spectral_value(name.replace("svdvals", "eigvals"), _blocks(matrix), along, [])
        return np.asarray(of_whole[::-1][:n])
    signs = (-1, 1)
    given = [
        np.concatenate([sign * k.real, np.zeros(m - n), k.real[::-1]]) for sign, k in zip(signs, numbers, strict=False)
    ]
    return spectral_value(name.replace("singular", "spectral"), _blocks(matrix), along, given)[:m, m:]


def _blocks(a: Array) -> Array:
    m, n = a.shape
    return np.asarray(np.block([[np.zeros((m, m)), a], [a.conj().T, np.zeros((n, n))]]))


def _hermitian(a: Array) -> Array:
    return np.asarray((a + a.conj().T) / 2)


def _divided(values: Array, numbers: Array, slopes: Array) -> Array:
    """(kᵢ − kⱼ) / (λᵢ − λⱼ), and the slope where two eigenvalues are one, or nan where numbers differ; 0 for i = j."""
    n, size = len(values), abs(values).max(initial=0)
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            apart, by = values[i] - values[j], numbers[i] - numbers[j]
            if i != j and abs(apart) > 1e-13 * size:
                found[i, j] = by / apart
            elif i != j:
                slope = (slopes[i] + slopes[j]) / 2
                found[i, j] = slope if abs(by) <= 1e-6 * abs(numbers[[i, j]]).max() else np.nan
    return found


def eigenvectors(matrix: Array) -> tuple[Array, Array]:
    """The eigenvalues of a Hermitian matrix in ascending order, and eigenvectors, the columns of a unitary matrix.

    >>> eigenvectors(np.diag([2.0, 1.0]))[0]
    array([1., 2.])
    """
    a, n = np.array(matrix), len(matrix)
    vectors = np.eye(n, dtype=a.dtype)
    least = 1e-18 * abs(a).max(initial=0)
    for _ in range(SWEEPS):
        if all(abs(a[p, q]) <= least for p in range(n) for q in range(p)):
            break
        for p in range(n):
            for q in range(p + 1, n):
                if abs(a[p, q]) <= least:
                    continue
                turn = _rotation(a[p, p].real, a[q, q].real, a[p, q])
                a[:, [p, q]] = a[:, [p, q]] @ turn
                a[[p, q]] = turn.conj().T @ a[[p, q]]
                vectors[:, [p, q]] = vectors[:, [p, q]] @ turn
    values = np.diag(a).real
    order = np.argsort(values, kind="stable")
    return np.asarray(values[order]), np.asarray(vectors[:, order])


def _rotation(first: float, second: float, beside: complex) -> Array:
    """What makes a diagonal matrix of (first, beside; beside', second), by the smaller angle."""
    phase, size = beside / abs(beside), abs(beside)
    ratio = (second - first) / (2 * size)
    tangent = (1 if ratio >= 0 else -1) / (abs(ratio) + hypot(1, ratio))
    cosine = 1 / hypot(1, tangent)
    return np.array([[cosine, tangent * cosine], [-tangent * cosine * np.conj(phase), cosine * np.conj(phase)]])


def triangle_along(matrix: Array, direction: Array) -> Array:
    """The derivative of the factor, row by row."""
    a, k, factor = _hermitian(matrix), _hermitian(direction), triangle(matrix)
    found = np.zeros_like(factor + k)
    for i in range(len(a)):
        for j in range(i + 1):
            before = found[i, :j] @ factor[j, :j].conj() + factor[i, :j] @ found[j, :j].conj()
            rest = k[i, j] - before
            if i == j:
                found[i, i] = rest.real / (2 * factor[i, i].real)
            else:
                found[i, j] = (rest - factor[i, j] * found[j, j].conj()) / factor[j, j]
    return found


def triangle_back(matrix: Array, k: Array) -> Array:
    """The adjoint of that derivative: its product with each unit matrix."""
    n, over_complex = len(matrix), np.iscomplexobj(matrix) or np.iscomplexobj(k)
    found = np.zeros((n, n), np.result_type(matrix, k))
    for place in np.ndindex(n, n):
        for unit in (1, 1j) if over_complex else (1,):
            direction = np.zeros((n, n), found.dtype)
            direction[place] = unit
            found[place] += unit * (k.conj() * triangle_along(matrix, direction)).sum().real
    return found


def if_definite(kind: Type, value: Value) -> Value:
    """A value that is not declared to be a definite matrix, or is one; else nan.

    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> if_definite(Map((n, n), REAL, definite=True), np.array([[-1.0]]))
    array([[nan]])
    """
    if not (isinstance(kind, Map) and kind.definite and isinstance(value, np.ndarray)):
        return value
    return value if np.isfinite(triangle(value)).all() else np.full_like(value, np.nan)


def triangle(matrix: Array) -> Array:
    """The lower L with L Lᴴ = A, row by row; nan where the Hermitian part of a matrix is not positive definite.

    >>> triangle(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    a = _hermitian(matrix)
    found = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i + 1):
            rest = a[i, j] - found[i, :j] @ found[j, :j].conj()
            if i == j:
                if not rest.real > 0:
                    return np.full(a.shape, np.nan)
                found[i, i] = rest.real**0.5
            else:
                found[i, j] = rest / found[j, j]
    return found
