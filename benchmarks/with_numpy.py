"""Contender "numpy": value and gradient as an expert writes them, by hand, with NumPy alone.

The large tensor is read once or as few times as can be, as a matrix in place (a reshaped view, never a transposed
copy); what the value computes is used again for the gradient; large intermediates go to buffers that are made once.
Spellings that are not `plain` read half of a symmetric tensor, or take it packed, or keep a number between calls, or
multiply a loss out, which loses digits where it is small.
"""

from __future__ import annotations

import numpy as np

from benchmarks.contenders import Run, Spelling
from benchmarks.problems import Array
from benchmarks.with_numpy_spread import spread_by_products, spread_by_steps


def quadratic(A: Array, x: Array) -> Run:
    """A x is the gradient's half and gives the value: one pass over A."""

    def run():
        Ax = A @ x
        return np.vdot(x, Ax).real, 2 * Ax

    return run


def coulomb(J: Array, C: Array) -> Run:
    """F = J P with J as a matrix in place: one matrix-vector product reads J once, and F serves value and gradient."""
    n = len(C)
    rows = J.reshape(n * n, n * n)

    def run():
        P = C.conj() @ C.T
        FC = (rows @ P.ravel()).reshape(n, n) @ C
        return np.vdot(C, FC).real, 4 * FC

    return run


def coulomb_half(J: Array, C: Array) -> Run:
    """F is Hermitian: rows (p, q) with p ≤ q are enough, which lie together for each p. Half of J is read."""
    n = len(C)
    F = np.empty((n, n), complex)

    def run():
        P = (C.conj() @ C.T).ravel()
        for p in range(n):
            np.matmul(J[p, p:].reshape(n - p, n * n), P, out=F[p, p:])
            F[p:, p] = F[p, p:].conj()
        FC = F @ C
        return np.vdot(C, FC).real, 4 * FC

    return run


def restricted(h: Array, V: Array, C: Array) -> Run:
    """Slab by slab: V(p, ·, ·, ·) is read from memory for the Coulomb term, and from the cache for the exchange term.

    V(p, r, q, s) = V(p, r, s, q), so that both are matrix-vector products on the slab as it lies.
    """
    n = len(C)
    J, K = np.empty((n, n)), np.empty((n, n))

    def run():
        P = C @ C.T
        p = P.ravel()
        for slab, Jp, Kp in zip(V, J, K, strict=True):
            np.matmul(slab.reshape(n, n * n), p, out=Jp)
            np.matmul(p, slab.reshape(n * n, n), out=Kp)
        G = 2 * J - K + h
        return np.vdot(P, G + h), 4 * (G @ C)

    return run


def restricted_whole(h: Array, V: Array, C: Array) -> Run:
    """The same in two products over all of V: two passes over memory, no loop."""
    n = len(C)

    def run():
        P = C @ C.T
        p = P.ravel()
        G = 2 * (V.reshape(n * n, n * n) @ p).reshape(n, n) - p @ V.reshape(n, n * n, n) + h
        return np.vdot(P, G + h), 4 * (G @ C)

    return run


def hessian(J: Array, C: Array, k: Array) -> Run:
    """J (P, dP), where dP is the change of the density along k: two matrix-vector products, twelve rows at a time.

    The rows are in the cache for the second product. A product with two columns at once would pack J first.
    """
    n = len(C)
    rows = J.reshape(n * n, n * n)
    F, dF = np.empty(n * n, complex), np.empty(n * n, complex)
    block = 12

    def run():
        P = C.conj() @ C.T
        kC = k.conj() @ C.T
        dP = (kC + kC.conj().T).ravel()
        p = P.ravel()
        for start in range(0, n * n, block):
            part = slice(start, start + block)
            np.matmul(rows[part], p, out=F[part])
            np.matmul(rows[part], dP, out=dF[part])
        f = F.reshape(n, n)
        return np.vdot(P, F.conj()).real, 4 * (f @ k + dF.reshape(n, n) @ C)

    return run


def hessian_whole(J: Array, C: Array, k: Array) -> Run:
    """The same in two products over all of J."""
    n = len(C)
    rows = J.reshape(n * n, n * n)

    def run():
        P = C.conj() @ C.T
        kC = k.conj() @ C.T
        F = (rows @ P.ravel()).reshape(n, n)
        dF = (rows @ (kC + kC.conj().T).ravel()).reshape(n, n)
        return np.vdot(C, F @ C).real, 4 * (F @ k + dF @ C)

    return run


def hessian_half(J: Array, C: Array, k: Array) -> Run:
    """Rows (p, q) with p ≤ q alone, since J P and J dP are Hermitian: half of J is read, once."""
    n = len(C)
    F, dF = np.empty((n, n), complex), np.empty((n, n), complex)

    def run():
        P = (C.conj() @ C.T).ravel()
        kC = k.conj() @ C.T
        dP = (kC + kC.conj().T).ravel()
        for p in range(n):
            rows = J[p, p:].reshape(n - p, n * n)
            np.matmul(rows, P, out=F[p, p:])
            np.matmul(rows, dP, out=dF[p, p:])
            F[p:, p] = F[p, p:].conj()
            dF[p:, p] = dF[p, p:].conj()
        return np.vdot(C, F @ C).real, 4 * (F @ k + dF @ C)

    return run


