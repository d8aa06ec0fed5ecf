"""Functions that code for NumPy brings along; other libraries take their text in other words, or have their own.

`combdiff.emit.solvers` copies a function into each module that calls it, after the functions that it calls: these are
above it here. Imports inside of functions are for libraries that code needs for these functions only.
"""

import numpy as np


def euclidean_norm(x):
    """√Σ|x|² along the last axis, divided by the largest entry first where squares overflow or vanish."""
    with np.errstate(all="ignore"):
        short = x.dtype.kind == "f" and x.ndim > 1 and x.shape[-1] < 32
        found = np.sqrt(np.einsum("...i,...i->...", x, x) if short else np.vecdot(x, x).real)
        far = ~((found > 1e8 * np.finfo(found.dtype).tiny ** 0.5) & (found < np.inf))
        if not far.any():
            return found
        sizes = abs(x[far])
        largest = sizes.max(-1, keepdims=True, initial=0)
        largest = np.where((largest > 0) & (largest < np.inf), largest, 1)
        found = np.asarray(found)
        found[far] = largest[..., 0] * np.sqrt(((sizes / largest) ** 2).sum(-1))
    return found[()]


def with_an_entry(x):
    """x, or zeros where an axis has no entries, for reads at places that a condition keeps in range."""
    return np.zeros([max(n, 1) for n in x.shape], dtype=x.dtype) if 0 in x.shape else x


def occurring(places, count):
    """The values below `count` that are among the places, and one of these in the place of each other value."""
    found = np.full(count, places.max(initial=0))
    found[places] = places
    return found


def linear_recurrence(b, start, x, backward=False):
    """The last of the states s(t + 1) = b s(t) + x(t), and all before; backward from the last value of x."""
    from scipy.signal import lfilter

    found = np.empty((len(x) + 1, *x.shape[1:]), np.result_type(b, start, x, float))
    found[0] = start
    if len(x):
        found[1:], _ = lfilter([1.0], [1.0, -b], x[::-1] if backward else x, axis=0, zi=b * found[:1])
    return found[-1], found[-2::-1] if backward else found[:-1]


def cumulative_logsumexp(x, axis):
    """log Σ exp(x) up to each entry along an axis: one cumulative sum where the first exponential is not tiny."""
    most = x.max(axis, keepdims=True, initial=-1e38)
    found = x - most
    np.exp(found, out=found).cumsum(axis, out=found)
    if not found.swapaxes(0, axis)[:1].min(initial=1) > 1e-35:
        return np.logaddexp.accumulate(x, axis)
    np.log(found, out=found)
    found += most
    return found


def cumulative_exponentials(weight, x, level, axis):
    """exp(level) Σ weight · exp(x) up to each entry along an axis, where the exponentials alone may overflow."""
    most = x.max(axis, keepdims=True, initial=-1e38)
    found, scale = x - most, level + most
    np.exp(found, out=found)
    if found.swapaxes(0, axis)[:1].min(initial=1) > 1e-35 and scale.max(initial=0) < 80:
        found *= weight
        found.cumsum(axis, out=found)
        found *= np.exp(scale, out=scale)
        return found
    with np.errstate(divide="ignore", over="ignore"):
        above, below = (np.logaddexp.accumulate(x + np.log(np.maximum(part, 0)), axis) for part in (weight, -weight))
        return np.exp(level + above) - np.exp(level + below)


def cumulative_ties(x, axis):
    """Runs of entries that have the same ties in the maximum up to there: which are ties, where, and how many so far.

    The second result says where the ties of the same maximum begin, by the number of the run.
    """
    rows = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    most = np.maximum.accumulate(rows, axis=-1)
    tied, new = rows == most, np.ones(rows.shape, bool)
    new[..., 1:] = most[..., 1:] != most[..., :-1]
    begins = np.flatnonzero(tied | new)
    runs = np.arange(len(begins))
    first = np.maximum.accumulate(np.where(new.ravel()[begins], runs, 0))
    return tied.ravel()[begins], first, begins, runs - first + 1


