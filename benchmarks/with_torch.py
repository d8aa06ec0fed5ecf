"""Contender "torch": the objective with `@`, einsum and reverse mode, in double precision.

PyTorch's gradient at a complex point is ours. Each problem in the spelling that was the quickest of a few.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.contenders import Run, Spelling
from benchmarks.problems import Array

torch.set_num_threads(1)


def _tensor(a: Array) -> torch.Tensor:
    return torch.from_numpy(np.array(a))


def _spelling(label: str, objective: Callable[..., torch.Tensor], unknowns: tuple[str, ...]) -> Spelling:
    def make(**arrays: Array) -> Run:
        given = {name: _tensor(a) for name, a in arrays.items()}
        at = [given[name].requires_grad_() for name in unknowns]

        def run():
            value = objective(**given)
            return value.detach(), *torch.autograd.grad(value, at)

        return run

    return Spelling(label, make)


def _hessian(label: str, objective: Callable[..., torch.Tensor]) -> Spelling:
    """Value and Hessian-vector product: reverse over reverse."""

    def make(J: Array, C: Array, k: Array) -> Run:
        j, c, direction = _tensor(J), _tensor(C).requires_grad_(), _tensor(k)

        def run():
            value = objective(J=j, C=c)
            (gradient,) = torch.autograd.grad(value, c, create_graph=True)
            along = (gradient.real * direction.real + gradient.imag * direction.imag).sum()
            return value.detach(), *torch.autograd.grad(along, c)

        return run

    return Spelling(label, make)


def coulomb_written(J, C):
    P = torch.einsum("pi,qi->pq", C.conj(), C)
    return torch.einsum("pq,pqrs,rs->", P, J, P).real


def coulomb_rows(J, C):
    P, n = (C.conj() @ C.T).reshape(-1), len(C)
    return (P @ (J.reshape(n * n, n * n) @ P)).real


def restricted_written(h, V, C):
    P = C @ C.T
    J, K = torch.einsum("pqrs,rs->pq", V, P), torch.einsum("prqs,rs->pq", V, P)
    return (P * (2 * h + 2 * J - K)).sum()


def restricted_rows(h, V, C):
    P, n = C @ C.T, len(C)
    p = P.reshape(-1)
    J = (V.reshape(n * n, n * n) @ p).reshape(n, n)
    return (P * (2 * h + 2 * J - p @ V.reshape(n, n * n, n))).sum()


def spread(M, w, U, X):
    u, m = U.permute(2, 3, 4, 0, 1), M.permute(5, 2, 3, 4, 0, 1)
    rho = torch.stack(
        [
            (u.conj() * (m[b] @ torch.roll(u, tuple(-int(c) for c in step), (0, 1, 2)))).sum(dim=(0, 1, 2, 3))
            for b, step in enumerate(X)
        ]
    )
    return w @ (rho.real**2 + rho.imag**2).sum(dim=1)


def spread_gathered(M, w, U, X):
    n = U.shape[2]
    points = torch.cartesian_prod(*[torch.arange(n)] * 3)
    ahead = ((points[:, None] + X) % n) @ torch.tensor([n * n, n, 1])
    u = U.permute(2, 3, 4, 0, 1).reshape(-1, *U.shape[:2])
    V = M.permute(2, 3, 4, 5, 0, 1).reshape(len(u), len(X), *U.shape[:2]) @ u[ahead]
    rho = (u.conj()[:, None] * V).sum(dim=(0, 2))
    return w @ (rho.real**2 + rho.imag**2).sum(dim=1)


def polyadic_written(T, A, B, C):
    return ((T - torch.einsum("ir,jr,kr->ijk", A, B, C)) ** 2).sum()


def polyadic_expanded(T, A, B, C):
    AB = (A[:, None] * B).reshape(-1, A.shape[1])
    gram = (A.T @ A) * (B.T @ B) * (C.T @ C)
    return (T * T).sum() - 2 * (AB * (T.reshape(len(AB), -1) @ C)).sum() + gram.sum()


def perceptron(X, Y, U, W):
    return ((torch.tanh(X @ U) @ W - Y) ** 2).sum()


SPELLINGS = {
    "quadratic": (_spelling("A @ x", lambda A, x: torch.vdot(x, A @ x).real, ("x",)),),
    "coulomb": (_spelling("einsum", coulomb_written, ("C",)), _spelling("J as a matrix", coulomb_rows, ("C",))),
    "restricted": (
        _spelling("einsum", restricted_written, ("C",)),
        _spelling("V as matrices", restricted_rows, ("C",)),
    ),
    "hessian": (_hessian("einsum", coulomb_written), _hessian("J as a matrix", coulomb_rows)),
    "spread": (_spelling("gathered", spread_gathered, ("U",)), _spelling("rolled", spread, ("U",))),
    "polyadic": (
        _spelling("einsum", polyadic_written, ("A", "B", "C")),
        _spelling("expanded", polyadic_expanded, ("A", "B", "C")),
    ),
    "cubic": (_spelling("T @ x @ x @ x", lambda T, x: T @ x @ x @ x, ("x",)),),
    "perceptron": (_spelling("@", perceptron, ("U", "W")),),
}
