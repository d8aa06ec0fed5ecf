"""Functions of matrices in floating point, on stacks of matrices: the last two axes of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combdiff.meaning.determinants import exponential, value_of
from combdiff.terms.nodes import MATRICES, VECTORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from combdiff.gate.labelled import Array

_SINGULAR = 1e13
"""The condition number from which on the digits of an inverse are rounding, which each spelling does in its own way."""


def matrix_values(name: str, matrices: Array, *along: Array, numbers: Sequence[Array] = ()) -> Array:
    """The values for each matrix of a stack; derivatives are taken along the matrices `along`.

    >>> import numpy as np
    >>> matrix_values("adjugate", np.array([[1.0, 2.0], [2.0, 4.0]])).round(12)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    import numpy as np

    with np.errstate(all="ignore"):
        match name:
            case "det":
                return np.asarray(np.linalg.det(matrices))
            case "logdet":
                sign, logarithm = np.linalg.slogdet(matrices)
                if np.iscomplexobj(matrices):
                    return np.asarray(logarithm + 1j * np.angle(sign))
                return np.where(sign < 0, np.nan, logarithm)
            case "logabsdet":
                return np.asarray(np.linalg.slogdet(matrices)[1])
            case "adjugate":
                return _adjugates(matrices, None)
            case "adjugate_along":
                return _adjugates(matrices, along[0])
            case "inv":
                return _inverses(matrices)
            case "expm" | "expm_along":
                return _exponentials(matrices, *along)
            case _ if name in MATRICES | VECTORS:
                return _each(name, matrices, along, numbers)
    raise AssertionError(f"no function of matrices is {name}")


def _inverses(matrices: Array) -> Array:
    """Inverses; nan for a matrix that is singular but for rounding, as B' B is where B has fewer rows than columns.

    >>> import numpy as np
    >>> _inverses(np.array([[[0.1, 0.3], [0.3, 0.9]], [[1.0, 1.0], [0.0, 1.0]]]))
    array([[[nan, nan],
            [nan, nan]],
    <BLANKLINE>
           [[ 1., -1.],
            [ 0.,  1.]]])
    """
    import numpy as np

    try:
        found = np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        if matrices.ndim == 2:
            return np.full(matrices.shape, np.nan)
        return np.stack([_inverses(each) for each in matrices])
    largest = [abs(m).max(axis=(-2, -1), initial=0, keepdims=True) for m in (matrices, found)]
    return np.where(largest[0] * largest[1] < _SINGULAR, found, np.nan)


def _exponentials(matrices: Array, *along: Array) -> Array:
    """Exponentials, or their derivatives along other matrices: exp of (A, K; 0, A) holds that of A along K.

    All of a stack at once, and without SciPy, which starts threads to solve for each small matrix.

    >>> import numpy as np
    >>> _exponentials(np.zeros((1, 1)), np.array([[2.0]]))
    array([[2.]])
    """
    import numpy as np

    finite = np.isfinite(sum(along, matrices)).all(axis=(-2, -1), keepdims=True)
    n, scale = matrices.shape[-1], np.ones(finite.shape)
    whole = np.where(finite, matrices, 0)
    for k in along:
        size = abs(np.where(finite, k, 0)).sum(axis=(-2, -1), keepdims=True)
        direction = np.where(finite, k, 0) / np.where(size == 0, 1, size)
        beside = np.kron(np.eye(whole.shape[-1] // n if n else 1), direction)
        whole, scale = np.block([[whole, beside], [np.zeros_like(beside), whole]]), scale * size
    return np.where(finite, scale * exponential(whole)[..., :n, whole.shape[-1] - n :], np.nan)


def _each(name: str, matrices: Array, along: Sequence[Array], numbers: Sequence[Array]) -> Array:
    """Roots, eigenvalues, and their derivatives along other matrices, one after the other."""
    import numpy as np

    stack = matrices.reshape(-1, *matrices.shape[-2:])
    beside = [np.broadcast_to(k, matrices.shape).reshape(stack.shape) for k in along]
    counts = [np.broadcast_to(k, (*matrices.shape[:-2], k.shape[-1])).reshape(len(stack), -1) for k in numbers]
    found = [_value(name, a, [k[n] for k in beside], [k[n] for k in counts]) for n, a in enumerate(stack)]
    shape = matrices.shape[:-2] + (matrices.shape[-1:] if name in VECTORS else matrices.shape[-2:])
    return np.reshape(found, shape)


def _value(name: str, a: Array, along: Sequence[Array], numbers: Sequence[Array]) -> Array:
    import numpy as np
    import scipy.linalg

    if not all(np.isfinite(array).all() for array in (a, *along, *numbers)):
        return np.full(a.shape[-1:] if name in VECTORS else a.shape, np.nan)
    match name, along:
        case (("sqrtm" | "sqrtm_along"), _):
            root = scipy.linalg.sqrtm(a)
            if np.iscomplexobj(root) and not np.iscomplexobj(a):
                return np.full(a.shape, np.nan)
            return np.asarray(scipy.linalg.solve_sylvester(root, root, along[0]) if along else root)
        case _:
            return np.asarray(value_of(name, a, *along, numbers=numbers))


def _adjugates(matrices: Array, along: Array | None) -> Array:
    """adj(U σ Vᴴ) = det(U Vᴴ) V adj(σ) Uᴴ, with the products of all other singular values on the diagonal of adj(σ).

    Along E = Uᴴ K V its derivative is −E(i, j) Π σ, and Σ E(j, j) Π σ on the diagonal, over what i and j leave.
    """
    import numpy as np

    # a matrix with an entry that is not finite has no singular values, and LAPACK ends for all of them
    finite = np.isfinite(matrices).all(axis=(-2, -1), keepdims=True)
    U, sigma, Vh = np.linalg.svd(np.where(finite, matrices, 0))
    Uh, V = (np.conj(m).swapaxes(-1, -2) for m in (U, Vh))
    inner = np.zeros(matrices.shape, matrices.dtype if along is None else np.result_type(matrices, along))
    E = None if along is None else Uh @ along @ V
    for i in range(sigma.shape[-1]):
        if E is None:
            inner[..., i, i] = np.delete(sigma, i, axis=-1).prod(axis=-1)
            continue
        for j in range(sigma.shape[-1]):
            if i != j:
                rest = np.delete(sigma, (i, j), axis=-1).prod(axis=-1)
                inner[..., i, j] -= E[..., i, j] * rest
                inner[..., i, i] += E[..., j, j] * rest
    phase = np.linalg.det(U) * np.linalg.det(Vh)
    return np.where(finite, phase[..., None, None] * (V @ inner @ Uh), np.nan)