def sums_of_cumulative_ties(weight, x, axis):
    """The sum of weights from each entry on, times the share of the entry in the maximum of x up to each of them."""
    tied, first, begins, counts = cumulative_ties(x, axis)
    rows = np.moveaxis(weight, axis, -1)
    found = np.zeros(rows.shape, np.result_type(weight, float))
    if len(begins):
        sums, step = np.add.reduceat(rows.ravel(), begins) / counts, 1
        while step < counts.max():
            sums[:-step] += np.where(first[step:] == first[:-step], sums[step:], 0)
            step *= 2
        found.ravel()[begins] = np.where(tied, sums, 0)
    return np.moveaxis(found, -1, axis)


def means_of_cumulative_ties(values, x, axis):
    """The mean, up to each entry, of the values of those that are the maximum of x up to there."""
    tied, first, begins, counts = cumulative_ties(x, axis)
    rows = np.moveaxis(values, axis, -1)
    sums, step = np.where(tied, rows.ravel()[begins], 0), 1
    while len(counts) and step < counts.max():
        sums[step:] += np.where(first[step:] == first[:-step], sums[:-step], 0)
        step *= 2
    found = (sums / counts).repeat(np.diff(begins, append=rows.size)).reshape(rows.shape)
    return np.moveaxis(found, -1, axis)


def maximum_at(shape, places, values):
    """The largest of the values at each of some places, −∞ where there is none; rows are sorted by their places."""
    from math import prod

    kept = values.ndim - (len(shape) - len(places))
    flat = np.broadcast_to(np.ravel_multi_index(places, shape[: len(places)]), values.shape[:kept]).ravel()
    found = np.full((prod(shape[: len(places)]), prod(shape[len(places) :])), -np.inf, values.dtype)
    rows = values.reshape(flat.size, found.shape[1])
    if found.shape[1] == 1:
        np.maximum.at(found[:, 0], flat, rows[:, 0])
    elif flat.size:
        # integers of 16 bits are sorted in linear time
        order = flat.astype(np.min_scalar_type(len(found))).argsort(kind="stable")
        flat = flat[order]
        starts = np.flatnonzero(np.diff(flat, prepend=-1))
        found[flat[starts]] = np.maximum.reduceat(rows[order], starts)
    return found.reshape(shape)


def minimum_at(shape, places, values):
    """The least of the values at each of some places, ∞ where there is none."""
    return -maximum_at(shape, places, -values)


def powers(x, n):
    """1, x, x², … along a new first axis of n values: with each product there are twice as many."""
    found = np.ones((n, *x.shape), np.result_type(x, float))
    found[1:2] = x
    made = 2
    while made < n:
        more = min(made, n - made)
        np.multiply(found[:more], found[made - 1] * x, out=found[made : made + more])
        made += more
    return found


def windows(x, shape, along, by, start):
    """x[start + Σ by · index] along each of its axes, zero beyond its ends, for all indices of an array of this shape.

    Index n counts along axis along[n]. The array is a view of x, or of x with zeros around it.
    """
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    places, ends = [], []
    for axis, n in enumerate(x.shape):
        moves = [c * (m - 1) for c, m, a in zip(by, shape, along) if a == axis]
        before = max(0, -start[axis] - sum(move for move in moves if move < 0))
        ends.append((before, max(0, start[axis] + sum(move for move in moves if move > 0) + 1 - n)))
        places.append(slice(start[axis] + before, None))
    if any(map(any, ends)):
        inner, x = x, np.zeros([b + n + c for (b, c), n in zip(ends, x.shape)], x.dtype)
        x[tuple(slice(b, b + n) for (b, _), n in zip(ends, inner.shape))] = inner
    strides = [c * x.strides[axis] for c, axis in zip(by, along)]
    return np.lib.stride_tricks.as_strided(x[tuple(places)], shape, strides)


