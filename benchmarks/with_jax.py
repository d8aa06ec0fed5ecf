"""Contender "jax": `jit` of `value_and_grad`, the objective as the formula is written and in a few other spellings.

Double precision. JAX's gradient at a complex point is the conjugate of ours: it is conjugated inside of the compiled
function. What JAX needs from the arrays (their place, contiguous copies) is made before the clock starts. Complex
tensors taken apart into real and imaginary parts were slower, and are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.contenders import Run, Spelling
from benchmarks.problems import Array

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def _waiting(function: Callable[..., object], arguments: tuple[object, ...]) -> Run:
    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*arguments))


def _spelling(
    label: str,
    objective: Callable[..., jax.Array],
    unknowns: tuple[str, ...],
    constants: dict[str, Callable] | None = None,
) -> Spelling:
    """Value and gradient by reverse mode; `constants` says how captured arrays are laid out beforehand."""

    def make(**arrays: Array) -> Run:
        given = {name: (constants or {}).get(name, lambda a: a)(a) for name, a in arrays.items()}
        fixed = {name: jnp.asarray(np.ascontiguousarray(a)) for name, a in given.items() if name not in unknowns}
        at = tuple(jnp.asarray(np.ascontiguousarray(given[name])) for name in unknowns)

        def both(fixed, *at):
            def energy(*at):
                return objective(**fixed, **dict(zip(unknowns, at, strict=True)))

            value, gradients = jax.value_and_grad(energy, argnums=tuple(range(len(at))))(*at)
            return value, *(g.conj() for g in gradients)

        return _waiting(both, (fixed, *at))

    return Spelling(label, make)


def _hessian(label: str, objective: Callable[..., jax.Array], reverse: bool = False) -> Spelling:
    """Value and Hessian-vector product: forward over reverse, or reverse over reverse."""

    def make(J: Array, C: Array, k: Array) -> Run:
        def both(J, C, k):
            def gradient(C):
                value, g = jax.value_and_grad(lambda C: objective(J=J, C=C))(C)
                return g.conj(), value

            if not reverse:
                _, product, value = jax.jvp(gradient, (C,), (k,), has_aux=True)
                return value, product
            product, value = jax.grad(lambda C: _along(gradient(C), k), has_aux=True)(C)
            return value, product.conj()

        return _waiting(both, tuple(jnp.asarray(a) for a in (J, C, k)))

    return Spelling(label, make)


def _along(gradient, k):
    g, value = gradient
    return jnp.vdot(k, g).real, value


def _density(C: jax.Array) -> jax.Array:
    return C.conj() @ C.T


def coulomb_written(J, C):
    return jnp.einsum("pi,qi,rj,sj,pqrs->", C.conj(), C, C.conj(), C, J).real


def coulomb_density(J, C):
    P = _density(C)
    return jnp.einsum("pq,pqrs,rs->", P, J, P).real


def coulomb_rows(J, C):
    P, n = _density(C).ravel(), len(C)
    return (P @ (J.reshape(n * n, n * n) @ P)).real


def coulomb_tensordot(J, C):
    P = _density(C)
    return jnp.sum(P * jnp.tensordot(J, P, 2)).real


def coulomb_sum(J, C):
    P = _density(C).ravel()
    return jnp.sum(P * jnp.sum(J.reshape(len(P), len(P)) * P, axis=1)).real


def restricted_written(h, V, C):
    P = jnp.einsum("pi,qi->pq", C, C)
    J, K = jnp.einsum("pqrs,rs->pq", V, P), jnp.einsum("prqs,rs->pq", V, P)
    return jnp.einsum("pq,pq->", P, 2 * h + 2 * J - K)


def restricted_whole(h, V, C):
    P = C @ C.T
    two = jnp.einsum("pq,pqrs,rs->", P, V, P) * 2 - jnp.einsum("pq,prqs,rs->", P, V, P)
    return 2 * jnp.vdot(P, h) + two


def restricted_rows(h, V, C):
    P, n = C @ C.T, len(C)
    p = P.ravel()
    J = (V.reshape(n * n, n * n) @ p).reshape(n, n)
    return jnp.vdot(P, 2 * h + 2 * J - p @ V.reshape(n, n * n, n))


def restricted_combined(h, V, C):
    P = C @ C.T
    G = jnp.sum((2 * V - V.transpose(0, 2, 1, 3)) * P, axis=(2, 3))
    return jnp.vdot(P, 2 * h + G)


def spread_written(M, w, U, X):
    lattice = U.shape[2:]
    points = jnp.stack(jnp.meshgrid(*(jnp.arange(n) for n in lattice), indexing="ij"), -1)
    ahead = (points[..., None, :] + X) % jnp.array(lattice)
    moved = U[:, :, ahead[..., 0], ahead[..., 1], ahead[..., 2]]
    rho = jnp.einsum("pnxyz,pqxyzb,qnxyzb->nb", U.conj(), M, moved)
    return jnp.sum(w * jnp.abs(rho) ** 2)


def _ahead(lattice, X):
    points = jnp.arange(int(np.prod(lattice))).reshape(lattice)
    axes = jnp.stack(jnp.meshgrid(*(jnp.arange(n) for n in lattice), indexing="ij"), -1)
    k = (axes[..., None, :] + X) % jnp.array(lattice)
    return points[k[..., 0], k[..., 1], k[..., 2]].reshape(-1, len(X))


def spread_matrices(M, w, U, X):
    """M as (k, b, p, q), U as (k, p, n): stacks of products."""
    u = U.transpose(2, 3, 4, 0, 1).reshape(-1, *U.shape[:2])
    V = M @ u[_ahead(U.shape[2:], X)]
    return _spread(w, jnp.einsum("kpn,kbpn->bn", u.conj(), V))


def spread_summed(M, w, U, X):
    """The same with the sum over k written as a product and a sum."""
    u = U.transpose(2, 3, 4, 0, 1).reshape(-1, *U.shape[:2])
    V = M @ u[_ahead(U.shape[2:], X)]
    return _spread(w, jnp.sum(u.conj()[:, None] * V, axis=(0, 2)))


def spread_products(M, w, U, X):
    """One product a point: (b, q) × p times conj(U(k))."""
    u = U.transpose(2, 3, 4, 0, 1).reshape(-1, *U.shape[:2])
    k, b, p, q = M.shape
    W = (M.swapaxes(-1, -2).reshape(k, b * q, p) @ u.conj()).reshape(k, b, q, -1)
    return _spread(w, jnp.sum(W * u[_ahead(U.shape[2:], X)], axis=(0, 2)))


def spread_steps(M, w, U, X):
    """One b at a time, M as (b, k, p, q)."""
    u = U.transpose(2, 3, 4, 0, 1).reshape(-1, *U.shape[:2])
    ahead = _ahead(U.shape[2:], X)
    return _spread(w, jnp.stack([jnp.sum(u.conj() * (M[b] @ u[ahead[:, b]]), axis=(0, 1)) for b in range(len(w))]))


def _spread(w, rho):
    return w @ jnp.sum(rho.real**2 + rho.imag**2, axis=1)


def polyadic_written(T, A, B, C):
    return jnp.sum((T - jnp.einsum("ir,jr,kr->ijk", A, B, C)) ** 2)


def polyadic_products(T, A, B, C):
    AB = (A[:, None] * B).reshape(-1, A.shape[1])
    return jnp.sum((T.reshape(len(AB), -1) - AB @ C.T) ** 2)


def polyadic_expanded(T, A, B, C):
    AB = (A[:, None] * B).reshape(-1, A.shape[1])
    gram = (A.T @ A) * (B.T @ B) * (C.T @ C)
    return jnp.vdot(T, T) - 2 * jnp.sum(AB * (T.reshape(len(AB), -1) @ C)) + jnp.sum(gram)


def polyadic_expanded_einsum(T, A, B, C):
    gram = (A.T @ A) * (B.T @ B) * (C.T @ C)
    return jnp.vdot(T, T) - 2 * jnp.einsum("ijk,ir,jr,kr->", T, A, B, C) + jnp.sum(gram)


def perceptron(X, Y, U, W):
    return jnp.sum((jnp.tanh(X @ U) @ W - Y) ** 2)


def perceptron_written(X, Y, U, W):
    H = jnp.tanh(jnp.einsum("si,ij->sj", X, U))
    return jnp.sum((jnp.einsum("sj,jk->sk", H, W) - Y) ** 2)


def _stack(M: Array) -> Array:
    return M.transpose(2, 3, 4, 5, 0, 1).reshape(-1, M.shape[5], *M.shape[:2])


_COULOMB = {
    "einsum": coulomb_written,
    "density, einsum": coulomb_density,
    "J as a matrix": coulomb_rows,
    "tensordot": coulomb_tensordot,
    "products and sums": coulomb_sum,
}
SPELLINGS = {
    "quadratic": (
        _spelling("einsum", lambda A, x: jnp.einsum("i,ij,j->", x.conj(), A, x).real, ("x",)),
        _spelling("A @ x", lambda A, x: jnp.vdot(x, A @ x).real, ("x",)),
        _spelling("x @ A", lambda A, x: ((x.conj() @ A) @ x).real, ("x",)),
    ),
    "coulomb": tuple(_spelling(label, f, ("C",)) for label, f in _COULOMB.items()),
    "restricted": (
        _spelling("einsum", restricted_written, ("C",)),
        _spelling("einsum of three", restricted_whole, ("C",)),
        _spelling("V as matrices", restricted_rows, ("C",)),
        _spelling("2V − V×", restricted_combined, ("C",)),
    ),
    "hessian": (
        *(_hessian(f"{label}, forward over reverse", f) for label, f in _COULOMB.items()),
        _hessian("J as a matrix, reverse over reverse", coulomb_rows, reverse=True),
    ),
    "spread": (
        _spelling("einsum", spread_written, ("U",)),
        _spelling("matrices", spread_matrices, ("U",), {"M": _stack}),
        _spelling("matrices, products and sums", spread_summed, ("U",), {"M": _stack}),
        _spelling("one neighbour at a time", spread_steps, ("U",), {"M": lambda M: _stack(M).swapaxes(0, 1)}),
        _spelling("one product a point", spread_products, ("U",), {"M": _stack}),
    ),
    "polyadic": (
        _spelling("einsum", polyadic_written, ("A", "B", "C")),
        _spelling("products", polyadic_products, ("A", "B", "C")),
        _spelling("expanded", polyadic_expanded, ("A", "B", "C")),
        _spelling("expanded, einsum", polyadic_expanded_einsum, ("A", "B", "C")),
    ),
    "cubic": (
        _spelling("einsum", lambda T, x: jnp.einsum("ijk,i,j,k->", T, x, x, x), ("x",)),
        _spelling("T @ x @ x @ x", lambda T, x: T @ x @ x @ x, ("x",)),
        _spelling(
            "x @ (x @ (T as a matrix @ x))",
            lambda T, x: x @ (T.reshape(-1, len(x)) @ x).reshape(len(x), -1) @ x,
            ("x",),
        ),
    ),
    "perceptron": (
        _spelling("einsum", perceptron_written, ("U", "W")),
        _spelling("@", perceptron, ("U", "W")),
    ),
}
