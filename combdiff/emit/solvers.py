"""The solvers that emitted source brings along, as text: it stands alone, so that each is written into it once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count

from combdiff.arrays import ops
from combdiff.arrays.plan import Argument, Recurrence, Root, Scan, Step
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.names import words
from combdiff.emit.texts import Text, Writer
from combdiff.errors import Mention, UnsupportedError
from combdiff.language.printing.document import ATOM, MAP
from combdiff.terms.nodes import OBLONG
from combdiff.terms.types import Index

NEWTON = '''def newton(equation, x, steps=60):
    """The x at which the residual is 0; equation(x) is the residual and its Jacobian matrix."""
    n = np.size(x)
    for _ in range(steps):
        residual, slopes = equation(x)
        step = np.linalg.solve(np.reshape(slopes, (n, n)), np.ravel(residual)).reshape(np.shape(x))
        share = 1.0
        while share > 1e-6 and np.linalg.norm(equation(x - share * step)[0]) > np.linalg.norm(residual):
            share /= 2
        x = x - share * step
        if np.linalg.norm(step) <= 1e-12 * max(1.0, np.linalg.norm(x)):
            return x
    raise ArithmeticError("Newton's method finds no root from its start")'''

NEWTON_OF_ENTRIES = '''def newton_of_entries(equation, x, steps=60):
    """The x at which the residual is 0; equation(x) is the residual and its slope, of each entry by its own x."""
    for _ in range(steps):
        residual, slopes = equation(x)
        step = residual / slopes
        moves = ~(abs(step) <= 1e-12 * (1 + abs(x)))
        share = 0 * abs(step) + 1
        while (worse := moves & (share > 1e-6) & (abs(equation(x - share * step)[0]) > abs(residual))).any():
            share = np.where(worse, share / 2, share)
        x = x - share * step
        if not moves.any():
            return x
    raise ArithmeticError("Newton's method finds no root from its start")'''

NEWTON_OF_PARTS = '''def newton_of_parts(equation, x, steps=60):
    """The complex x at which the residual is 0; equation(x) is it, and its pullback of units and of i times units."""
    n = np.size(x)
    for _ in range(steps):
        residual, of_one, of_i = equation(x)
        columns = [np.reshape(part, (n, n)) for part in (of_one, of_i)]
        slopes = np.block([[part.real for part in columns], [part.imag for part in columns]]).T
        step = np.linalg.solve(slopes, np.concatenate([np.ravel(residual).real, np.ravel(residual).imag]))
        step = (step[:n] + 1j * step[n:]).reshape(np.shape(x))
        share = 1.0
        while share > 1e-6 and np.linalg.norm(equation(x - share * step)[0]) > np.linalg.norm(residual):
            share /= 2
        x = x - share * step
        if np.linalg.norm(step) <= 1e-12 * max(1.0, np.linalg.norm(x)):
            return x
    raise ArithmeticError("Newton's method finds no root from its start")'''

INVERTED = '''def inverted(equation, inverse, y, name):
    """The x that an inverse gives for y; an error where equation(x), the residual and its slope, does not hold."""
    x = np.asarray(inverse(y) + 0 * y)
    residual, slopes = equation(x)
    wrong = ~(abs(residual) <= np.finfo(x.dtype).eps ** 0.5 * (1 + abs(x)) * abs(slopes))
    if wrong.any():
        raise ArithmeticError(f"{name} gives {x[wrong][0]:.6g} for {np.asarray(y)[wrong][0]:.6g}, which is no solution")
    return x'''

SOLVE_OF_PARTS = '''def solve_of_parts(of_one, of_i, k):
    """The y with H(y) = k, for an H linear over the reals with these values on units and on i times units."""
    n = np.size(k)
    columns = [np.reshape(part, (n, n)) for part in (of_one, of_i)]
    matrix = np.block([[part.real for part in columns], [part.imag for part in columns]])
    y = np.linalg.solve(matrix, np.concatenate([np.ravel(k).real, np.ravel(k).imag]))
    return (y[:n] + 1j * y[n:]).reshape(np.shape(k))'''

LU_FACTORS = '''def lu_factors(matrix):
    """The LU factors of a matrix, which several systems are solved with."""
    from scipy.linalg.lapack import get_lapack_funcs

    if not len(matrix):
        # which LAPACK refuses
        return matrix, np.arange(0)
    (factorised,) = get_lapack_funcs(["getrf"], [matrix])
    lu, pivots, zero = factorised(matrix)
    if zero > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return lu, pivots'''

LU_SOLUTION = '''def lu_solution(factors, k, adjoint=False):
    """The solution of a system, or of the one of the adjoint matrix."""
    from scipy.linalg import lu_solve

    return lu_solve(factors, k, 2 * adjoint, check_finite=False)'''

CHOLESKY_SOLUTION = '''def cholesky_solution(factor, k):
    """The solution of a system with a positive matrix."""
    from scipy.linalg.lapack import get_lapack_funcs

    if not len(factor):
        return k
    (solved,) = get_lapack_funcs(["potrs"], [factor, k])
    # LAPACK reads columns, and so the conjugates of factor and matrix
    return solved(factor.T, k.conj())[0].conj()'''

# where there is no LAPACK
_TRIANGULAR_CHOLESKY_SOLUTION = '''def cholesky_solution(factor, k):
    """The solution of a system with a positive matrix."""
    from scipy.linalg import solve_triangular

    y = solve_triangular(factor, k, 0, lower=True, check_finite=False)
    return solve_triangular(factor, y, 2, lower=True, check_finite=False)'''

LU_INV = '''def lu_inv(factors):
    """The inverse of a matrix, from its LU factors."""
    from scipy.linalg.lapack import get_lapack_funcs

    lu, pivots = factors
    if not len(lu):
        return lu
    (inverted,) = get_lapack_funcs(["getri"], [lu])
    return inverted(lu, pivots, 64 * len(lu))[0]'''

LU_SIGN = '''def lu_sign(factors):
    """The determinant of a matrix divided by its absolute value, from its LU factors."""
    lu, pivots = factors
    diagonal = np.diagonal(lu)
    swapped = (pivots != np.arange(len(pivots))).sum()
    return (diagonal / abs(diagonal)).prod() * (1 - 2 * (swapped % 2))'''

LU_LOGABSDET = '''def lu_logabsdet(factors):
    """The logarithm of the absolute value of the determinant, from LU factors."""
    return np.log(abs(np.diagonal(factors[0]))).sum()'''

LU_LOGDET = '''def lu_logdet(factors):
    """The logarithm of the determinant, from LU factors; of a real one below 0 it is nan."""
    return np.log(lu_sign(factors)) + lu_logabsdet(factors)'''

LU_DET = '''def lu_det(factors):
    """The determinant, from LU factors."""
    lu, pivots = factors
    swapped = (pivots != np.arange(len(pivots))).sum()
    return np.diagonal(lu).prod() * (1 - 2 * (swapped % 2))'''

CHOLESKY_INV = '''def cholesky_inv(factor):
    """The inverse of a positive matrix, from Cholesky's factor."""
    from scipy.linalg.lapack import get_lapack_funcs

    if not len(factor):
        return factor
    (inverted,) = get_lapack_funcs(["potri"], [factor])
    # the inverse from its diagonal on, and zeros, which the factor has above its own
    half = inverted(factor.T)[0].T
    whole = half + half.conj().T
    whole.flat[:: len(half) + 1] = half.diagonal()
    return whole'''

# where there is no SciPy
_SOLVED_LU_INV = '''def lu_inv(factors):
    """The inverse of a matrix, from its LU factors."""
    matrix, _ = factors
    n = len(matrix)
    return lu_solution(factors, np.eye(n, dtype=matrix.dtype))'''

_SOLVED_CHOLESKY_INV = '''def cholesky_inv(matrix):
    """The inverse of a positive matrix, from Cholesky's factor."""
    n = len(matrix)
    return cholesky_solution(matrix, np.eye(n, dtype=matrix.dtype))'''

CHOLESKY_LOGDET = '''def cholesky_logdet(factor):
    """The logarithm of the determinant of a positive matrix, from Cholesky's factor."""
    return 2 * np.log(np.diagonal(factor)).sum()'''

CHOLESKY_LOGABSDET = '''def cholesky_logabsdet(factor):
    """The logarithm of the determinant of a positive matrix, from Cholesky's factor."""
    return 2 * np.log(abs(np.diagonal(factor))).sum()'''

CHOLESKY_DET = '''def cholesky_det(factor):
    """The determinant of a positive matrix, from Cholesky's factor."""
    return (np.diagonal(factor) ** 2).prod()'''

LOGDET = '''def logdet(matrix):
    """The logarithm of the determinant; of a real one below 0 it is nan."""
    sign, logarithm = np.linalg.slogdet(matrix)
    return np.log(sign) + logarithm'''

ADJUGATE = '''def adjugate(matrix):
    """det(A) inv(A), from singular values: what is singular has one, too."""
    u, values, vh = np.linalg.svd(matrix)
    same = np.eye(matrix.shape[-1]) > 0
    others = np.where(same, 1.0, values[..., None, :]).prod(-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return phase[..., None, None] * ((vh.conj().swapaxes(-1, -2) * others[..., None, :]) @ u.conj().swapaxes(-1, -2))'''

ADJUGATE_ALONG = '''def adjugate_along(matrix, direction):
    """The derivative of the adjugate at a matrix along another one."""
    u, values, vh = np.linalg.svd(matrix)
    left, right = u.conj().swapaxes(-1, -2), vh.conj().swapaxes(-1, -2)
    moved = left @ direction @ right
    unit = np.eye(matrix.shape[-1])
    # the products of all singular values but two
    rest = (1 - unit) * np.where((unit[:, None] + unit) > 0, 1.0, values[..., None, None, :]).prod(-1)
    traces = (rest * (moved * unit).sum(-1)[..., None, :]).sum(-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return phase[..., None, None] * (right @ (traces[..., None] * unit - rest * moved) @ left)'''

SQRTM = '''def sqrtm(matrix):
    """The principal root of a matrix; nan where a real one has none that is real."""
    from scipy.linalg import sqrtm

    if not matrix.size:
        return matrix
    root = np.reshape([sqrtm(each) for each in matrix.reshape(-1, *matrix.shape[-2:])], matrix.shape)
    if np.iscomplexobj(matrix) or not np.iscomplexobj(root):
        return root
    rounding = 1e-6 * np.abs(root).max((-2, -1), keepdims=True)
    return np.where(np.abs(root.imag).max((-2, -1), keepdims=True) <= rounding, root.real, np.nan)'''

# where there is no SciPy: the iteration of Denman and Beavers (Higham, Functions of Matrices, 2008, Section 6.5)
_ITERATED_SQRTM = '''def sqrtm(matrix):
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
    return np.where(off <= 1e-6 * abs(matrix).sum((-2, -1))[..., None, None], root, np.nan)'''

SQRTM_ALONG = '''def sqrtm_along(matrix, direction):
    """The X with S X + X S = K, for the root S of a matrix and a direction K."""
    from scipy.linalg import solve_sylvester

    if not matrix.size:
        return matrix
    shape = np.broadcast_shapes(matrix.shape, direction.shape)
    stacks = (np.broadcast_to(each, shape).reshape(-1, *shape[-2:]) for each in (sqrtm(matrix), direction))
    return np.reshape([solve_sylvester(root, root, each) for root, each in zip(*stacks)], shape)'''

_EIGEN = """    values, vectors = eigen
    # an eigenvalue that is all rounding may lie below 0
    noise = 1e-15 * abs(values).sum(-1)[..., None]
    roots = np.sqrt(np.where(abs(values) <= noise, 0 * values, values).astype(vectors.dtype))
    adjoint = vectors.conj().swapaxes(-1, -2)
"""

HERMITIAN_SQRTM = (
    '''def hermitian_sqrtm(eigen):
    """The principal root of a Hermitian matrix with these eigenvectors; nan where a real one has none that is real."""
'''
    + _EIGEN
    + """    return (vectors * roots[..., None, :]) @ adjoint"""
)

HERMITIAN_SQRTM_ALONG = (
    '''def hermitian_sqrtm_along(eigen, direction):
    """The X with S X + X S = K, for the root S of a Hermitian matrix and a direction K."""
'''
    + _EIGEN
    + """    inner = (adjoint @ direction @ vectors) / (roots[..., None] + roots[..., None, :])
    return vectors @ inner @ adjoint"""
)

EXPM = '''def expm(matrix):
    """The exponential of a matrix."""
    from scipy.linalg import expm

    return expm(matrix)'''

_ALONG = """    n = matrix.shape[-1]
    # it is linear in the direction, which is made small: a large one costs digits
    size = abs(direction).sum((-2, -1))[..., None, None]
    size = size + (size == 0)
    upper = np.concatenate([matrix, direction / size], -1)
    lower = np.concatenate([np.zeros_like(matrix), matrix], -1)
    return size * {}(np.concatenate([upper, lower], -2))[..., :n, n:]"""

EXPM_ALONG = '''def expm_along(matrix, *directions):
    """The derivative of the exponential at a matrix along others: a block of the exponential of blocks."""
    n, scale, whole = matrix.shape[-1], 1.0, matrix
    for direction in directions:
        # it is linear in the direction, which is made small: a large one costs digits
        size = abs(direction).sum((-2, -1))[..., None, None]
        size = size + (size == 0)
        beside, scale = direction / size, scale * size
        while beside.shape[-1] < whole.shape[-1]:
            beside = blocks(beside, np.zeros_like(beside))
        whole = blocks(whole, beside)
    return scale * expm(whole)[..., :n, -n:]'''

BLOCKS = '''def blocks(matrix, direction):
    """The matrix of blocks (A, K; 0, A)."""
    upper = np.concatenate([matrix + 0 * direction, direction + 0 * matrix], -1)
    lower = np.concatenate([np.zeros_like(upper[..., : matrix.shape[-1]]), upper[..., : matrix.shape[-1]]], -1)
    return np.concatenate([upper, lower], -2)'''

WITHOUT_SCIPY = {
    SQRTM: _ITERATED_SQRTM,
    SQRTM_ALONG: SQRTM_ALONG.partition("    from")[0] + _ALONG.format("sqrtm"),
    LU_INV: _SOLVED_LU_INV,
    CHOLESKY_SOLUTION: _TRIANGULAR_CHOLESKY_SOLUTION,
    CHOLESKY_INV: _SOLVED_CHOLESKY_INV,
}
"""Other texts of solvers, for libraries that have nothing like SciPy's functions."""

CHOLESKY = '''def cholesky(matrix, name):
    """The lower factor of a Hermitian matrix; one that is not positive definite is named."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError as problem:
        raise np.linalg.LinAlgError(f"{name} is not positive definite") from problem'''

# where a matrix that is not positive definite gives nan
_TRACED_CHOLESKY = '''def cholesky(matrix, name):
    """The lower factor of a Hermitian matrix."""
    return np.linalg.cholesky(matrix)'''

TRIANGULAR_SOLUTION = '''def triangular_solution(factor, k, adjoint=False):
    """The solution of a system with a lower triangular matrix, or with its adjoint."""
    if factor.ndim > 2:
        return np.linalg.solve(factor.conj().swapaxes(-1, -2) if adjoint else factor, k)
    from scipy.linalg import solve_triangular

    return solve_triangular(factor, k, 2 * adjoint, lower=True, check_finite=False)'''

CHOLESKY_ALONG = '''def cholesky_along(factor, direction):
    """The derivative of the factor of a Hermitian matrix along another matrix."""
    half = triangular_solution(factor, (direction + direction.conj().swapaxes(-1, -2)) / 2)
    inner = triangular_solution(factor, half.conj().swapaxes(-1, -2))
    return factor @ ((np.tril(inner) + np.tril(inner, -1)) / 2)'''

CHOLBACK = '''def cholback(factor, k):
    """The adjoint of the derivative of the factor of a Hermitian matrix."""
    inner = factor.conj().swapaxes(-1, -2) @ k
    inner = (np.tril(inner) + np.tril(inner, -1)) / 2
    half = triangular_solution(factor, (inner + inner.conj().swapaxes(-1, -2)) / 2, adjoint=True)
    return triangular_solution(factor, half.conj().swapaxes(-1, -2), adjoint=True)'''

SVD = '''def svd(matrix):
    """The singular values of a matrix, one for each column, between the singular vectors."""
    if matrix.shape[-2] < matrix.shape[-1]:
        raise ValueError("svdvals of a matrix that has fewer rows than columns")
    return np.linalg.svd(matrix, full_matrices=False)'''

EIGVALS_ALONG = '''def eigvals_along(eigen, direction, single=True):
    """The derivatives of the eigenvalues of a Hermitian matrix; those that are equal have none if they stand alone."""
    values, vectors = eigen
    inner = vectors.conj().swapaxes(-1, -2) @ (direction @ vectors)
    return rates(values, inner, "eigenvalues") if single else np.diagonal(inner, 0, -2, -1).real'''

SVDVALS_ALONG = '''def svdvals_along(factors, direction, single=True):
    """The derivatives of singular values; if they stand alone, 0 where values are 0, and none where they are equal."""
    u, values, vh = factors
    inner = u.conj().swapaxes(-1, -2) @ (direction @ vh.conj().swapaxes(-1, -2))
    if not single:
        return np.diagonal(inner, 0, -2, -1).real
    none = values <= 4 * np.finfo(values.dtype).eps * values.sum(-1)[..., None]
    return np.where(none, 0.0, rates(values, np.where(none[..., None], 0.0, inner), "singular values"))'''

RATES = '''def rates(values, inner, name):
    """The derivatives of values; nan where values are equal, unless they all move alike."""
    apart = abs(values[..., None] - values[..., None, :])
    equal = apart <= 4 * np.finfo(values.dtype).eps * abs(values).sum(-1)[..., None, None] * values.shape[-1]
    found = np.diagonal(inner, 0, -2, -1).real
    mixed = abs(inner + inner.conj().swapaxes(-1, -2)) * (apart * 0 + 1 - np.eye(values.shape[-1], dtype=values.dtype))
    differ = mixed / 2 + abs(found[..., None] - found[..., None, :]) > 1e-6 * abs(inner).sum((-2, -1))[..., None, None]
    return without_equal(found, (equal & differ).any(-1), name)'''

WITHOUT_EQUAL = '''def without_equal(k, wrong, name):
    """The numbers k; nan where they are wrong, since the values that they belong to are equal."""
    if wrong.any():
        import warnings

        places = [n for n in range(k.shape[-1]) if wrong[..., n].any()]
        warnings.warn(f"the {name} {places} are equal: a derivative by one of them is nan", RuntimeWarning)
    return np.where(wrong, np.nan, k)'''

DIFFERENTIABLE = '''def differentiable(values, k, slopes, name):
    """The numbers k that belong to values; nan where values are equal, and their numbers are not, but for rounding."""
    eps = np.finfo(values.dtype).eps
    apart = abs(values[..., None] - values[..., None, :])
    level, size, steep = (np.maximum(abs(x)[..., None], abs(x)[..., None, :]) for x in (values, k, slopes))
    near = 4 * eps * abs(values).sum(-1)[..., None, None] * values.shape[-1]
    equal = apart <= near
    # numbers of values that are nearly 0 may differ as much as these do
    share = 1e-6 + 10 * apart / (level + (level == 0))
    noise = 4 * eps * abs(k).sum(-1)[..., None, None] + 10 * steep * near
    differ = abs(k[..., None] - k[..., None, :]) > np.where(share < 0.5, share, 0.5) * size + noise
    return without_equal(k, (equal & differ).any(-1), name)'''

SPECTRAL = '''def spectral(eigen, k, slopes=None, single=True):
    """The matrix with these eigenvectors and the eigenvalues k, which equal eigenvalues share if they stand alone."""
    values, vectors = eigen
    k = differentiable(values, k, 0 * k if slopes is None else slopes, "eigenvalues") if single else k
    return (vectors * k[..., None, :]) @ vectors.conj().swapaxes(-1, -2)'''

SINGULAR = '''def singular(factors, k, slopes=None, single=True):
    """The matrix with these singular vectors and the singular values k; if they stand alone, 0 where values are 0."""
    u, values, vh = factors
    if single:
        none = values <= 4 * np.finfo(values.dtype).eps * values.sum(-1)[..., None]
        k = np.where(none, 0.0, differentiable(values, k, 0 * k if slopes is None else slopes, "singular values"))
    return (u * k[..., None, :]) @ vh'''

DIVIDED = '''def divided(x, y, k, l, s, t):
    """(k - l) / (x - y), or the mean of the slopes s and t where it is no worse; nan where k and l differ at x = y."""
    apart, by = x[..., None] - y[..., None, :], k[..., None] - l[..., None, :]
    slope = (s[..., None] + t[..., None, :]) / 2
    size, rest = abs(k)[..., None] + abs(l)[..., None, :], abs(by - apart * slope)
    eps = np.finfo(x.dtype).eps
    close = rest <= 4 * eps * size
    equal = abs(apart) <= 4 * eps * abs(x).sum(-1)[..., None, None] * x.shape[-1]
    found = np.where(close, slope, by / np.where(apart == 0, 1.0, apart))
    alike = rest <= 1e-6 * size + 4 * eps * abs(k).sum(-1)[..., None, None]
    return np.where(equal, np.where(alike, slope, np.nan), found)'''

SPECTRAL_ALONG = '''def spectral_along(eigen, direction, k, slopes):
    """The derivative of the matrix with the eigenvectors of another one and the eigenvalues k, by their slopes."""
    values, vectors = eigen
    n, adjoint = values.shape[-1], vectors.conj().swapaxes(-1, -2)
    inner = adjoint @ direction @ vectors
    inner = (inner + inner.conj().swapaxes(-1, -2)) / 2
    rates = divided(values, values, k, k, slopes, slopes)
    return vectors @ (np.where(np.eye(n, dtype=values.dtype) > 0, 0.0, rates) * inner) @ adjoint'''

SINGULAR_ALONG = '''def singular_along(factors, direction, k, slopes):
    """The derivative of the matrix with the singular vectors of another one and the singular values k."""
    u, values, vh = factors
    n, left, right = values.shape[-1], u.conj().swapaxes(-1, -2), vh.conj().swapaxes(-1, -2)
    moved = direction @ right
    inner = left @ moved
    turned = inner.conj().swapaxes(-1, -2)
    minus = divided(values, values, k, k, slopes, slopes)
    plus = divided(values, -values, k, -k, slopes, slopes)
    minus = np.where(np.eye(n, dtype=values.dtype) > 0, 0.0, minus)
    found = u @ ((minus * (inner + turned) + plus * (inner - turned)) / 2)
    if u.shape[-2] > n:
        found = found + (moved - u @ inner) * np.diagonal(plus, 0, -2, -1)[..., None, :]
    return found @ vh'''

EUCLIDEAN_NORM = '''def euclidean_norm(x):
    """√Σ|x|² along the last axis, divided by the largest entry first where squares overflow or vanish."""
    with np.errstate(all="ignore"):
        found = np.sqrt(np.vecdot(x, x).real)
        far = ~((found > 1e8 * np.finfo(found.dtype).tiny ** 0.5) & (found < np.inf))
        if not far.any():
            return found
        sizes = abs(x[far])
        largest = sizes.max(-1, keepdims=True, initial=0)
        largest = np.where((largest > 0) & (largest < np.inf), largest, 1)
        found = np.asarray(found)
        found[far] = largest[..., 0] * np.sqrt(((sizes / largest) ** 2).sum(-1))
    return found[()]'''

# where no value is waited for
_TRACED_NORM = '''def euclidean_norm(x):
    """√Σ|x|² along the last axis, divided by the largest entry first: squares overflow or vanish."""
    sizes = abs(x)
    if not x.shape[-1]:
        return sizes.sum(-1)
    largest = sizes.max(-1, keepdims=True)
    largest = np.where((largest > 0) & (largest < np.inf), largest, 1)
    return largest[..., 0] * np.sqrt(((sizes / largest) ** 2).sum(-1))'''

POWERS = '''def powers(x, n):
    """1, x, x², … along a new first axis of n values: with each product there are twice as many."""
    found = np.ones((n, *x.shape), np.result_type(x, float))
    found[1:2] = x
    made = 2
    while made < n:
        more = min(made, n - made)
        np.multiply(found[:more], found[made - 1] * x, out=found[made : made + more])
        made += more
    return found'''

# where nothing is written in place
_JOINED_POWERS = '''def powers(x, n):
    """1, x, x², … along a new first axis of n values: with each product there are twice as many."""
    found, square = np.ones_like(x)[None], x
    while len(found) < n:
        found = np.concatenate([found, found * square])
        square = square * square
    return found[:n]'''

SCAN = '''def scan(step, states, sequences, stored, length, reverse=False):
    """The states after all steps of a loop, and what each step stores, of these shapes and types."""
    count = len(states)
    stored = [np.empty(shape, dtype=kind) for shape, kind in stored]
    for t in reversed(range(length)) if reverse else range(length):
        found = step(*states, *(x[t] for x in sequences))
        states = found[:count]
        for whole, part in zip(stored, found[count:]):
            whole[t] = part
    return (*states, *stored)'''

WATCH_STATES = '''def watch_states(names, states, before, where):
    """Raise an error for an entry of a state that is nan or infinite after a step, and was not so before it."""
    for name, state, old in zip(names, states, before):
        nan = (np.isnan(state) & ~np.isnan(old)).any()
        if nan or (np.isinf(state) & ~np.isinf(old)).any():
            found = "nan" if nan else "infinite"
            raise FloatingPointError(f"the state {name} becomes {found} in step {where}")'''

WATCH_FIRST = '''def watch_first(names, states, where):
    """Raise an error for a first state with an entry that is nan; one that is infinite may be meant."""
    for name, state in zip(names, states):
        if np.isnan(state).any():
            raise FloatingPointError(f"the state {name} is nan before the first step{where}")'''

WATCHED_SCAN = '''def watched_scan(names, step, states, sequences, stored, length, reverse=False):
    """`scan`, and an error if an entry of a state becomes nan or infinite; loops inside of others tell those."""
    from functools import partial
    from threading import get_ident

    from jax import core, debug, tree_util

    inside, around = [], watched_scan.__dict__.setdefault(get_ident(), [])
    first = [np.isnan(state).any() for state in states]

    def watched(*given):
        around.append([])
        try:
            found = step(*given)
        finally:
            inside[:] = around.pop()
        wrong = []
        for old, new in zip(given, found[: len(states)]):
            nan, infinite = ((f(new) & ~f(old)).any() for f in (np.isnan, np.isinf))
            wrong.append(np.where(nan, 2, np.where(infinite, 1, 0)))
        return (*found, (wrong, [flags for _, flags in inside]))

    *results, (wrong, within) = scan(watched, states, sequences, stored, length, reverse)
    labels, flags = (names, reverse, [label for label, _ in inside]), (first, wrong, within)
    if around:
        around[-1].append((labels, flags))
    elif any(isinstance(flag, core.Tracer) for flag in tree_util.tree_leaves(flags)):
        debug.callback(partial(report_states, labels), flags)
    else:
        report_states(labels, flags)
    return results'''

REPORT_STATES = '''def report_states(labels, flags, where=""):
    """Raise an error for the first step in which a state becomes nan (2) or infinite (1), as the flags say."""
    from jax import tree_util

    if not any(np.any(flag) for flag in tree_util.tree_leaves(flags)):
        return
    (names, reverse, inside), (first, wrong, within) = labels, flags
    for name, flag in zip(names, first):
        if flag:
            raise FloatingPointError(f"the state {name} is nan before the first step{where}")
    own = f" of its loop{', which runs backwards' if reverse else ''}{where}"
    for t in sorted(range(len(wrong[0])), reverse=reverse):
        for label, part in zip(inside, within):
            outer = f", inside step {t} of the loop of {' and '.join(names)}{where}"
            report_states(label, tree_util.tree_map(lambda flag: flag[t], part), outer)
        for name, flag in zip(names, wrong):
            if flag[t]:
                found = "nan" if flag[t] == 2 else "infinite"
                raise FloatingPointError(f"the state {name} becomes {found} in step {t}{own}")'''

ADDED_AT = '''def added_at(shape, places, values):
    """Zeros, to which values are added at places, index arrays of NumPy: a task for all of them."""
    from dask import delayed

    def added(values):
        whole = np.zeros(shape, values.dtype)
        np.add.at(whole, places, values)
        return whole

    return da.from_delayed(delayed(added)(values), shape, values.dtype)'''

_WARNING = WITHOUT_EQUAL[WITHOUT_EQUAL.index("    if wrong.any") : WITHOUT_EQUAL.index("    return np.where(wrong")]

WITHOUT_VALUES = {
    INVERTED: INVERTED[: INVERTED.index("    if wrong")] + "    return np.where(wrong, np.nan, x)",
    EUCLIDEAN_NORM: _TRACED_NORM,
    POWERS: _JOINED_POWERS,
    CHOLESKY: _TRACED_CHOLESKY,
    WITHOUT_EQUAL: WITHOUT_EQUAL.replace(_WARNING, ""),
}
"""Other texts of solvers, for libraries whose values are not asked for."""

SOLVERS = {
    "euclidean_norm": EUCLIDEAN_NORM,
    "powers": POWERS,
    "added_at": ADDED_AT,
    "newton": NEWTON,
    "newton_of_entries": NEWTON_OF_ENTRIES,
    "newton_of_parts": NEWTON_OF_PARTS,
    "inverted": INVERTED,
    "solve_of_parts": SOLVE_OF_PARTS,
    "lu_factors": LU_FACTORS,
    "lu_solution": LU_SOLUTION,
    "cholesky_solution": CHOLESKY_SOLUTION,
    "lu_inv": LU_INV,
    "lu_sign": LU_SIGN,
    "lu_det": LU_DET,
    "lu_logabsdet": LU_LOGABSDET,
    "lu_logdet": LU_LOGDET,
    "cholesky_inv": CHOLESKY_INV,
    "cholesky_det": CHOLESKY_DET,
    "cholesky_logabsdet": CHOLESKY_LOGABSDET,
    "cholesky_logdet": CHOLESKY_LOGDET,
    "logdet": LOGDET,
    "adjugate": ADJUGATE,
    "adjugate_along": ADJUGATE_ALONG,
    "sqrtm": SQRTM,
    "sqrtm_along": SQRTM_ALONG,
    "hermitian_sqrtm": HERMITIAN_SQRTM,
    "hermitian_sqrtm_along": HERMITIAN_SQRTM_ALONG,
    "expm": EXPM,
    "blocks": BLOCKS,
    "expm_along": EXPM_ALONG,
    "cholesky": CHOLESKY,
    "triangular_solution": TRIANGULAR_SOLUTION,
    "cholesky_along": CHOLESKY_ALONG,
    "cholback": CHOLBACK,
    "svd": SVD,
    "without_equal": WITHOUT_EQUAL,
    "rates": RATES,
    "eigvals_along": EIGVALS_ALONG,
    "svdvals_along": SVDVALS_ALONG,
    "differentiable": DIFFERENTIABLE,
    "spectral": SPECTRAL,
    "singular": SINGULAR,
    "divided": DIVIDED,
    "spectral_along": SPECTRAL_ALONG,
    "singular_along": SINGULAR_ALONG,
    "scan": SCAN,
    "report_states": REPORT_STATES,
    "watched_scan": WATCHED_SCAN,
    "watch_first": WATCH_FIRST,
    "watch_states": WATCH_STATES,
}


def solvers_of(step: Step, spelling: Spelling) -> list[str]:
    """The names of the solvers that the text of a step needs: what one calls comes first."""
    name = solver_of(step, spelling)
    own = (
        isinstance(step.op, ops.OfMatrices)
        and step.op.kind in OBLONG
        and not isinstance(step.operands[0].op, ops.Factors)
    )
    called = _CALLED.get(name, ()) if spelling.scipy else _CALLED_WITHOUT_SCIPY.get(name, _CALLED.get(name, ()))
    watching = _watching(spelling) if isinstance(step.op, Scan) else ()
    inverted = "inverted" if isinstance(step.op, Root) and step.op.equation.inverse else ""
    return [n for n in ("svd" if own and name != "svd" else "", *called, name, inverted, *watching) if n]


def _watching(spelling: Spelling) -> tuple[str, ...]:
    """The functions that watch the states of loops, where that is asked for."""
    if not spelling.watches:
        return ()
    return ("watch_first", "watch_states") if spelling.loops else ("report_states", "watched_scan")


def solver_text(name: str, spelling: Spelling) -> str:
    """The solver in the words of an array library."""
    text = SOLVERS[name]
    if not spelling.scipy:
        text = WITHOUT_SCIPY.get(text, text)
    if not spelling.eager:
        text = WITHOUT_VALUES.get(text, text)
    for word, own in spelling.solver_words.items():
        text = text.replace(word, own)
    return text


def solver_of(step: Step, spelling: Spelling) -> str:
    """The name of the solver that the text of a step calls, empty if none."""
    match step.op:
        case ops.Norm():
            return "euclidean_norm"
        case ops.Power() if is_every_power(step, step.op):
            return "powers"
        case ops.Scatter(adds=True):
            return "" if spelling.add_at else spelling.added_at
        case Root(equation):
            return _newton(*equation.plan.outputs)
        case Scan():
            return "" if spelling.loops else "scan"
        case ops.Factors(singular=True):
            return "svd"
        case ops.Factors(positive, eigen):
            return "cholesky" if positive else "" if eigen else "lu_factors"
        case ops.OfMatrices(kind, hermitian=True):
            return f"hermitian_{kind}"
        case ops.OfMatrices("svdvals"):
            return "" if isinstance(step.operands[0].op, ops.Factors) else "svd"
        case ops.OfMatrices(kind) if kind in ops.FACTORED and isinstance(step.operands[0].op, ops.Factors):
            return f"{'cholesky' if step.operands[0].op.positive else 'lu'}_{kind}"
        case ops.OfMatrices(kind):
            return "" if kind in _IN_LIBRARIES else kind
        case ops.Solve() if len(step.operands) > 2:
            return "solve_of_parts"
        case ops.Solve(triangular=True):
            return "triangular_solution"
        case ops.Solve() if isinstance(step.operands[0].op, ops.Factors):
            return "cholesky_solution" if step.operands[0].op.positive else "lu_solution"
        case _:
            return ""


def _newton(residual: Step, *slopes: Step) -> str:
    """Newton's method: for a Jacobian matrix, its two parts, or slopes of each entry by its own unknown."""
    if len(slopes) > 1:
        return "newton_of_parts"
    return "newton_of_entries" if residual.rank and slopes[0].rank == residual.rank else "newton"


def is_every_power(step: Step, op: ops.Power) -> bool:
    """Whether the exponent takes the values 0, 1, 2, … along an axis of its own: x(i)^j."""
    base, exponent = step.operands
    (of_base, of_exponent) = op.places
    if not isinstance(exponent.op, ops.Numbers) or not base.rank or base.rank + 1 != step.rank:
        return False
    (domain,) = exponent.domains
    return of_exponent[0] not in of_base and domain.first(2) == 0


def powers(w: Writer, step: Step, op: ops.Power) -> Text:
    """All powers by products; logarithms and exponentials, of each, take ten times as long."""
    base, exponent = step.operands
    made = Text(f"powers({w.refer(base).code}, {w.alone(exponent.domains[0])})", ATOM)
    return w.placed(made, (*op.places[1], *op.places[0]), step.rank)


def norm(w: Writer, step: Step, op: ops.Norm) -> Text:
    return Text(f"{solver_of(step, w.spelling)}({w.refer(step.operands[0]).code})", ATOM)


def _refuse_equations(w: Writer) -> None:
    if not w.spelling.solve:
        raise UnsupportedError(
            f"the result solves equations, which combdiff does not support for {w.spelling.name}",
            about=Mention("root", called=True),
            remedy='choose another backend, such as "numpy"',
        )


def solution(w: Writer, step: Step, op: ops.Solve) -> Text:
    _refuse_equations(w)
    *matrices, k = (w.refer(o) for o in step.operands)
    if len(matrices) > 1:
        return Text(f"solve_of_parts({', '.join(t.code for t in (*matrices, k))})", ATOM)
    solver = solver_of(step, w.spelling)
    # a matrix that has one factor is its own adjoint
    other = ", adjoint=True" if op.adjoint and solver in ("lu_solution", "triangular_solution") else ""
    template = f"{solver}({{0}}, {{1}}{other})" if solver else w.spelling.solve
    matrix = matrices[0] if solver else _as_matrix(w, step.operands[0])
    own = step.operands[0].rank // 2
    if own == 1 and step.rank <= 2:
        return Text(template.format(matrix.code, k.code), ATOM)
    rows, several = (" * ".join(map(w.extent, part)) for part in (step.domains[:own], step.domains[own:]))
    joined = f"reshape({rows}, {several})" if several else "ravel()"
    flat = template.format(matrix.code, f"{k.at(ATOM)}.{joined}")
    return Text(f"{flat}.reshape({', '.join(map(w.alone, step.domains))})", ATOM)


_IN_LIBRARIES = {"det": "det({})", "inv": "inv({})", "logabsdet": "slogdet({})[1]", "eigvals": "eigvalsh({})"}
"""Functions of matrices that array libraries have."""

_CALLED = {
    "sqrtm_along": ("sqrtm",),
    "expm_along": ("expm", "blocks"),
    "lu_logdet": ("lu_sign", "lu_logabsdet"),
    "cholesky_along": ("triangular_solution",),
    "cholback": ("triangular_solution",),
    "eigvals_along": ("without_equal", "rates"),
    "svdvals_along": ("without_equal", "rates"),
    "spectral": ("without_equal", "differentiable"),
    "singular": ("without_equal", "differentiable"),
    "spectral_along": ("divided",),
    "singular_along": ("divided",),
}
"""The solvers that others call."""

_CALLED_WITHOUT_SCIPY = {"lu_inv": ("lu_solution",), "cholesky_inv": ("cholesky_solution",)}
"""The same in libraries that have nothing like SciPy's functions, where there are others."""


def _refuse_matrices(w: Writer, name: str) -> None:
    if not w.spelling.solve:
        raise UnsupportedError(
            f"the result has the function {name} of a matrix, which combdiff does not support for {w.spelling.name}",
            about=Mention(name, called=True),
            remedy='choose another backend, such as "numpy"',
        )


def of_matrices(w: Writer, step: Step, op: ops.OfMatrices) -> Text:
    """`np.linalg.inv(A)`, or a function that the text brings along."""
    _refuse_matrices(w, op.kind)
    name = solver_of(step, w.spelling)
    first, *along = (w.refer(o) for o in step.operands)
    needed = ops.factors_for(op.kind, op.hermitian)
    if op.kind in ("eigvals", "svdvals"):
        return _values(w, step, first)
    template = f"{name}({{}})" if name else w.spelling.linear_algebra + _IN_LIBRARIES[op.kind]
    code = first.code
    if needed is not None and not isinstance(step.operands[0].op, ops.Factors):
        code = f"svd({code})" if needed.singular else f"{w.spelling.linear_algebra}eigh({code})"
    about = [repr(op.about)] if op.kind == "cholesky" else ["single=False"] if op.together else []
    return Text(template.format(", ".join([code, *(t.code for t in along), *about])), ATOM)


def _values(w: Writer, step: Step, matrix: Text) -> Text:
    """Eigenvalues or singular values, perhaps with their vectors known."""
    known = isinstance(step.operands[0].op, ops.Factors)
    if isinstance(step.op, ops.OfMatrices) and step.op.kind == "svdvals":
        return Text(f"{matrix.at(ATOM)}[1]" if known else f"svd({matrix.code})[1]", ATOM)
    return Text(f"{matrix.at(ATOM)}[0]" if known else f"{w.spelling.linear_algebra}eigvalsh({matrix.code})", ATOM)


def factors(w: Writer, step: Step, op: ops.Factors) -> Text:
    if op.singular:
        _refuse_matrices(w, "svdvals")
        return Text(f"svd({w.refer(step.operands[0]).code})", ATOM)
    if op.eigen:
        _refuse_matrices(w, "sqrtm")
        return Text(f"{w.spelling.linear_algebra}eigh({w.refer(step.operands[0]).code})", ATOM)
    _refuse_equations(w)
    about = f", {op.about!r}" if op.positive else ""
    return Text(f"{solver_of(step, w.spelling)}({_as_matrix(w, step.operands[0]).code}{about})", ATOM)


def lower(w: Writer, step: Step, op: ops.Lower) -> Text:
    """The only array among Cholesky's factors."""
    return w.refer(step.operands[0])


def _as_matrix(w: Writer, step: Step) -> Text:
    """A matrix whose rows and columns have several axes as one that has two."""
    half = step.rank // 2
    if half == 1:
        return w.refer(step)
    rows, columns = (" * ".join(map(w.extent, part)) for part in (step.domains[:half], step.domains[half:]))
    return Text(f"{w.atom(step)}.reshape({rows}, {columns})", ATOM)


def root(w: Writer, step: Step, op: Root) -> Text:
    _refuse_equations(w)
    solved = op.equation
    captured = dict(zip(solved.captured, (w.refer(o).code for o in step.operands), strict=False))
    others = [a for a in solved.plan.arguments if a.name != solved.unknown and not a.optional]
    given = [_given(w, a, captured) for a in others]
    equation = w.called.above[solved]
    x = _unused(("x", "y", "z", "u", "v", "w"), words(" ".join([equation, *given])))
    # the unknown is the first argument of the residual
    call = f"{equation}({', '.join([x, *given])})"
    zeros = w.spelling.zeros_complex if step.complex else w.spelling.zeros
    number = w.spelling.number_complex.format("0j") if step.complex else w.spelling.number.format("0.0")
    zero = zeros.format(w.shape(step.domains)) if step.rank else number
    start = w.called.arguments[solved.start]
    found = f"{solver_of(step, w.spelling)}(lambda {x}: {call}, {zero} if {start} is None else {start})"
    if not solved.inverse:
        return Text(found, ATOM)
    inverse, y = w.called.arguments[solved.inverse], w.refer(step.operands[-1]).code
    undone = f'inverted(lambda {x}: {call}, {inverse}, {y}, "{inverse}")'
    lines = (found, f"if {inverse} is None", f"else {undone}")
    return Text(" ".join(lines), MAP, lines)


def _unused(names: Sequence[str], mentioned: Collection[str]) -> str:
    """The first of some names that is not mentioned, or the first name with a number."""
    return next(name for name in chain(names, (f"{names[0]}{n}" for n in count(2))) if name not in mentioned)


def scan(w: Writer, step: Step, op: Scan) -> Text:
    """A loop: a step that is given what is the same for all, the first states, sequences, and shapes for the rest."""
    if not w.spelling.scan:
        raise UnsupportedError(
            f"the result is computed in a loop, which combdiff does not support for {w.spelling.name}",
            remedy='choose another backend, such as "numpy"',
        )
    body, moving = op.body, op.body.states + op.body.sequences
    texts = [w.refer(o).code for o in step.operands]
    names = [a.name for a in body.plan.arguments if a.step is not None]
    for n, (state, operand) in enumerate(zip(body.arrays[: body.states], step.operands, strict=False)):
        texts[n] = w.state(operand, w.refer(operand), state.complex).code
    captured = dict(zip(names[moving:], texts[moving:], strict=True))
    given = [_given(w, a, captured) for a in body.plan.arguments if a.name not in names[:moving]]
    call = w.called.above[body]
    if given:
        own = _unused(("now", "moving"), words(" ".join(given)))
        call = f"lambda *{own}: {call}(*{own}, {', '.join(given)})"
    stored = [
        f"({w.shape(at)}, {w.spelling.complex_type if c else w.spelling.float_type})"
        for at, c in op.items[body.states :]
    ]
    parts = (texts[: body.states], texts[body.states : moving], stored)
    lists = ", ".join(f"[{', '.join(part)}]" for part in parts)
    watched = f"watched_scan({names_of(body)}, " if w.spelling.watches else "scan("
    return Text(f"{watched}{call}, {lists}, {w.alone(op.domain)}{', reverse=True' if op.reverse else ''})", ATOM)


def names_of(body: Recurrence) -> str:
    """What the program calls the states of a loop, as a tuple of texts."""
    return str(tuple(a.name for a in body.plan.arguments if a.step is not None)[: body.states])


def _given(w: Writer, argument: Argument, captured: Mapping[str, str]) -> str:
    """What an equation is given for one of its arguments."""
    if argument.name in captured:
        return captured[argument.name]
    if isinstance(argument.kind, Index) and argument.kind.domain is not None:
        return w.extent(argument.kind.domain)
    return w.called.arguments[argument.name]