def overlapping_windows(x, shape, along, by, start, shared):
    """The same, but a copy that has the windows along other axes than that of the indices `shared` and the next one.

    Along that axis they are a view: matrices of a stack that have rows in common.
    """
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    axis, end = along[shared], shared + 2
    moves = [by[n] * (shape[n] - 1) for n in (shared, shared + 1)]
    first = min(0, moves[0]) + min(0, moves[1])
    start = [s + first if n == axis else s for n, s in enumerate(start)]
    whole = (*shape[:shared], 1 + abs(moves[0]) + abs(moves[1]), *shape[end:])
    along, others = (*along[:shared], axis, *along[end:]), (*by[:shared], 1, *by[end:])
    copy = np.ascontiguousarray(windows(x, whole, along, others, start))
    step = copy.strides[shared]
    strides = (*copy.strides[:shared], by[shared] * step, by[shared + 1] * step, *copy.strides[shared + 1 :])
    copy = copy[(*[slice(None)] * shared, slice(-first, None))]
    return np.lib.stride_tricks.as_strided(copy, shape, strides)


def correlated(x, y, n, by, step, start):
    """Σ_q x[start + by · p + step · q] y[q] for each p below n, zero beyond the ends of x; `by` or `step` is ±1."""
    found = np.zeros(n, np.result_type(x, y))
    if not n or not len(y):
        return found
    moves = [by * (n - 1), step * (len(y) - 1)]
    x = windows(x, (1 + abs(moves[0]) + abs(moves[1]),), (0,), (1,), (start + min(0, moves[0]) + min(0, moves[1]),))
    # the second array is conjugated
    back, y, by, step = by < 0, y.conj()[:: -1 if step < 0 else 1], abs(by), abs(step)
    if by == 1:
        for first in range(min(step, n)):
            found[first::step] = np.correlate(x[first::step], y)
    else:
        for first in range(min(by, len(y))):
            found += np.correlate(x[first::by], y[first::by])
    return found[::-1] if back else found


def scan(step, states, sequences, stored, length, reverse=False):
    """The states after all steps of a loop, and what each step stores, of these shapes and types."""
    count = len(states)
    stored = [np.empty(shape, dtype=kind) for shape, kind in stored]
    for t in reversed(range(length)) if reverse else range(length):
        found = step(*states, *(x[t] for x in sequences))
        states = found[:count]
        for whole, part in zip(stored, found[count:]):
            whole[t] = part
    return (*states, *stored)


def watch_states(names, states, before, where):
    """Raise an error for an entry of a state that is nan or infinite after a step, and was not so before it."""
    for name, state, old in zip(names, states, before):
        nan = (np.isnan(state) & ~np.isnan(old)).any()
        if nan or (np.isinf(state) & ~np.isinf(old)).any():
            found = "nan" if nan else "infinite"
            raise FloatingPointError(f"the state {name} becomes {found} in step {where}")


def watch_first(names, states, where):
    """Raise an error for a first state with an entry that is nan; one that is infinite may be meant."""
    for name, state in zip(names, states):
        if np.isnan(state).any():
            raise FloatingPointError(f"the state {name} is nan before the first step{where}")


def newton(equation, x, steps=60):
    """The x at which the residual is 0; equation(x) is the residual and its Jacobian matrix."""
    n = np.size(x)
    for _ in range(steps):
        residual, slopes = equation(x)
        step = np.linalg.solve(np.reshape(slopes, (n, n)), np.ravel(residual)).reshape(np.shape(x))
        share = 1.0
        while share > 1e-6 and np.linalg.norm(equation(x - share * step)[0]) > np.linalg.norm(residual):
            share /= 2
        x = x - share * step
        if np.linalg.norm(step) < 1e-12 * max(1.0, np.linalg.norm(x)):
            return x
    raise ArithmeticError("Newton's method finds no root from its start")


def newton_of_entries(equation, x, steps=60):
    """The x at which the residual is 0; equation(x) is the residual and its slope, of each entry by its own x."""
    for _ in range(steps):
        residual, slopes = equation(x)
        step = residual / slopes
        moves = ~(abs(step) < 1e-12 * (1 + abs(x)))
        share = 0 * abs(step) + 1
        while (worse := moves & (share > 1e-6) & (abs(equation(x - share * step)[0]) > abs(residual))).any():
            share = np.where(worse, share / 2, share)
        x = x - share * step
        if not moves.any():
            return x
    raise ArithmeticError("Newton's method finds no root from its start")


