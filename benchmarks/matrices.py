"""Functions of whole matrices, beside an expert's NumPy and jitted JAX: `python benchmarks/matrices.py` prints rows.

Value and gradient, on one thread: the function that `source(value=True)` defines, code by hand, and, where JAX is
installed, `jax.jit(jax.value_and_grad(…))` in double precision. Times are medians of interleaved calls in one process,
in milliseconds; the ratio is ours / by hand.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
from scipy import linalg

import combdiff as cd

Array: TypeAlias = Any
Function: TypeAlias = Callable[..., Any]
CALLS = 30


def projected_energy(S: Array, H: Array, C: Array) -> tuple[Array, Array]:
    inverse = np.linalg.solve(C.T @ (S @ C), C.T)
    HX = H @ inverse.T
    return np.vdot(C, HX), 2 * (HX - S @ (inverse.T @ (C.T @ HX)))


def gaussian_process(X: Array, y: Array, s: Array, length: Array) -> tuple[Array, Array, Array]:
    lengths = (X * X).sum(1)
    squares = lengths[:, None] + lengths - 2 * X @ X.T
    K = np.exp(squares * (-0.5 / length**2))
    squares *= K
    K.flat[:: len(y) + 1] += s**2
    value, a, half = factorised(K, y)
    trace = np.trace(half) - a @ a
    # the inverse is below its diagonal, on which distances are 0
    return value, 2 * s * trace, (2 * np.vdot(half, squares) - a @ squares @ a) / length**3


def factorised(K: Array, y: Array) -> tuple[Array, Array, Array]:
    """yᵀ K⁻¹ y + log det K, K⁻¹ y, and the lower half of K⁻¹."""
    L = linalg.cholesky(K.T, lower=True, check_finite=False)
    a = linalg.cho_solve((L, True), y, check_finite=False)
    half, _ = linalg.lapack.dpotri(L, lower=1)
    return y @ a + 2 * np.log(np.diagonal(L)).sum(), a, half


def whole(half: Array) -> Array:
    return half + np.tril(half, -1).T


def ridge(X: Array, y: Array, Z: Array, z: Array, c: Array) -> tuple[Array, Array]:
    K = X.T @ X
    K.flat[:: len(K) + 1] += np.exp(c)
    L = linalg.cho_factor(K, lower=True, check_finite=False)
    w = linalg.cho_solve(L, X.T @ y, check_finite=False)
    r = Z @ w - z
    return r @ r, -2 * np.exp(c) * ((Z.T @ r) @ linalg.cho_solve(L, w, check_finite=False))


def precision(X: Array, W: Array) -> tuple[Array, Array]:
    P = W @ W.T + np.eye(len(W))
    L = linalg.cholesky(P, lower=True, check_finite=False)
    half, _ = linalg.lapack.dpotri(L, lower=1)
    XtX = X.T @ X
    G = 2 * XtX - 2 * len(X) * whole(half)
    return np.vdot(XtX, P) - 2 * len(X) * np.log(np.diagonal(L)).sum(), G @ W


def kalman(F: Array, P: Array, Hm: Array, R: Array, e: Array) -> tuple[Array, Array]:
    PF = P @ F.T
    value, a, half = factorised(Hm @ (F @ PF) @ Hm.T + R, e)
    G = Hm.T @ (whole(half) - np.outer(a, a)) @ Hm
    return value, 2 * G @ PF.T


def effective(L: Array, W: Array, V: Array, R: Array, A: Array) -> Array:
    HA = np.tensordot(R, A, axes=([2], [3]))
    HA = np.tensordot(V, HA, axes=([1, 3], [1, 4]))
    HA = np.tensordot(W, HA, axes=([1, 3], [0, 4]))
    return np.tensordot(L, HA, axes=([1, 2], [0, 4]))


def rayleigh(L: Array, W: Array, V: Array, R: Array, A: Array) -> tuple[Array, Array]:
    HA = effective(L, W, V, R, A)
    sides = [t.transpose(2, 1, 0).conj() for t in (L, R)]
    middle = [t.transpose(0, 1, 3, 2).conj() for t in (W, V)]
    norm = np.vdot(A, A).real
    energy = np.vdot(A, HA).real / norm
    return energy, (HA + effective(sides[0], *middle, sides[1], A) - 2 * energy * A) / norm


def orthogonalised(H: Array, P: Array, S: Array) -> tuple[Array, Array]:
    values, V = np.linalg.eigh(S)
    roots = np.sqrt(values)
    X = (V / roots) @ V.T
    XHX = X @ H @ X
    G = V.T @ (H @ X @ P) @ V
    moved = -(G + G.T) / (np.outer(roots, roots) * (roots[:, None] + roots))
    return np.vdot(XHX, P), V @ moved @ V.T


def over_complex(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def symmetric(rng: np.random.Generator, n: int) -> Array:
    A = rng.normal(size=(n, n))
    return A @ A.T / n + np.eye(n)


DMRG = """@space L begin type = (N{D}, N{w}, N{D}) -> C end
@space W begin type = (N{w}, N{w}, N{d}, N{d}) -> C end
(L::L, W::W, V::W, R::L) -> (A::(N{D}, N{d}, N{d}, N{D}) -> C) ->
  real(sum((a, b, c, d, x, y, z, s, t, u, v),
    A(a, s, t, c)' * L(a, x, b) * W(x, y, s, u) * V(y, z, t, v) * R(c, z, d) * A(b, u, v, d))) /
  sum((a, s, t, c), abs2(A(a, s, t, c)))"""


PROBLEMS: dict[str, tuple[str, Function, str, Callable[[np.random.Generator], Sequence[Array]]]] = {
    "(CᵀSC)⁻¹CᵀHC, 60 × 12": (
        "(S::SPD, H::Sym) -> (C::RM) -> tr((C' * S * C) \\ (C' * H * C))",
        projected_energy,
        "lambda S, H, C: jnp.trace(jnp.linalg.solve(C.T @ S @ C, C.T @ H @ C))",
        lambda rng: [symmetric(rng, 60), symmetric(rng, 60), rng.normal(size=(60, 12))],
    ),
    "(CᵀSC)⁻¹CᵀHC, 600 × 100": (
        "(S::SPD, H::Sym) -> (C::RM) -> tr((C' * S * C) \\ (C' * H * C))",
        projected_energy,
        "lambda S, H, C: jnp.trace(jnp.linalg.solve(C.T @ S @ C, C.T @ H @ C))",
        lambda rng: [symmetric(rng, 600), symmetric(rng, 600), rng.normal(size=(600, 100))],
    ),
    "Gaussian process, n = 1,000": (
        """(X::RM, y::RV) -> (s::R, l::R) -> begin
          K::SPD = (i, j) -> exp(-sum(d, (X(i, d) - X(j, d))^2) / (2 * l^2)) + delta(i, j, s^2)
          y' * (K \\ y) + logdet(K)
        end""",
        gaussian_process,
        "lambda X, y, s, l: (lambda A: y @ jnp.linalg.solve(A, y) + jnp.linalg.slogdet(A)[1])"
        "(jnp.exp(-((X[:, None] - X) ** 2).sum(-1) / (2 * l**2)) + s**2 * jnp.eye(len(y)))",
        lambda rng: [rng.normal(size=(1000, 3)), rng.normal(size=1000), np.array(0.3), np.array(0.7)],
    ),
    "ridge, hypergradient, 2,000 × 300": (
        """(X::RM{n, m}, y::RV{n}, Z::RM{k, m}, z::RV{k}) -> (c::R) ->
          norm(Z * ((X' * X + exp(c) * I) \\ (X' * y)) - z)^2""",
        ridge,
        "lambda X, y, Z, z, c: "
        "jnp.sum((Z @ jnp.linalg.solve(X.T @ X + jnp.exp(c) * jnp.eye(X.shape[1]), X.T @ y) - z) ** 2)",
        lambda rng: [
            rng.normal(size=(2000, 300)),
            rng.normal(size=2000),
            rng.normal(size=(500, 300)),
            rng.normal(size=500),
            np.array(0.5),
        ],
    ),
    "precision matrix, 300 × 20": (
        "(X::RM{k, n}) -> (W::RM{n, m}) -> tr(X * (W * W' + I) * X') - k * logdet(W * W' + I)",
        precision,
        "lambda X, W: (lambda P: jnp.sum((X @ P) * X) - len(X) * jnp.linalg.slogdet(P)[1])(W @ W.T + jnp.eye(len(W)))",
        lambda rng: [rng.normal(size=(400, 300)), rng.normal(size=(300, 20))],
    ),
    "Löwdin orthogonalisation, 200": (
        "(H::Sym, P::Sym) -> (S::Sym) -> begin; X = invsqrtm(S); tr(X * H * X * P); end",
        orthogonalised,
        "lambda H, P, S: (lambda X: jnp.sum((X @ H @ X) * P))"
        "((lambda w, V: (V / jnp.sqrt(w)) @ V.T)(*jnp.linalg.eigh(S)))",
        lambda rng: [symmetric(rng, 200), symmetric(rng, 200), symmetric(rng, 200)],
    ),
    "Kalman step, 80 states, 40 data": (
        """(P::SPD{n}, B::RM{m, n}, R::SPD{m}, e::RV{m}) -> (F::RM{n, n}) -> begin
          S = B * (F * P * F') * B' + R
          e' * (S \\ e) + logdet(S)
        end""",
        lambda P, B, R, e, F: kalman(F, P, B, R, e),
        "lambda P, B, R, e, F: (lambda S: e @ jnp.linalg.solve(S, e) + jnp.linalg.slogdet(S)[1])"
        "(B @ (F @ P @ F.T) @ B.T + R)",
        lambda rng: [
            symmetric(rng, 80),
            rng.normal(size=(40, 80)),
            symmetric(rng, 40),
            rng.normal(size=40),
            rng.normal(size=(80, 80)) / 9,
        ],
    ),
    "DMRG's Rayleigh quotient, D = 60": (
        DMRG,
        rayleigh,
        "lambda L, W, V, R, A: jnp.real(jnp.einsum('astc,axb,xysu,yztv,czd,buvd', A.conj(), L, W, V, R, A, "
        "optimize=True)) / jnp.sum(jnp.abs(A) ** 2)",
        lambda rng: [
            over_complex(rng, *shape)
            for shape in ((60, 5, 60), (5, 5, 2, 2), (5, 5, 2, 2), (60, 5, 60), (60, 2, 2, 60))
        ],
    ),
}


def jitted(text: str, varied: int, count: int) -> Function | None:
    """JAX's value and gradient, waited for; None where JAX is not installed."""
    if find_spec("jax") is None:
        return None
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    # the text is of this file
    function = eval(text, {"jnp": jnp})
    compiled = jax.jit(jax.value_and_grad(function, tuple(range(count - varied, count))))
    return lambda *args: jax.block_until_ready(compiled(*args))


def main() -> None:
    print(f"{'':36} {'ours':>9} {'by hand':>9} {'ratio':>6} {'JAX':>9}")
    for name, (text, by_hand, of_jax, data) in PROBLEMS.items():
        args = data(np.random.default_rng(0))
        ours = cd.grad(text).compile(value=True, distances="expanded")
        varied = len(ours(*args)) - 1
        contenders = [ours, by_hand, jitted(of_jax, varied, len(args))]
        for found, wanted in zip(ours(*args), by_hand(*args), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9 * np.abs(wanted).max())
        times: list[list[float]] = [[] for _ in contenders]
        # in every order: what follows JAX's threads and its memory takes some 100 µs more
        orders = [*permutations(range(len(contenders)))]
        for turn in range(CALLS):
            for n in orders[turn % len(orders)]:
                function = contenders[n]
                if function is not None:
                    start = time.perf_counter()
                    function(*args)
                    times[n].append(time.perf_counter() - start)
        a, b, *c = (1e3 * statistics.median(t[1:]) if t else float("nan") for t in times)
        print(f"{name:36} {a:9.3f} {b:9.3f} {a / b:6.2f} {c[0]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
