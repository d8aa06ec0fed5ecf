import numpy as np


def quadratic_value_and_gradient(A, x):
    """(A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))

    A: complex array (n, n)
    x: complex array (n,)
    """
    Ax = A @ x
    return np.vdot(x, Ax).real, 2 * Ax