def matrix_of_parts(of_one, of_i, n):
    """The real matrix of a map that is linear over the reals, with these values on units and on i times units."""
    columns = [np.reshape(part, (n, n)) for part in (of_one, of_i)]
    return np.block([[part.real for part in columns], [part.imag for part in columns]])


def newton_of_parts(equation, x, steps=60):
    """The complex x at which the residual is 0; equation(x) is it, and its pullback of units and of i times units."""
    n = np.size(x)
    for _ in range(steps):
        residual, of_one, of_i = equation(x)
        slopes = matrix_of_parts(of_one, of_i, n).T
        step = np.linalg.solve(slopes, np.concatenate([np.ravel(residual).real, np.ravel(residual).imag]))
        step = (step[:n] + 1j * step[n:]).reshape(np.shape(x))
        share = 1.0
        while share > 1e-6 and np.linalg.norm(equation(x - share * step)[0]) > np.linalg.norm(residual):
            share /= 2
        x = x - share * step
        if np.linalg.norm(step) < 1e-12 * max(1.0, np.linalg.norm(x)):
            return x
    raise ArithmeticError("Newton's method finds no root from its start")


def inverted(equation, inverse, y, name):
    """The x that an inverse gives for y; an error where equation(x), the residual and its slope, does not hold."""
    x = np.asarray(inverse(y) + 0 * y)
    residual, slopes = equation(x)
    wrong = ~(abs(residual) <= np.finfo(x.dtype).eps ** 0.5 * (1 + abs(x)) * abs(slopes))
    if wrong.any():
        raise ArithmeticError(f"{name} gives {x[wrong][0]:.6g} for {np.asarray(y)[wrong][0]:.6g}, which is no solution")
    return x


def solve_of_parts(of_one, of_i, k):
    """The y with H(y) = k, for an H linear over the reals with these values on units and on i times units."""
    n = np.size(k)
    matrix = matrix_of_parts(of_one, of_i, n)
    y = np.linalg.solve(matrix, np.concatenate([np.ravel(k).real, np.ravel(k).imag]))
    return (y[:n] + 1j * y[n:]).reshape(np.shape(k))


def lu_factors(matrix):
    """The LU factors of a matrix, which several systems are solved with."""
    from scipy.linalg.lapack import get_lapack_funcs

    if not len(matrix):
        # which LAPACK refuses
        return matrix, np.arange(0)
    (getrf,) = get_lapack_funcs(["getrf"], [matrix])
    lu, pivots, zero = getrf(matrix)
    if zero > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return lu, pivots


def lu_solution(factors, k, adjoint=False):
    """The solution of a system, or of the one of the adjoint matrix."""
    from scipy.linalg import lu_solve

    return lu_solve(factors, k, 2 * adjoint, check_finite=False)


def lu_inv(factors):
    """The inverse of a matrix, from its LU factors."""
    from scipy.linalg.lapack import get_lapack_funcs

    lu, pivots = factors
    if not len(lu):
        return lu
    (getri,) = get_lapack_funcs(["getri"], [lu])
    return getri(lu, pivots, 64 * len(lu))[0]


def parity_of_swaps(pivots):
    """1 if the rows were swapped an even number of times, −1 if an odd one."""
    swapped = (pivots != np.arange(len(pivots))).sum()
    return 1 - 2 * (swapped % 2)


def lu_sign(factors):
    """The determinant of a matrix divided by its absolute value, from its LU factors."""
    diagonal = np.diagonal(factors[0])
    return (diagonal / abs(diagonal)).prod() * parity_of_swaps(factors[1])


def lu_det(factors):
    """The determinant, from LU factors."""
    return np.diagonal(factors[0]).prod() * parity_of_swaps(factors[1])


def lu_logabsdet(factors):
    """The logarithm of the absolute value of the determinant, from LU factors."""
    return np.log(abs(np.diagonal(factors[0]))).sum()


