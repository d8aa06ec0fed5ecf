"""Objectives of several fields beside an expert's code: `python -m benchmarks.objectives [WORD …]` prints a row each.

Value and gradient in NumPy and SciPy on one thread: the compiled function, and code by hand (`by_hand.py`).
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from typing import TypeAlias

import numpy as np
from scipy import linalg, sparse, special

import combdiff as cd
from benchmarks.by_hand import HEAD, Array, ByHand, Drawn, line

Case: TypeAlias = tuple[str, Drawn, ByHand]


def graph_layer(a: Array, b: Array, w: Array, X: Array, Y: Array, W: Array) -> tuple[Array, ...]:
    AX = sparse.csr_array((w, (b, a)), shape=(len(X), len(X))) @ X
    h = np.tanh(AX @ W)
    R = h - Y
    return (R * R).sum(), AX.T @ (2 * R * (1 - h * h))


def graph_layers(a: Array, b: Array, w: Array, X: Array, Y: Array, W: Array, V: Array) -> tuple[Array, ...]:
    A = sparse.csr_array((w, (b, a)), shape=(len(X), len(X)))
    AX = A @ X
    h = np.maximum(AX @ W, 0)
    R = A @ (h @ V) - Y
    G = A.T @ (2 * R)
    return (R * R).sum(), AX.T @ ((G @ V.T) * (h > 0)), h.T @ G


def morse(a: Array, b: Array, D: Array, k: Array, r: Array, x: Array) -> tuple[Array, ...]:
    d = x[a] - x[b]
    R = np.sqrt(np.einsum("ec,ec->e", d, d))
    q = np.exp(-k * (R - r))
    g = (2 * D * k * (1 - q) * q / R)[:, None] * d
    G = [np.bincount(a, g[:, c], len(x)) - np.bincount(b, g[:, c], len(x)) for c in range(3)]
    return D @ (1 - q) ** 2, np.stack(G, axis=1)


def negative_binomial(X: Array, y: Array, w: Array, s: Array) -> tuple[Array, ...]:
    mu, r = np.exp(X @ w), np.exp(s)
    p = np.log(r / (r + mu))
    value = (special.gammaln(y + r) - special.gammaln(r) + r * p + y * np.log(mu / (r + mu))).sum()
    by_s = r * (special.digamma(y + r) - special.digamma(r) + p + 1 - (y + r) / (r + mu)).sum()
    return value, X.T @ (y - (y + r) * mu / (r + mu)), by_s


def truss(E: Array, B: Array, f: Array, A: Array) -> tuple[Array, ...]:
    u = linalg.cho_solve(linalg.cho_factor((B.T * (E * A)) @ B), f)
    s = B @ u
    return f @ u, -E * s * s


def huber(X: Array, Y: Array, d: Array, c: Array, W: Array) -> tuple[Array, ...]:
    R = X @ W - Y
    C = np.clip(R, -d, d)
    size = np.sqrt((W * W).sum(1))
    return (C * (R - C / 2)).sum() + c * size.sum(), X.T @ C + c * W / size[:, None]


def phase_field(k: Array, c: Array) -> tuple[Array, ...]:
    dx, dy, q = c[1:] - c[:-1], c[:, 1:] - c[:, :-1], c * c - 1
    g = q * c
    h = k * dx
    g[1:] += h
    g[:-1] -= h
    h = k * dy
    g[:, 1:] += h
    g[:, :-1] -= h
    return np.vdot(q, q) / 4 + k / 2 * (np.vdot(dx, dx) + np.vdot(dy, dy)), g


def ranking(o: Array, X: Array, w: Array) -> tuple[Array, ...]:
    t = (X @ w)[o]
    m = t.max(1, keepdims=True)
    E = np.exp(t - m)
    S = np.cumsum(E[:, ::-1], 1)[:, ::-1]
    G = 1 - E * np.cumsum(1 / S, 1)
    return (t - m - np.log(S)).sum(), X.T @ np.bincount(o.ravel(), G.ravel(), len(X))


def wishart(S: Array, nu: Array, L: Array) -> tuple[Array, ...]:
    SL = S @ L
    return nu / 2 * np.vdot(SL, L) - nu * np.linalg.slogdet(L)[1], nu * SL - nu * np.linalg.inv(L).T


def pair_energies(e: Array, f: Array, B: Array) -> tuple[Array, ...]:
    o, v, _ = B.shape
    M = B.reshape(o * v, -1)
    integrals = (M @ M.T).reshape(o, v, o, v)
    T = (2 * integrals - integrals.transpose(0, 3, 2, 1)) / (e[:, None, None, None] - f[:, None, None] + e[:, None] - f)
    return np.vdot(integrals, T), 4 * (T.reshape(o * v, o * v) @ M).reshape(B.shape)


def groups(g: Array, u: Array, x: Array) -> tuple[Array, ...]:
    n, k = np.bincount(g), len(u)
    d = x - (np.bincount(g, x, k) / n)[g]
    s = np.bincount(g, d * d, k) / n + 1
    G = d * (2 * u / (s * n))[g]
    return u @ np.log(s), G - (np.bincount(g, G, k) / n)[g]


GRAPH = "a::(N{e}) -> N{n}, b::(N{e}) -> N{n}"


def spectrum(w: Array, x: Array) -> tuple[Array, ...]:
    X = np.fft.fft(x)
    power = X.real**2 + X.imag**2
    return w @ power**2, 4 * len(x) * np.fft.ifft(w * power * X).real


def plane_waves(v: Array, f: Array) -> tuple[Array, ...]:
    F = np.fft.fft2(f)
    density = F.real**2 + F.imag**2
    return (v * density ** (4 / 3)).sum(), 8 / 3 * f.size * np.fft.ifft2(v * np.cbrt(density) * F)


def split_step(V: Array, g: Array, psi: Array, steps: int = 200) -> tuple[Array, ...]:
    n = len(psi)
    kinetic = np.exp(-1j * (2 * np.pi * np.arange(n) / n) ** 2 / 20)
    u, before = psi, []
    for _ in range(steps):
        b = np.fft.ifft(np.fft.fft(u) * kinetic)
        before.append(b)
        u = b * np.exp(-0.1j * (V + g * (b.real**2 + b.imag**2)))
    place = np.arange(n)
    value, k = place @ (u.real**2 + u.imag**2), 2 * place * u
    for b in reversed(before):
        e = k * np.exp(0.1j * (V + g * (b.real**2 + b.imag**2)))
        k = e - 0.2 * g * b * (b.conj() * e).imag
        k = np.fft.ifft(np.fft.fft(k) * kinetic.conj())
    return value, k


def blur(h: Array, y: Array, x: Array) -> tuple[Array, ...]:
    H = np.fft.rfft(h)
    r = np.fft.irfft(H * np.fft.rfft(x), len(x)) - y
    return r @ r, 2 * np.fft.irfft(H.conj() * np.fft.rfft(r), len(x))


def poses(v: Array, w: Array, q: Array) -> tuple[Array, ...]:
    a, b, c, d = q.T
    x, y, z = v.T
    R = [
        [1 - 2 * (c * c + d * d), 2 * (b * c - d * a), 2 * (b * d + c * a)],
        [2 * (b * c + d * a), 1 - 2 * (b * b + d * d), 2 * (c * d - b * a)],
        [2 * (b * d - c * a), 2 * (c * d + b * a), 1 - 2 * (b * b + c * c)],
    ]
    e, f, g = (row[0] * x + row[1] * y + row[2] * z - w[:, n] for n, row in enumerate(R))
    G = np.empty_like(q)
    G[:, 0] = e * (c * z - d * y) + f * (d * x - b * z) + g * (b * y - c * x)
    G[:, 1] = e * (c * y + d * z) + f * (c * x - 2 * b * y - a * z) + g * (d * x + a * y - 2 * b * z)
    G[:, 2] = e * (b * y - 2 * c * x + a * z) + f * (b * x + d * z) + g * (d * y - a * x - 2 * c * z)
    G[:, 3] = e * (b * z - 2 * d * x - a * y) + f * (a * x - 2 * d * y + c * z) + g * (b * x + c * y)
    return e @ e + f @ f + g @ g, 4 * G


def _edges(r: np.random.Generator, e: int, n: int) -> list[Array]:
    return [r.integers(0, n, e), r.integers(0, n, e)]


CASES: dict[str, Case] = {
    "a layer of a graph network, 20,000 edges": (
        f"({GRAPH}, w::RV{{e}}, X::RM{{n, m}}, Y::RM{{n, o}}) -> (W::RM{{m, o}}) -> begin\n"
        "  h = (v, k) -> tanh(sum(e, delta(b(e), v, w(e) * sum(d, X(a(e), d) * W(d, k)))))\n"
        "  sum((v, k), (h(v, k) - Y(v, k))^2)\nend",
        lambda r: [
            *_edges(r, 20_000, 2000),
            r.random(20_000),
            *(r.normal(size=s) / 8 for s in ((2000, 64), (2000, 16), (64, 16))),
        ],
        graph_layer,
    ),
    "two layers, 50,000 edges": (
        f"({GRAPH}, w::RV{{e}}, X::RM{{n, m}}, Y::RM{{n, o}}) -> (W::RM{{m, p}}, V::RM{{p, o}}) -> begin\n"
        "  h = (v, k) -> relu(sum(e, delta(b(e), v, w(e) * sum(d, X(a(e), d) * W(d, k)))))\n"
        "  y = (v, k) -> sum(e, delta(b(e), v, w(e) * sum(d, h(a(e), d) * V(d, k))))\n"
        "  sum((v, k), (y(v, k) - Y(v, k))^2)\nend",
        lambda r: [
            *_edges(r, 50_000, 5000),
            r.random(50_000),
            *(r.normal(size=s) / 8 for s in ((5000, 32), (5000, 32), (32, 32), (32, 32))),
        ],
        graph_layers,
    ),
    "Morse bonds, 20,000": (
        f"({GRAPH}, D::RV{{e}}, k::RV{{e}}, r::RV{{e}}) -> (x::RM{{n, 3}}) -> begin\n"
        "  R = i -> sqrt(sum(c, (x(a(i), c) - x(b(i), c))^2))\n"
        "  sum(i, D(i) * (1 - exp(-k(i) * (R(i) - r(i))))^2)\nend",
        lambda r: [
            np.arange(20_000) // 2,
            (np.arange(20_000) // 2 + r.integers(1, 9999, 20_000)) % 10_000,
            *(r.random(20_000) for _ in range(3)),
            r.normal(size=(10_000, 3)),
        ],
        morse,
    ),
    "negative binomial regression, 20,000 × 20": (
        "(X::RM{n, p}, y::RV{n}) -> (w::RV{p}, s::R) -> begin\n"
        "  mu = i -> exp(sum(j, X(i, j) * w(j)))\n  r = exp(s)\n"
        "  sum(i, lgamma(y(i) + r) - lgamma(r) + r * log(r / (r + mu(i))) + y(i) * log(mu(i) / (r + mu(i))))\nend",
        lambda r: [
            r.normal(size=(20_000, 20)),
            r.poisson(2, 20_000) * 1.0,
            r.normal(size=20) / 10,
            np.array(0.2),
        ],
        negative_binomial,
    ),
    "compliance of a truss, 400 × 1,200": (
        "(E::RV{m}, B::RM{m, n}, f::RV{n}) -> (A::RV{m}) -> begin\n"
        "  K = (i, j) -> sum(e, B(e, i) * E(e) * A(e) * B(e, j))\n  u = K \\ f\n  sum(i, f(i) * u(i))\nend",
        lambda r: [r.random(1200) + 0.5, r.normal(size=(1200, 400)), r.normal(size=400), r.random(1200) + 0.5],
        truss,
    ),
    "Huber's loss with a group lasso, 3,000 × 60 × 40": (
        "(X::RM{n, p}, Y::RM{n, k}, d::R, c::R) -> (W::RM{p, k}) -> begin\n"
        "  R = (i, l) -> sum(j, X(i, j) * W(j, l)) - Y(i, l)\n"
        "  sum((i, l), where(abs(R(i, l)) <= d, R(i, l)^2 / 2, d * (abs(R(i, l)) - d / 2)))"
        " + c * sum(j, sqrt(sum(l, W(j, l)^2)))\nend",
        lambda r: [
            r.normal(size=(3000, 60)),
            r.normal(size=(3000, 40)),
            np.array(1.0),
            np.array(0.3),
            r.normal(size=(60, 40)),
        ],
        huber,
    ),
    "phase field, 600 × 500": (
        "(k::R) -> (c::RM{n, m}) -> sum((i, j), (c(i, j)^2 - 1)^2) / 4"
        " + k / 2 * sum((i, j), i < n - 1, (c(i + 1, j) - c(i, j))^2)"
        " + k / 2 * sum((i, j), j < m - 1, (c(i, j + 1) - c(i, j))^2)",
        lambda r: [np.array(0.5), r.normal(size=(600, 500))],
        phase_field,
    ),
    "ranking by lists, 2,000 of 10": (
        "(o::(N{q}, N{k}) -> N{n}, X::RM{n, p}) -> (w::RV{p}) -> begin\n  s = i -> sum(j, X(i, j) * w(j))\n"
        "  sum((a, b), s(o(a, b)) - log(sum(c, b <= c, exp(s(o(a, c))))))\nend",
        lambda r: [
            np.argsort(r.random((2000, 1000)), 1)[:, :10].copy(),
            r.normal(size=(1000, 30)),
            r.normal(size=30) / 5,
        ],
        ranking,
    ),
    "Wishart density by a factor, n = 200": (
        "(S::Sym{n}, nu::R) -> (L::RM{n, n}) -> nu / 2 * tr(L' * S * L) - nu * logabsdet(L)",
        lambda r: [
            (lambda Z: Z @ Z.T / 200)(r.normal(size=(200, 200))),
            np.array(10.0),
            r.normal(size=(200, 200)) + 20 * np.eye(200),
        ],
        wishart,
    ),
    "second-order pair energies, 8 × 40 × 100": (
        "(e::RV{o}, f::RV{v}) -> (B::(N{o}, N{v}, N{Q}) -> R) -> begin\n"
        "  I = (i, a, j, b) -> sum(q, B(i, a, q) * B(j, b, q))\n"
        "  sum((i, a, j, b), I(i, a, j, b) * (2 * I(i, a, j, b) - I(i, b, j, a)) / (e(i) + e(j) - f(a) - f(b)))\nend",
        lambda r: [-1 - r.random(8), 1 + r.random(40), r.normal(size=(8, 40, 100))],
        pair_energies,
    ),
    "power spectrum, 4,096 values": (
        "(w::RV) -> (x::RV) -> sum(w .* abs2.(fft(x)) .^ 2)",
        lambda r: [r.random(4096), r.normal(size=4096) / 100],
        spectrum,
    ),
    "plane waves, 128 × 96": (
        "(v::RM{n, m}) -> (f::CM{n, m}) -> sum((a, b), v(a, b) *"
        " abs2(sum((j, k), f(j, k) * exp(-2 * pi * im * (j * a / n + k * b / m))))^(4/3))",
        lambda r: [r.random((128, 96)), r.normal(size=(128, 96)) + 1j * r.normal(size=(128, 96))],
        plane_waves,
    ),
    "nonlinear Schrödinger equation by split steps, 1,024 values, 200 steps": (
        "(V::RV{n}, g::R) -> (psi::CV{n}) -> begin\n"
        "  u = iterate((u, t) -> begin\n    a = k -> fft(u)(k) * exp(-im * (2 * pi * k / n)^2 / 20)\n"
        "    b = ifft(a)\n    j -> b(j) * exp(-im * (V(j) + g * abs2(b(j))) / 10)\n  end, psi, 200)\n"
        "  sum(j, j * abs2(u(j)))\nend",
        lambda r: [r.random(1024), np.array(0.3), r.normal(size=1024) + 1j * r.normal(size=1024)],
        split_step,
    ),
    "blurred image round a ring, 4,096 values": (
        "@domain Z begin periodic = true end\n"
        "(h::(Z) -> R, y::(Z) -> R) -> (x::(Z) -> R) -> sum(i::Z, (sum(j::Z, h(j) * x(i - j)) - y(i))^2)",
        lambda r: [r.random(4096) / 4096, r.normal(size=4096), r.normal(size=4096)],
        blur,
    ),
    "rotations by quaternions, 20,000": (
        "(v::RM{n, 3}, w::RM{n, 3}) -> (q::RM{n, 4}) -> begin\n"
        "  R = p -> [1 - 2 * (q(p, 2)^2 + q(p, 3)^2), 2 * (q(p, 1) * q(p, 2) - q(p, 3) * q(p, 0)),\n"
        "      2 * (q(p, 1) * q(p, 3) + q(p, 2) * q(p, 0));\n"
        "    2 * (q(p, 1) * q(p, 2) + q(p, 3) * q(p, 0)), 1 - 2 * (q(p, 1)^2 + q(p, 3)^2),\n"
        "      2 * (q(p, 2) * q(p, 3) - q(p, 1) * q(p, 0));\n"
        "    2 * (q(p, 1) * q(p, 3) - q(p, 2) * q(p, 0)), 2 * (q(p, 2) * q(p, 3) + q(p, 1) * q(p, 0)),\n"
        "      1 - 2 * (q(p, 1)^2 + q(p, 2)^2)]\n"
        "  sum(p, norm(R(p) * (j -> v(p, j)) - (j -> w(p, j)))^2)\nend",
        lambda r: [r.normal(size=(20_000, 3)), r.normal(size=(20_000, 3)), r.normal(size=(20_000, 4))],
        poses,
    ),
    "variances within 500 groups of 100,000": (
        "(g::(N{n}) -> N{k}, u::RV{k}) -> (x::RV{n}) -> begin\n"
        "  c = v -> sum(i, delta(g(i), v, 1))\n  m = v -> sum(i, delta(g(i), v, x(i))) / c(v)\n"
        "  s = v -> sum(i, delta(g(i), v, (x(i) - m(v))^2)) / c(v)\n  sum(v, u(v) * log(s(v) + 1))\nend",
        lambda r: [np.r_[np.arange(500), r.integers(0, 500, 99_500)], np.ones(500), r.normal(size=100_000)],
        groups,
    ),
}


def row(name: str) -> str:
    """A line of the table."""
    text, drawn, by_hand = CASES[name]
    return line(name, cd.grad(text).compile(value=True), by_hand, drawn(np.random.default_rng(0)))


if __name__ == "__main__":
    print(HEAD)
    for name in CASES:
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            print(row(name), flush=True)
