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
from typing import Any, TypeAlias

import numpy as np

import combdiff as cd

Array: TypeAlias = Any
Function: TypeAlias = Callable[..., Any]
CALLS = 15


def projected_energy(S: Array, H: Array, C: Array) -> tuple[Array, Array]:
    inverse = np.linalg.solve(C.T @ (S @ C), C.T)
    HX = H @ inverse.T
    return np.vdot(C, HX), 2 * (HX - S @ (inverse.T @ (C.T @ HX)))


def gaussian_process(X: Array, y: Array, s: Array, length: Array) -> tuple[Array, Array, Array]:
    squares = ((X[:, None] - X) ** 2).sum(-1)
    K = np.exp(-squares / (2 * length**2))
    A = K + s**2 * np.eye(len(y))
    inverse = np.linalg.inv(A)
    a = inverse @ y
    G = inverse - np.outer(a, a)
    value = y @ a + np.linalg.slogdet(A)[1]
    return value, 2 * s * np.trace(G), (G * K * squares).sum() / length**3


def ridge(X: Array, y: Array, Z: Array, z: Array, c: Array) -> tuple[Array, Array]:
    factors = np.linalg.inv(X.T @ X + np.exp(c) * np.eye(X.shape[1]))
    w = factors @ (X.T @ y)
    r = Z @ w - z
    return r @ r, -2 * np.exp(c) * ((Z.T @ r) @ (factors @ w))


def precision(X: Array, W: Array) -> tuple[Array, Array]:
    P = W @ W.T + np.eye(len(W))
    XP = X @ P
    G = 2 * X.T @ X - 2 * len(X) * np.linalg.inv(P)
    return (XP * X).sum() - len(X) * np.linalg.slogdet(P)[1], G @ W


def kalman(F: Array, P: Array, Hm: Array, R: Array, e: Array) -> tuple[Array, Array]:
    M = F @ P @ F.T
    S = Hm @ M @ Hm.T + R
    inverse = np.linalg.inv(S)
    a = inverse @ e
    G = Hm.T @ (inverse - np.outer(a, a)) @ Hm
    return e @ a + np.linalg.slogdet(S)[1], G @ F @ P.T + G.T @ F @ P


def orthogonalised(H: Array, P: Array, S: Array) -> tuple[Array, Array]:
    values, V = np.linalg.eigh(S)
    roots = np.sqrt(values)
    X = (V / roots) @ V.T
    XHX = X @ H @ X
    G = V.T @ (H @ X @ P) @ V
    moved = -(G + G.T) / (np.outer(roots, roots) * (roots[:, None] + roots))
    return np.vdot(XHX, P), V @ moved @ V.T


def symmetric(rng: np.random.Generator, n: int) -> Array:
    A = rng.normal(size=(n, n))
    return A @ A.T / n + np.eye(n)


PROBLEMS: dict[str, tuple[str, Function, str, Callable[[np.random.Generator], Sequence[Array]]]] = {
    "(CᵀSC)⁻¹CᵀHC, 60 × 12": (
        "(S::Sym, H::Sym) -> (C::RM) -> tr((C' * S * C) \\ (C' * H * C))",
        projected_energy,
        "lambda S, H, C: jnp.trace(jnp.linalg.solve(C.T @ S @ C, C.T @ H @ C))",
        lambda rng: [symmetric(rng, 60), symmetric(rng, 60), rng.normal(size=(60, 12))],
    ),
    "(CᵀSC)⁻¹CᵀHC, 600 × 100": (
        "(S::Sym, H::Sym) -> (C::RM) -> tr((C' * S * C) \\ (C' * H * C))",
        projected_energy,
        "lambda S, H, C: jnp.trace(jnp.linalg.solve(C.T @ S @ C, C.T @ H @ C))",
        lambda rng: [symmetric(rng, 600), symmetric(rng, 600), rng.normal(size=(600, 100))],
    ),
    "Gaussian process, n = 1,000": (
        """(X::RM, y::RV) -> (s::R, l::R) -> begin
          K = (i, j) -> exp(-sum(d, (X(i, d) - X(j, d))^2) / (2 * l^2))
          y' * ((K + s^2 * I) \\ y) + logdet(K + s^2 * I)
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
        """(P::RM{n, n}, B::RM{m, n}, R::RM{m, m}, e::RV{m}) -> (F::RM{n, n}) -> begin
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
        ours = cd.grad(text).compile(value=True)
        varied = len(ours(*args)) - 1
        contenders = [ours, by_hand, jitted(of_jax, varied, len(args))]
        for found, wanted in zip(ours(*args), by_hand(*args), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9 * np.abs(wanted).max())
        times: list[list[float]] = [[] for _ in contenders]
        for _ in range(CALLS):
            for n, function in enumerate(contenders):
                if function is not None:
                    start = time.perf_counter()
                    function(*args)
                    times[n].append(time.perf_counter() - start)
        a, b, *c = (1e3 * statistics.median(t[1:]) if t else float("nan") for t in times)
        print(f"{name:36} {a:9.3f} {b:9.3f} {a / b:6.2f} {c[0]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