def lu_logdet(factors):
    """The logarithm of the determinant, from LU factors; of a real one below 0 it is nan."""
    return np.log(lu_sign(factors)) + lu_logabsdet(factors)


def cholesky(matrix, name):
    """The lower factor of a Hermitian matrix; one that is not positive definite is named."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError as problem:
        raise np.linalg.LinAlgError(f"{name} is not positive definite") from problem


def cholesky_solution(factor, k):
    """The solution of a system with a positive matrix."""
    from scipy.linalg.lapack import get_lapack_funcs

    if not len(factor):
        return k
    (potrs,) = get_lapack_funcs(["potrs"], [factor, k])
    # LAPACK reads columns, and so the conjugates of factor and matrix
    return potrs(factor.T, k.conj())[0].conj()


def cholesky_inv(factor):
    """The inverse of a positive matrix, from Cholesky's factor."""
    from scipy.linalg.lapack import get_lapack_funcs

    if not len(factor):
        return factor
    (potri,) = get_lapack_funcs(["potri"], [factor])
    # the inverse from its diagonal on, and zeros, which the factor has above its own
    half = potri(factor.T)[0].T
    whole = half + half.conj().T
    whole.flat[:: len(half) + 1] = half.diagonal()
    return whole


def cholesky_det(factor):
    """The determinant of a positive matrix, from Cholesky's factor."""
    return (np.diagonal(factor) ** 2).prod()


def cholesky_logabsdet(factor):
    """The logarithm of the determinant of a positive matrix, from Cholesky's factor."""
    return 2 * np.log(abs(np.diagonal(factor))).sum()


def cholesky_logdet(factor):
    """The logarithm of the determinant of a positive matrix, from Cholesky's factor."""
    return 2 * np.log(np.diagonal(factor)).sum()


def triangular_solution(factor, k, adjoint=False):
    """The solution of a system with a lower triangular matrix, or with its adjoint."""
    if factor.ndim > 2:
        return np.linalg.solve(factor.conj().swapaxes(-1, -2) if adjoint else factor, k)
    from scipy.linalg import solve_triangular

    return solve_triangular(factor, k, 2 * adjoint, lower=True, check_finite=False)


def cholesky_along(factor, direction):
    """The derivative of the factor of a Hermitian matrix along another matrix."""
    half = triangular_solution(factor, (direction + direction.conj().swapaxes(-1, -2)) / 2)
    inner = triangular_solution(factor, half.conj().swapaxes(-1, -2))
    return factor @ ((np.tril(inner) + np.tril(inner, -1)) / 2)


def cholback(factor, k):
    """The adjoint of the derivative of the factor of a Hermitian matrix."""
    inner = factor.conj().swapaxes(-1, -2) @ k
    inner = (np.tril(inner) + np.tril(inner, -1)) / 2
    half = triangular_solution(factor, (inner + inner.conj().swapaxes(-1, -2)) / 2, adjoint=True)
    return triangular_solution(factor, half.conj().swapaxes(-1, -2), adjoint=True)


def logdet(matrix):
    """The logarithm of the determinant; of a real one below 0 it is nan."""
    sign, logarithm = np.linalg.slogdet(matrix)
    return np.log(sign) + logarithm


