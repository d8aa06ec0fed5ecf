"""Contender "numpy", the Wannier spread: V_b(k) = M_b(k) U(k + b) serves both rho and the gradient.

rho_b(n) = Σ_k,p conj(U(p, n, k)) V_b(p, n, k), and the gradient is 4 Σ_b w_b conj(rho_b(n)) V_b(p, n, k). Matrices of
one point lie together in memory, so that every array here is a stack of matrices. From M(p, q, k, b) =
M(q, p, k + b, −b)* follows rho_−b = conj(rho_b): half of them are computed.
"""

from __future__ import annotations

import numpy as np

from benchmarks.contenders import Run
from benchmarks.problems import Array


def _neighbours(lattice: tuple[int, ...], X: Array) -> tuple[Array, Array]:
    """The point k + b for each b and k, and where −b stands in the list."""
    index = np.arange(int(np.prod(lattice))).reshape(lattice)
    ahead = np.stack([np.roll(index, tuple(-step), axis=(0, 1, 2)).ravel() for step in X])
    return ahead, np.array([np.flatnonzero((-step == X).all(axis=1))[0] for step in X])


def _value(rho: Array, w: Array) -> Array:
    return w @ (rho.real**2 + rho.imag**2).sum(axis=1)


def spread_by_steps(M: Array, w: Array, U: Array, X: Array) -> Run:
    """One b at a time: gather U(k + b), a product for each point, the sums; the buffers stay in the cache."""
    lattice, N, n = U.shape[2:], len(U), U.shape[1]
    ahead, back = _neighbours(lattice, X)
    u = U.transpose(2, 3, 4, 0, 1).reshape(-1, N, n)
    m = M.transpose(2, 3, 4, 5, 0, 1).reshape(len(u), len(X), N, N)
    gathered, V, R = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    rho, ones = np.empty((len(w), n), complex), np.ones(len(u) * N)

    def run():
        gradient, bra = np.zeros_like(u), u.conj()
        for b in range(len(w)):
            np.take(u, ahead[b], axis=0, out=gathered, mode="clip")
            np.matmul(m[:, b], gathered, out=V)
            if b < back[b]:
                rho[b] = ones @ np.multiply(bra, V, out=R).reshape(-1, n)
                rho[back[b]] = rho[b].conj()
            np.multiply(V, 4 * w[b] * rho[b].conj(), out=V)
            np.add(gradient, V, out=gradient)
        return _value(rho, w), gradient.reshape(*lattice, N, n).transpose(3, 4, 0, 1, 2)

    return run


def spread_by_products(M: Array, w: Array, U: Array, X: Array) -> Run:
    """All b in one product a point, (b, q) × p · conj(U(k)) = W: large enough for the matrix product to be quick.

    V_b(k) = conj(W_−b(k + b)) by the symmetry of M, and rho_b(n) = Σ_k,q W_b(q, n, k) U(q, n, k + b).
    """
    lattice, N, n = U.shape[2:], len(U), U.shape[1]
    ahead, back = _neighbours(lattice, X)
    u = U.transpose(2, 3, 4, 0, 1).reshape(-1, N, n)
    rows = M.transpose(2, 3, 4, 5, 1, 0).reshape(len(u), len(X) * N, N)
    W = np.empty((len(u), len(X), N, n), complex)
    gathered, R = np.empty_like(u), np.empty_like(u)
    rho, ones = np.empty((len(w), n), complex), np.ones(len(u) * N)

    def run():
        bar, bra = np.zeros_like(u), u.conj()
        np.matmul(rows, bra, out=W.reshape((*rows.shape[:2], n)))
        for b in range(len(w)):
            if b < back[b]:
                np.take(u, ahead[b], axis=0, out=gathered, mode="clip")
                rho[b] = ones @ np.multiply(gathered, W[:, b], out=R).reshape(-1, n)
                rho[back[b]] = rho[b].conj()
            np.take(W[:, back[b]], ahead[b], axis=0, out=gathered, mode="clip")
            np.add(bar, np.multiply(gathered, 4 * w[b] * rho[b], out=R), out=bar)
        return _value(rho, w), np.conj(bar, out=bar).reshape(*lattice, N, n).transpose(3, 4, 0, 1, 2)

    return run