def polyadic(T: Array, A: Array, B: Array, C: Array) -> Run:
    """|T|² − 2⟨T, A∘B∘C⟩ + |A∘B∘C|²: T meets the factors in two products, the rest is of the size of the factors.

    Near convergence the loss is a small difference of large terms: at a relative residual of 10⁻⁷, 1 % is rounding.
    """
    return _polyadic(T, A, B, C, None)


def polyadic_cached(T: Array, A: Array, B: Array, C: Array) -> Run:
    """The same with |T|², which no factor changes, computed once."""
    return _polyadic(T, A, B, C, np.vdot(T, T))


def _polyadic(T: Array, A: Array, B: Array, C: Array, norm: float | None) -> Run:
    (n, m, o), r = T.shape, A.shape[1]
    rows = T.reshape(n * m, o)
    AB, TC = np.empty((n, m, r)), np.empty((n * m, r))

    def run():
        np.multiply(A[:, None], B, out=AB)
        Z = np.matmul(rows, C, out=TC).reshape(n, m, r)
        X, Y = np.einsum("ijr,jr->ir", Z, B), np.einsum("ijr,ir->jr", Z, A)
        Z = rows.T @ AB.reshape(n * m, r)
        a, b, c = A.T @ A, B.T @ B, C.T @ C
        value = (np.vdot(rows, rows) if norm is None else norm) - 2 * np.vdot(C, Z) + np.vdot(a * b, c)
        return value, 2 * (A @ (b * c) - X), 2 * (B @ (a * c) - Y), 2 * (C @ (a * b) - Z)

    return run


def polyadic_residual(T: Array, A: Array, B: Array, C: Array) -> Run:
    """The residual in one buffer: one product makes it, two use it."""
    (n, m, o), r = T.shape, A.shape[1]
    rows, D, AB, DC = T.reshape(n * m, o), np.empty((n * m, o)), np.empty((n, m, r)), np.empty((n * m, r))

    def run():
        ab = np.multiply(A[:, None], B, out=AB).reshape(n * m, r)
        np.subtract(np.matmul(ab, C.T, out=D), rows, out=D)
        Z = np.matmul(D, C, out=DC).reshape(n, m, r)
        X, Y = np.einsum("ijr,jr->ir", Z, B), np.einsum("ijr,ir->jr", Z, A)
        return np.vdot(D, D), 2 * X, 2 * Y, 2 * (D.T @ ab)

    return run


def cubic(T: Array, x: Array) -> Run:
    """T x as a matrix-vector product on T as it lies; what remains is of size n²."""
    n = len(x)
    rows = T.reshape(n * n, n)

    def run():
        Txx = (rows @ x).reshape(n, n) @ x
        return Txx @ x, 3 * Txx

    return run


def cubic_packed(T: Array, x: Array) -> Run:
    """Rows (i, j) with i ≤ j, packed beforehand: half of T is read, and T x is symmetric."""
    n = len(x)
    upper = np.triu_indices(n)
    rows = T[upper]
    Tx = np.zeros((n, n))

    def run():
        Tx[upper] = rows @ x
        Txx = Tx @ x + x @ Tx - Tx.diagonal() * x
        return Txx @ x, 3 * Txx

    return run


def perceptron(X: Array, Y: Array, U: Array, W: Array) -> Run:
    """Five matrix products, the least there are; all else in place, in two buffers."""
    H, R = np.empty((len(X), U.shape[1])), np.empty(Y.shape)
    S = np.empty_like(H)

    def run():
        np.tanh(np.matmul(X, U, out=H), out=H)
        np.subtract(np.matmul(H, W, out=R), Y, out=R)
        value = np.vdot(R, R)
        np.multiply(R, 2, out=R)
        to_W = H.T @ R
        np.matmul(R, W.T, out=S)
        np.subtract(1, np.multiply(H, H, out=H), out=H)
        return value, X.T @ np.multiply(S, H, out=S), to_W

    return run


SPELLINGS = {
    "quadratic": (Spelling("one pass", quadratic),),
    "coulomb": (Spelling("one pass", coulomb), Spelling("half of J", coulomb_half, plain=False)),
    "restricted": (Spelling("two passes", restricted_whole), Spelling("by slabs", restricted)),
    "hessian": (
        Spelling("two passes", hessian_whole),
        Spelling("by blocks of rows", hessian),
        Spelling("half of J", hessian_half, plain=False),
    ),
    "spread": (Spelling("small products", spread_by_steps), Spelling("one product a point", spread_by_products)),
    "polyadic": (
        Spelling("residual", polyadic_residual),
        Spelling("expanded", polyadic, plain=False),
        Spelling("expanded, |T|² kept", polyadic_cached, plain=False),
    ),
    "cubic": (Spelling("one pass", cubic), Spelling("packed rows", cubic_packed, plain=False)),
    "perceptron": (Spelling("in place", perceptron),),
}
