"""Objectives with shares in groups that arrays of integers tell, and in masks."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.by_hand import Array
from benchmarks.fields.cases import case


def _shares(c: Array, u: Array, groups: int) -> tuple[Array, Array]:
    """log Σ exp(u) of each group, and the share of each entry in its own."""
    most = np.full(groups, -np.inf)
    np.maximum.at(most, c, u)
    e = np.exp(u - most[c])
    total = np.bincount(c, e, groups)
    return most + np.log(total), e / total[c]


@case(
    "conditional logit, 100,000 alternatives in 20,000 sets, 10 attributes",
    lambda r: [
        np.sort(r.integers(0, 20_000, 100_000)),
        r.normal(size=(100_000, 10)),
        (r.random(100_000) < 0.2).astype(float),
        r.random(20_000),
        r.normal(size=10),
    ],
    """(g::(N{R}) -> N{G}, X::RM{R,k}, y::RV{R}, w::RV{G}) -> (b::RV{k}) ->
  -sum(r, w(g(r)) * y(r) * (sum(a, X(r,a)*b(a)) - log(sum(q, g(q) == g(r), exp(sum(a, X(q,a)*b(a)))))))""",
)
def conditional_logit(g: Array, X: Array, y: Array, w: Array, b: Array) -> tuple[Array, ...]:
    u, y = X @ b, w[g] * y
    logarithms, p = _shares(g, u, len(w))
    return -(y @ (u - logarithms[g])), (np.bincount(g, y, len(w))[g] * p - y) @ X


@case(
    "nested logit, 100,000 alternatives in 500 nests",
    lambda r: [r.integers(0, 500, 100_000), r.random(500), r.normal(size=100_000), 0.5 + r.random(500)],
    """(c::(N{n}) -> N{G}, w::RV{G}) -> (u::RV{n}, s::RV{G}) ->
  sum(g, w(g) * s(g) * log(sum(j, c(j) == g, exp(u(j) / s(g)))))""",
)
def nested_logit(c: Array, w: Array, u: Array, s: Array) -> tuple[Array, ...]:
    scaled = u / s[c]
    logarithms, p = _shares(c, scaled, 500)
    value = w * s
    return value @ logarithms, w[c] * p, w * (logarithms - np.bincount(c, scaled * p, 500))


@case(
    "graph attention, 5,000 nodes, 50,000 edges, 16 channels",
    lambda r: [
        r.integers(0, 5000, 50_000),
        r.integers(0, 5000, 50_000),
        r.normal(size=(5000, 16)),
        r.normal(size=(5000, 16)),
        r.normal(size=(16, 16)) / 4,
        r.normal(size=16),
        r.normal(size=16),
    ],
    """(src::(N{E}) -> N{n}, dst::(N{E}) -> N{n}, X::RM{n,f}, Y::RM{n,d}) -> (W::RM{d,f}, a::RV{d}, b::RV{d}) -> begin
  h = (i, k) -> sum(q, W(k,q) * X(i,q))
  e = m -> tanh(sum(k, a(k) * h(dst(m),k) + b(k) * h(src(m),k)))
  p = m -> exp(e(m)) / sum(l, dst(l) == dst(m), exp(e(l)))
  o = (i, k) -> sum(m, dst(m) == i, p(m) * h(src(m),k))
  sum((i, k), (o(i,k) - Y(i,k))^2)
end""",
)
def graph_attention(src: Array, dst: Array, X: Array, Y: Array, W: Array, a: Array, b: Array) -> tuple[Array, ...]:
    n = len(X)
    h = X @ W.T
    e = np.tanh((h @ a)[dst] + (h @ b)[src])
    _, p = _shares(dst, e, n)
    M = sparse.csr_matrix((p, (dst, src)), (n, n))
    r = M @ h - Y
    cotangent = 2 * r
    h_bar = M.T @ cotangent
    p_bar = np.einsum("ij,ij->i", cotangent[dst], h[src])
    e_bar = p * (p_bar - np.bincount(dst, p * p_bar, n)[dst]) * (1 - e * e)
    by_dst, by_src = np.bincount(dst, e_bar, n), np.bincount(src, e_bar, n)
    h_bar += by_dst[:, None] * a + by_src[:, None] * b
    return np.vdot(r, r), h_bar.T @ X, by_dst @ h, by_src @ h


@case(
    "supervised contrastive loss, 600 x 32, 20 classes",
    lambda r: [r.integers(0, 20, 600), r.normal(size=(600, 32)) / 3],
    """(c::(N{n}) -> N{K}) -> (Z::RM{n,d}) ->
  -sum((i, j), i != j and c(i) == c(j), sum(a, Z(i,a)*Z(j,a)) - logsumexp(k, k != i, sum(a, Z(i,a)*Z(k,a))))""",
)
def supervised_contrastive(c: Array, Z: Array) -> tuple[Array, ...]:
    S = Z @ Z.T
    np.fill_diagonal(S, -np.inf)
    most = S.max(axis=1)
    P = np.exp(S - most[:, None])
    total = P.sum(axis=1)
    P /= total[:, None]
    np.fill_diagonal(S, 0)
    alike = (c[:, None] == c).astype(float)
    np.fill_diagonal(alike, 0)
    count = alike.sum(axis=1)
    P *= count[:, None]
    value = count @ (most + np.log(total)) - np.vdot(alike, S)
    return value, (P + P.T) @ Z - 2 * alike @ Z


@case(
    "causal attention, 400 x 64",
    lambda r: [r.normal(size=(400, 64)), r.normal(size=(400, 64)), *(r.normal(size=(64, 64)) / 8 for _ in range(3))],
    """(X::RM{n,d}, Y::RM{n,d}) -> (Q::RM{d,d}, K::RM{d,d}, V::RM{d,d}) -> begin
  q = (i, a) -> sum(b, Q(a,b) * X(i,b))
  k = (i, a) -> sum(b, K(a,b) * X(i,b))
  v = (i, a) -> sum(b, V(a,b) * X(i,b))
  o = (i, a) -> sum(j, softmax(l, l <= i, sum(c, q(i,c) * k(l,c)) / sqrt(d))(j) * v(j,a))
  sum((i, a), (o(i,a) - Y(i,a))^2)
end""",
)
def causal_attention(X: Array, Y: Array, Q: Array, K: Array, V: Array) -> tuple[Array, ...]:
    q, k, v = X @ Q.T, X @ K.T, X @ V.T
    S = q @ k.T
    S /= np.sqrt(X.shape[1])
    S[np.triu_indices(len(X), 1)] = -np.inf
    S -= S.max(axis=1, keepdims=True)
    P = np.exp(S, out=S)
    P /= P.sum(axis=1, keepdims=True)
    r = P @ v - Y
    o_bar = 2 * r
    P_bar = o_bar @ v.T
    P_bar -= np.einsum("ij,ij->i", P, P_bar)[:, None]
    S_bar = P * P_bar
    S_bar /= np.sqrt(X.shape[1])
    return np.vdot(r, r), (S_bar @ k).T @ X, (S_bar.T @ q).T @ X, (P.T @ o_bar).T @ X
