"""PyTorch's own functions: its LAPACK has other names than SciPy's."""

import torch


def lu_factors(matrix):
    """The LU factors of a matrix, which several systems are solved with."""
    lu, pivots, zero = torch.linalg.lu_factor_ex(matrix)
    if zero > 0:
        raise torch.linalg.LinAlgError("Singular matrix")
    return lu, pivots


def lu_solution(factors, k, adjoint=False):
    """The solution of a system, or of the one of the adjoint matrix."""
    columns = k if k.ndim > 1 else k[:, None]
    return torch.linalg.lu_solve(*factors, columns, adjoint=adjoint).reshape(k.shape)


def cholesky(matrix, name):
    """The lower factor of a Hermitian matrix."""
    try:
        return torch.linalg.cholesky(matrix)
    except torch.linalg.LinAlgError as problem:
        raise torch.linalg.LinAlgError(f"{name} is not positive definite") from problem


def cholesky_solution(factor, k):
    """The solution of a system with a positive matrix."""
    return torch.cholesky_solve(k if k.ndim > 1 else k[:, None], factor).reshape(k.shape)


def triangular_solution(factor, k, adjoint=False):
    """The solution of a system with a lower triangular matrix, or with its adjoint."""
    if factor.ndim > 2:
        return torch.linalg.solve(factor.conj().swapaxes(-1, -2) if adjoint else factor, k)
    columns = k if k.ndim > 1 else k[:, None]
    matrix = factor.mH if adjoint else factor
    return torch.linalg.solve_triangular(matrix, columns, upper=adjoint).reshape(k.shape)


def expm(matrix):
    """The exponential of a matrix."""
    return torch.linalg.matrix_exp(matrix)


def matrix_of_parts(of_one, of_i, n):
    """The real matrix of a map that is linear over the reals, with these values on units and on i times units."""
    columns = [torch.reshape(part, (n, n)) for part in (of_one, of_i)]
    return torch.cat([torch.cat([f(part) for part in columns], dim=1) for f in (torch.real, torch.imag)])


def parity_of_swaps(pivots):
    """1 if the rows were swapped an even number of times, −1 if an odd one; PyTorch counts rows from 1."""
    swapped = (pivots != torch.arange(1, len(pivots) + 1, device=pivots.device)).sum()
    return 1 - 2 * (swapped % 2)


def cumulative_logsumexp(x, axis):
    """log Σ exp(x) up to each entry along an axis."""
    return torch.logcumsumexp(x, axis)


def with_an_entry(x):
    """x, or zeros where an axis has no entries, for reads at places that a condition keeps in range."""
    return x.new_zeros([max(n, 1) for n in x.shape]) if 0 in x.shape else x


def maximum_at(shape, places, values):
    """The largest of the values at each of some places, −∞ where there is none."""
    from math import prod

    count, kept = len(places), values.ndim - (len(shape) - len(places))
    flat = sum(p * prod(shape[n + 1 : count]) for n, p in enumerate(places))
    flat = flat.broadcast_to(values.shape[:kept]).reshape(-1)
    rows = values.reshape(len(flat), prod(shape[count:]))
    found = values.new_full((prod(shape[:count]), rows.shape[1]), -torch.inf)
    return found.scatter_reduce(0, flat[:, None].expand_as(rows), rows, "amax").reshape(shape)