def adjugate(matrix):
    """det(A) inv(A), from singular values: what is singular has one, too."""
    u, values, vh = np.linalg.svd(matrix)
    same = np.eye(matrix.shape[-1]) > 0
    others = np.where(same, 1.0, values[..., None, :]).prod(-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return phase[..., None, None] * ((vh.conj().swapaxes(-1, -2) * others[..., None, :]) @ u.conj().swapaxes(-1, -2))


def adjugate_along(matrix, direction):
    """The derivative of the adjugate at a matrix along another one."""
    u, values, vh = np.linalg.svd(matrix)
    left, right = u.conj().swapaxes(-1, -2), vh.conj().swapaxes(-1, -2)
    moved = left @ direction @ right
    unit = np.eye(matrix.shape[-1])
    # the products of all singular values but two
    rest = (1 - unit) * np.where((unit[:, None] + unit) > 0, 1.0, values[..., None, None, :]).prod(-1)
    traces = (rest * (moved * unit).sum(-1)[..., None, :]).sum(-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return phase[..., None, None] * (right @ (traces[..., None] * unit - rest * moved) @ left)


def sqrtm(matrix):
    """The principal root of a matrix; nan where a real one has none that is real."""
    from scipy.linalg import sqrtm

    if not matrix.size:
        return matrix
    root = np.reshape([sqrtm(each) for each in matrix.reshape(-1, *matrix.shape[-2:])], matrix.shape)
    if np.iscomplexobj(matrix) or not np.iscomplexobj(root):
        return root
    rounding = 1e-6 * np.abs(root).max((-2, -1), keepdims=True)
    return np.where(np.abs(root.imag).max((-2, -1), keepdims=True) <= rounding, root.real, np.nan)


def sqrtm_along(matrix, direction):
    """The X with S X + X S = K, for the root S of a matrix and a direction K."""
    from scipy.linalg import solve_sylvester

    if not matrix.size:
        return matrix
    shape = np.broadcast_shapes(matrix.shape, direction.shape)
    stacks = (np.broadcast_to(each, shape).reshape(-1, *shape[-2:]) for each in (sqrtm(matrix), direction))
    return np.reshape([solve_sylvester(root, root, each) for root, each in zip(*stacks)], shape)


def hermitian_sqrtm(eigen):
    """The principal root of a Hermitian matrix with these eigenvectors; nan where a real one has none that is real."""
    values, vectors = eigen
    # an eigenvalue that is all rounding may lie below 0
    noise = 1e-15 * abs(values).sum(-1)[..., None]
    roots = np.sqrt(np.where(abs(values) <= noise, 0 * values, values).astype(vectors.dtype))
    adjoint = vectors.conj().swapaxes(-1, -2)
    return (vectors * roots[..., None, :]) @ adjoint


def hermitian_sqrtm_along(eigen, direction):
    """The X with S X + X S = K, for the root S of a Hermitian matrix and a direction K."""
    values, vectors = eigen
    # an eigenvalue that is all rounding may lie below 0
    noise = 1e-15 * abs(values).sum(-1)[..., None]
    roots = np.sqrt(np.where(abs(values) <= noise, 0 * values, values).astype(vectors.dtype))
    adjoint = vectors.conj().swapaxes(-1, -2)
    inner = (adjoint @ direction @ vectors) / (roots[..., None] + roots[..., None, :])
    return vectors @ inner @ adjoint


def expm(matrix):
    """The exponential of a matrix."""
    from scipy.linalg import expm

    return expm(matrix)


def blocks(matrix, direction):
    """The matrix of blocks (A, K; 0, A)."""
    upper = np.concatenate([matrix + 0 * direction, direction + 0 * matrix], -1)
    lower = np.concatenate([np.zeros_like(upper[..., : matrix.shape[-1]]), upper[..., : matrix.shape[-1]]], -1)
    return np.concatenate([upper, lower], -2)


def expm_along(matrix, *directions):
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
    return scale * expm(whole)[..., :n, -n:]


def svd(matrix):
    """The singular values of a matrix, one for each column, between the singular vectors."""
    if matrix.shape[-2] < matrix.shape[-1]:
        raise ValueError("svdvals of a matrix that has fewer rows than columns")
    return np.linalg.svd(matrix, full_matrices=False)


def without_equal(k, wrong, name):
    """The numbers k; nan where they are wrong, since the values that they belong to are equal."""
    if wrong.any():
        import warnings

        places = [n for n in range(k.shape[-1]) if wrong[..., n].any()]
        warnings.warn(f"the {name} {places} are equal: a derivative by one of them is nan", RuntimeWarning)
    return np.where(wrong, np.nan, k)


def rates(values, inner, name):
    """The derivatives of values; nan where values are equal, unless they all move alike."""
    apart = abs(values[..., None] - values[..., None, :])
    equal = apart <= 4 * np.finfo(values.dtype).eps * abs(values).sum(-1)[..., None, None] * values.shape[-1]
    found = np.diagonal(inner, 0, -2, -1).real
    mixed = abs(inner + inner.conj().swapaxes(-1, -2)) * (apart * 0 + 1 - np.eye(values.shape[-1], dtype=values.dtype))
    differ = mixed / 2 + abs(found[..., None] - found[..., None, :]) > 1e-6 * abs(inner).sum((-2, -1))[..., None, None]
    return without_equal(found, (equal & differ).any(-1), name)


def eigvals_along(eigen, direction, single=True):
    """The derivatives of the eigenvalues of a Hermitian matrix; those that are equal have none if they stand alone."""
    values, vectors = eigen
    inner = vectors.conj().swapaxes(-1, -2) @ (direction @ vectors)
    return rates(values, inner, "eigenvalues") if single else np.diagonal(inner, 0, -2, -1).real


def svdvals_along(factors, direction, single=True):
    """The derivatives of singular values; if they stand alone, 0 where values are 0, and none where they are equal."""
    u, values, vh = factors
    inner = u.conj().swapaxes(-1, -2) @ (direction @ vh.conj().swapaxes(-1, -2))
    if not single:
        return np.diagonal(inner, 0, -2, -1).real
    none = values <= 4 * np.finfo(values.dtype).eps * values.sum(-1)[..., None]
    return np.where(none, 0.0, rates(values, np.where(none[..., None], 0.0, inner), "singular values"))


def differentiable(values, k, slopes, name):
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
    return without_equal(k, (equal & differ).any(-1), name)


def spectral(eigen, k, slopes=None, single=True):
    """The matrix with these eigenvectors and the eigenvalues k, which equal eigenvalues share if they stand alone."""
    values, vectors = eigen
    k = differentiable(values, k, 0 * k if slopes is None else slopes, "eigenvalues") if single else k
    return (vectors * k[..., None, :]) @ vectors.conj().swapaxes(-1, -2)


def singular(factors, k, slopes=None, single=True):
    """The matrix with these singular vectors and the singular values k; if they stand alone, 0 where values are 0."""
    u, values, vh = factors
    if single:
        none = values <= 4 * np.finfo(values.dtype).eps * values.sum(-1)[..., None]
        k = np.where(none, 0.0, differentiable(values, k, 0 * k if slopes is None else slopes, "singular values"))
    return (u * k[..., None, :]) @ vh


def divided(x, y, k, l, s, t):
    """(k - l) / (x - y), or the mean of the slopes s and t where it is no worse; nan where k and l differ at x = y."""
    apart, by = x[..., None] - y[..., None, :], k[..., None] - l[..., None, :]
    slope = (s[..., None] + t[..., None, :]) / 2
    size, rest = abs(k)[..., None] + abs(l)[..., None, :], abs(by - apart * slope)
    eps = np.finfo(x.dtype).eps
    close = rest <= 4 * eps * size
    equal = abs(apart) <= 4 * eps * abs(x).sum(-1)[..., None, None] * x.shape[-1]
    found = np.where(close, slope, by / np.where(apart == 0, 1.0, apart))
    alike = rest <= 1e-6 * size + 4 * eps * abs(k).sum(-1)[..., None, None]
    return np.where(equal, np.where(alike, slope, np.nan), found)


def spectral_along(eigen, direction, k, slopes):
    """The derivative of the matrix with the eigenvectors of another one and the eigenvalues k, by their slopes."""
    values, vectors = eigen
    n, adjoint = values.shape[-1], vectors.conj().swapaxes(-1, -2)
    inner = adjoint @ direction @ vectors
    inner = (inner + inner.conj().swapaxes(-1, -2)) / 2
    rates = divided(values, values, k, k, slopes, slopes)
    return vectors @ (np.where(np.eye(n, dtype=values.dtype) > 0, 0.0, rates) * inner) @ adjoint


def singular_along(factors, direction, k, slopes):
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
    return found @ vh
