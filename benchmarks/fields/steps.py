"""Particles, graphs, time series and matrix functions: objectives, most with loops, and their gradients by hand."""

from __future__ import annotations

import numpy as np
from scipy import linalg, signal, sparse, special

from benchmarks.by_hand import Array
from benchmarks.fields.cases import case


@case(
    "Burgers equation, 1000 values, 300 steps",
    lambda r: [r.normal(size=1000), np.array(0.1), np.array(0.1), r.normal(size=1000) / 3],
    """@domain X begin periodic = true end
(y::(X) -> R, c::R, nu::R) -> (u::(X) -> R) -> begin
  w = iterate((u, t) -> (i::X) -> u(i) - c*u(i)*(u(i+1) - u(i-1)) + nu*(u(i+1) - 2*u(i) + u(i-1)), u, 300)
  sum(i::X, (w(i)-y(i))^2)
end""",
)
def burgers(y: Array, c: Array, nu: Array, u: Array) -> tuple[Array, ...]:
    S = []
    for _ in range(300):
        S.append(u)
        p, q = np.roll(u, -1), np.roll(u, 1)
        u = u - c * u * (p - q) + nu * (p - 2 * u + q)
    r = u - y
    g = 2 * r
    for u in reversed(S):
        p, q = np.roll(u, -1), np.roll(u, 1)
        cu = c * g * u
        g = g - c * g * (p - q) - 2 * nu * g + np.roll(nu * g - cu, 1) + np.roll(nu * g + cu, -1)
    return r @ r, g


@case(
    "Lennard-Jones with a list of 60,000 pairs",
    lambda r: [
        (lambda a: a)(np.repeat(np.arange(4000), 15)),
        (np.repeat(np.arange(4000), 15) + r.integers(1, 3999, 60000)) % 4000,
        r.normal(size=(4000, 3)) * 20,
    ],
    """(a::(N{e}) -> N{n}, b::(N{e}) -> N{n}) -> (x::RM{n,3}) -> begin
  d = i -> sum(c, (x(a(i),c) - x(b(i),c))^2)
  sum(i, 4*(1/d(i)^6 - 1/d(i)^3))
end""",
    """(a::(N{e}) -> N{n}, b::(N{e}) -> N{n}) -> (x::RM{n,3}) -> begin
  r = i -> norm(c -> x(a(i),c) - x(b(i),c))
  sum(i, 4*((1/r(i))^12 - (1/r(i))^6))
end""",
)
def lj(a: Array, b: Array, x: Array) -> tuple[Array, ...]:
    d = x[a] - x[b]
    i2 = 1 / np.einsum("ec,ec->e", d, d)
    i6 = i2 * i2 * i2
    f = (-48 * i6 * i6 + 24 * i6) * i2
    d *= f[:, None]
    G = np.stack([np.bincount(a, d[:, c], len(x)) - np.bincount(b, d[:, c], len(x)) for c in range(3)], 1)
    return 4 * (i6 * i6 - i6).sum(), G


@case(
    "Kuramoto coupling, n = 1000",
    lambda r: [(lambda Z: Z + Z.T)(r.normal(size=(1000, 1000))), r.normal(size=1000) * 3],
    "(K::Sym{n}) -> (t::RV{n}) -> sum((i,j), K(i,j)*cos(t(i)-t(j)))",
    "(K::Sym{n}) -> (t::RV{n}) -> sum((i,j), K(i,j)*(cos(t(i))*cos(t(j)) + sin(t(i))*sin(t(j))))",
)
def kuramoto(K: Array, t: Array) -> tuple[Array, ...]:
    c, s = np.cos(t), np.sin(t)
    Z = K @ np.stack([c, s], 1)
    kc, ks = Z[:, 0], Z[:, 1]
    return c @ kc + s @ ks, 2 * (c * ks - s * kc)


@case(
    "PageRank iterations, 50,000 edges, 20 steps",
    lambda r: [
        r.integers(0, 5000, 50000),
        r.integers(0, 5000, 50000),
        np.full(5000, 1 / 5000),
        r.random(5000),
        r.random(50000) / 10,
    ],
    """(a::(N{e}) -> N{n}, b::(N{e}) -> N{n}, v::RV{n}, y::RV{n}) -> (w::RV{e}) -> begin
  x = iterate((x, t) -> (i::N{n}) -> 0.85*sum(e, delta(b(e), i, w(e)*x(a(e)))) + 0.15*v(i), v, 20)
  sum(i, x(i)*y(i))
end""",
)
def pagerank(a: Array, b: Array, v: Array, y: Array, w: Array) -> tuple[Array, ...]:
    A = sparse.csr_array((w, (b, a)), shape=(len(v), len(v)))
    x, X = v, []
    for _ in range(20):
        X.append(x)
        x = 0.85 * (A @ x) + 0.15 * v
    k = y
    g = np.zeros(len(a))
    At = A.T.tocsr()
    for x_ in reversed(X):
        g += k[b] * x_[a]
        k = 0.85 * (At @ k)
    return x @ y, 0.85 * g


@case(
    "graph smoothness, 50,000 edges x 16",
    lambda r: [
        r.integers(0, 5000, 50000),
        r.integers(0, 5000, 50000),
        r.random(50000),
        r.normal(size=(5000, 16)),
        r.normal(size=(5000, 16)),
    ],
    "(a::(N{e}) -> N{n}, b::(N{e}) -> N{n}, w::RV{e}, Y::RM{n,d}) -> (X::RM{n,d}) -> sum((e,c),"
    " w(e)*(X(a(e),c)-X(b(e),c))^2) + sum((i,c), (X(i,c)-Y(i,c))^2)",
)
def smooth(a: Array, b: Array, w: Array, Y: Array, X: Array) -> tuple[Array, ...]:
    n, e = len(X), len(a)
    (
        sparse.csr_array((np.r_[np.ones(e), -np.ones(e)], np.r_[a, b], np.arange(2 * e + 1)[::1][:0]), shape=(e, n))
        if 0
        else None
    )
    d = X[a] - X[b]
    w[:, None] * d
    A = sparse.csr_array((w, (a, b)), shape=(n, n))
    A = A + A.T
    G = 2 * (X * (np.bincount(a, w, n) + np.bincount(b, w, n))[:, None] - A @ X)
    r = X - Y
    return np.vdot(G, X) / 2 + np.vdot(r, r), G + 2 * r


@case(
    "GARCH(1,1), 5000 returns",
    lambda r: [r.normal(size=5000), np.array(0.1), np.array(0.1), np.array(0.8)],
    """(x::RV{T}) -> (o::R, a::R, b::R) -> begin
  s = scan((s, t) -> o + a*x(t)^2 + b*s, 1, T)
  sum(t::N{T}, log(s(t)) + x(t)^2/s(t))/2
end""",
)
def garch(x: Array, o: Array, a: Array, b: Array) -> tuple[Array, ...]:
    T = len(x)
    q = x * x
    f = o + a * q
    s = np.empty(T)
    s[0] = 1
    s[1:] = signal.lfilter([1], [1, -b], f[:-1], zi=[b * 1.0])[0]
    h = (1 / s - q / s**2) / 2
    k = signal.lfilter([1], [1, -b], h[::-1])[::-1]
    v = (np.log(s) + q / s).sum() / 2
    return v, k[1:].sum(), k[1:] @ q[:-1], k[1:] @ s[:-1]


@case(
    "hidden Markov model, 500 steps, 20 states",
    lambda r: [r.integers(0, 30, 500), r.normal(size=20), r.normal(size=(20, 20)), r.normal(size=(20, 30))],
    """(o::(N{T}) -> N{k}) -> (p::RV{n}, A::RM{n,n}, B::RM{n,k}) -> begin
  a = iterate((a, t) -> (j::N{n}) -> logsumexp(i, a(i) + A(i,j)) + B(j,o(t)), p, T)
  logsumexp(j, a(j))
end""",
)
def hmm(o: Array, p: Array, A: Array, B: Array) -> tuple[Array, ...]:
    E, Et = np.exp(A), np.exp(A.T).copy()
    T, n = len(o), len(p)
    Bo = np.exp(B.T)[o]
    al = np.empty((T + 1, n))
    c = np.empty(T)
    m0 = p.max()
    a = np.exp(p - m0)
    s0 = a.sum()
    a = a / s0
    al[0] = a
    for t in range(T):
        a = (Et @ a) * Bo[t]
        c[t] = a.sum()
        a = a / c[t]
        al[t + 1] = a
    v = np.log(c).sum() + m0 + np.log(s0)
    be = np.empty((T + 1, n))
    be[T] = 1
    b = be[T]
    Z = np.empty((T, n))
    for t in range(T - 1, -1, -1):
        Z[t] = z = Bo[t] * b / c[t]
        b = E @ z
        be[t] = b
    xi = E * (al[:-1].T @ Z)
    g = al[1:] * be[1:]
    gB = np.stack([np.bincount(o, g[:, i], B.shape[1]) for i in range(n)])
    return v, al[0] * be[0], xi, gB


@case(
    "hidden Markov model, scaled, 500 steps, 20 states",
    lambda r: [r.random((500, 20)), (lambda A: A / A.sum(1, keepdims=True))(r.random((20, 20)))],
    """(B::RM{T,n}) -> (A::RM{n,n}) -> begin
  (a, l) = iterate(((a, l), t) -> begin
    u = j -> sum(i, a(i)*A(i,j))*B(t,j)
    c = sum(j, u(j))
    (j -> u(j)/c, l + log(c))
  end, (i -> 1/n, 0), T)
  l
end""",
)
def hmms(B: Array, A: Array) -> tuple[Array, ...]:
    T, n = B.shape
    al = np.empty((T + 1, n))
    c = np.empty(T)
    al[0] = 1 / n
    a = al[0]
    At = A.T
    for t in range(T):
        a = (At @ a) * B[t]
        c[t] = a.sum()
        a = a / c[t]
        al[t + 1] = a
    Z = np.empty((T, n))
    b = np.ones(n)
    for t in range(T - 1, -1, -1):
        Z[t] = z = B[t] * b / c[t]
        b = A @ z
    return np.log(c).sum(), al[:-1].T @ Z


@case(
    "Holt's smoothing, 500 series x 200",
    lambda r: [r.normal(size=(200, 500)), r.random(500) * 0.5, r.random(500) * 0.5],
    """(y::RM{T,n}) -> (a::RV{n}, b::RV{n}) -> begin
  (l, s, e) = iterate(((l, s, e), t) -> begin
    r = (i::N{n}) -> y(t,i) - l(i) - s(i)
    ((i::N{n}) -> l(i) + s(i) + a(i)*r(i), (i::N{n}) -> s(i) + a(i)*b(i)*r(i), (i::N{n}) -> e(i) + r(i)^2)
  end, ((i::N{n}) -> 0, (i::N{n}) -> 0, (i::N{n}) -> 0), T)
  sum(i, e(i))
end""",
)
def holt(y: Array, a: Array, b: Array) -> tuple[Array, ...]:
    T, n = y.shape
    R = np.empty((T, n))
    level = np.zeros(n)
    s = np.zeros(n)
    ab = a * b
    for t in range(T):
        level = level + s
        R[t] = r = y[t] - level
        level = level + a * r
        s = s + ab * r
    L = np.zeros(n)
    S = np.zeros(n)
    ga = np.zeros(n)
    gab = np.zeros(n)
    for t in range(T - 1, -1, -1):
        r = R[t]
        ga += L * r
        gab += S * r
        k = 2 * r + a * L + ab * S
        S = S + L - k
        L = L - k
    return np.vdot(R, R), ga + gab * b, gab * a


@case(
    "factor analysis, 300 x 10",
    lambda r: [
        (lambda Z: Z @ Z.T / 300 + np.eye(300))(r.normal(size=(300, 300))),
        r.normal(size=(300, 10)),
        r.random(300) + 0.5,
    ],
    """(S::Sym{n}) -> (W::RM{n,k}, d::RV{n}) -> logdet(W*W' + Diagonal(d)) + tr(inv(W*W' + Diagonal(d))*S)""",
)
def fa(S: Array, W: Array, d: Array) -> tuple[Array, ...]:
    V = W @ W.T
    V[np.diag_indices(len(V))] += d
    L = linalg.cholesky(V, lower=True)
    P = linalg.lapack.dpotri(L, lower=1)[0]
    P = np.tril(P) + np.tril(P, -1).T
    PS = P @ S
    G = P - PS @ P
    return 2 * np.log(np.diag(L)).sum() + np.trace(PS), 2 * G @ W, np.diag(G).copy()


@case(
    "acyclicity (NOTEARS), n = 150",
    lambda r: [r.normal(size=(400, 150)), np.array(1.0), r.normal(size=(150, 150)) / 30],
    "(X::RM{n,d}, rho::R) -> (W::RM{d,d}) -> sum((i,j), (X(i,j) - sum(k, X(i,k)*W(k,j)))^2)/(2*n) +"
    " rho*(tr(expm(W .* W)) - d)",
)
def notears(X: Array, rho: Array, W: Array) -> tuple[Array, ...]:
    n, d = X.shape
    R = X - X @ W
    E = linalg.expm(W * W)
    return np.vdot(R, R) / (2 * n) + rho * (np.trace(E) - d), -X.T @ R / n + 2 * rho * E.T * W


@case(
    "Chebyshev graph filter, n = 400, 20 terms",
    lambda r: [
        (lambda Z: (Z + Z.T) / 60)(r.normal(size=(400, 400))),
        r.normal(size=(400, 20)),
        r.normal(size=(400, 20)),
        r.normal(size=20),
    ],
    """(L::Sym{n}, X::RM{n,k}, Y::RM{n,k}) -> (c::RV{K}) -> begin
  (a, b, z) = iterate(((a, b, z), t) -> 
    (b, (i::N{n}, j::N{k}) -> 2*sum(l, L(i,l)*b(l,j)) - a(i,j), (i::N{n}, j::N{k}) -> z(i,j) + c(t)*a(i,j)),
    (X, (i::N{n}, j::N{k}) -> sum(l, L(i,l)*X(l,j)), (i::N{n}, j::N{k}) -> 0), K)
  sum((i,j), (z(i,j)-Y(i,j))^2)
end""",
)
def cheb(L: Array, X: Array, Y: Array, c: Array) -> tuple[Array, ...]:
    K = len(c)
    A = np.empty((K, *X.shape))
    A[0] = X
    A[1] = L @ X
    for t in range(2, K):
        A[t] = 2 * (L @ A[t - 1]) - A[t - 2]
    F = A.reshape(K, -1)
    r = c @ F - Y.ravel()
    return r @ r, 2 * F @ r


@case(
    "neural ODE (RK4), 200 x 16, 40 steps",
    lambda r: [
        r.normal(size=(200, 16)),
        r.normal(size=(200, 16)),
        r.normal(size=(16, 32)) / 4,
        r.normal(size=(32, 16)) / 6,
    ],
    """(x0::RM{b,n}, y::RM{b,n}) -> (W::RM{n,m}, V::RM{m,n}) -> begin
  f = (x::RM) -> (i::N{b}, j::N{n}) -> sum(k, tanh(sum(l, x(i,l)*W(l,k)))*V(k,j))
  x = iterate((x, t) -> begin
    k1 = f(x)
    k2 = f(x + 0.05*k1)
    k3 = f(x + 0.05*k2)
    k4 = f(x + 0.1*k3)
    x + (0.1/6)*(k1 + 2*k2 + 2*k3 + k4)
  end, x0, 40)
  sum((i,j), (x(i,j)-y(i,j))^2)
end""",
)
def node(x0: Array, y: Array, W: Array, V: Array) -> tuple[Array, ...]:
    x, saved = x0, []
    h = 0.1
    for _ in range(40):
        hs, xs = [], []
        acc = 0
        k = None
        for a, wt in ((0, 1), (h / 2, 2), (h / 2, 2), (h, 1)):
            xx = x if k is None else x + a * k
            hh = np.tanh(xx @ W)
            k = hh @ V
            acc = acc + wt * k
            hs.append(hh)
            xs.append(xx)
        saved.append((xs, hs))
        x = x + (h / 6) * acc
    r = x - y
    g = 2 * r
    gW, gV = np.zeros_like(W), np.zeros_like(V)
    Wt, Vt = W.T.copy(), V.T.copy()
    for xs, hs in reversed(saved):
        gx = gxx = g
        for n, (_, wt) in reversed(list(enumerate(((0, 1), (h / 2, 2), (h / 2, 2), (h, 1))))):
            gk = (wt * h / 6) * g
            if n < 3:
                gk = gk + (h / 2, h / 2, h)[n] * gxx
            hh = hs[n]
            gV += hh.T @ gk
            z = (gk @ Vt) * (1 - hh * hh)
            gW += xs[n].T @ z
            gxx = z @ Wt
            gx = gx + gxx
        g = gx
    return np.vdot(r, r), gW, gV


@case(
    "phase retrieval 2000 x 400",
    lambda r: [
        r.normal(size=(2000, 400)) + 1j * r.normal(size=(2000, 400)),
        r.random(2000),
        r.normal(size=400) + 1j * r.normal(size=400),
    ],
    "(A::CM{m,n}, y::RV{m}) -> (x::CV{n}) -> sum(i, (abs2(sum(j, A(i,j)*x(j))) - y(i))^2)",
    "(A::CM{m,n}, y::RV{m}) -> (x::CV{n}) -> norm(abs2.(A*x) - y)^2",
)
def phase(A: Array, y: Array, x: Array) -> tuple[Array, ...]:
    z = A @ x
    r = z.real**2 + z.imag**2 - y
    return r @ r, 4 * ((r * z).conj() @ A).conj()


@case(
    "Sinkhorn loop, 200 x 200, 50 rounds",
    lambda r: [np.full(200, 1 / 200), np.full(200, 1 / 200), r.random((200, 200))],
    """(a::RV{n}, b::RV{m}) -> (C::RM{n,m}) -> begin
  K = (i,j) -> exp(-10*C(i,j))
  (u, v) = iterate(((u, v), t) -> begin
    w = (i::N{n}) -> a(i)/sum(j, K(i,j)*v(j))
    (w, (j::N{m}) -> b(j)/sum(i, K(i,j)*w(i)))
  end, ((i::N{n}) -> 1, (j::N{m}) -> 1), 50)
  sum((i,j), u(i)*K(i,j)*C(i,j)*v(j))
end""",
)
def sinkhorn(a: Array, b: Array, Cc: Array) -> tuple[Array, ...]:
    K = np.exp(-10 * Cc)
    n, m = K.shape
    v = np.ones(m)
    U = np.empty((50, n))
    Vs = np.empty((51, m))
    Vs[0] = v
    for t in range(50):
        U[t] = u = a / (K @ v)
        Vs[t + 1] = v = b / (u @ K)
    KC = K * Cc
    kcv = KC @ v
    val = u @ kcv
    P = np.outer(u, v)
    G = P * K
    gK = P * Cc
    gu, gv = kcv, u @ KC
    Wl, Wr = np.empty((50, n)), np.empty((50, m))
    for t in range(49, -1, -1):
        q = -gv * Vs[t + 1] ** 2 / b
        Wr[t] = q
        gu = (gu if t == 49 else 0) + K @ q
        p = -gu * U[t] ** 2 / a
        Wl[t] = p
        gv = p @ K
    gK += U.T @ Wr + Wl.T @ Vs[:-1]
    return val, G - 10 * K * gK


@case(
    "t-SNE, n = 600",
    lambda r: [
        (lambda Z: (Z + Z.T) / (Z + Z.T).sum())(r.random((600, 600)) * (1 - np.eye(600))),
        r.normal(size=(600, 2)),
    ],
    """(P::Sym{n}) -> (y::RM{n,2}) -> begin
  w = (i,j) -> 1/(1 + sum(c, (y(i,c)-y(j,c))^2))
  Z = sum((i,j), i != j, w(i,j))
  -sum((i,j), i != j, P(i,j)*log(w(i,j)/Z))
end""",
)
def tsne(P: Array, y: Array) -> tuple[Array, ...]:
    s = (y * y).sum(1)
    D = s[:, None] + s - 2 * (y @ y.T)
    D += 1
    w = 1 / D
    np.fill_diagonal(w, 0)
    np.fill_diagonal(D, 1)
    Z = w.sum()
    v = np.vdot(P, np.log(D)) + np.log(Z) * P.sum()
    F = (P.sum() / Z) * w
    F = (P - F) * w
    return v, 4 * (F.sum(1)[:, None] * y - F @ y)


@case(
    "MDS stress, n = 700",
    lambda r: [
        (lambda Z: Z + Z.T)(r.random((700, 700))),
        (lambda Z: Z + Z.T)(r.random((700, 700))),
        r.normal(size=(700, 3)),
    ],
    "(W::Sym{n}, D::Sym{n}) -> (x::RM{n,3}) -> sum((i,j), i < j, W(i,j)*(sqrt(sum(c, (x(i,c)-x(j,c))^2)) - D(i,j))^2)",
    "(W::Sym{n}, D::Sym{n}) -> (x::RM{n,3}) -> sum((i,j), W(i,j)*(norm(c -> x(i,c)-x(j,c)) -"
    " D(i,j))^2)/2 - sum(i, W(i,i)*D(i,i)^2)/2",
)
def mds(W: Array, D: Array, x: Array) -> tuple[Array, ...]:
    q = 0
    for c in range(3):
        t = x[:, c, None] - x[:, c]
        q = q + t * t
    R = np.sqrt(q)
    np.fill_diagonal(R, 1)
    E = R - D
    np.fill_diagonal(E, 0)
    F = W * E
    v = np.vdot(F, E) / 2
    F /= R
    return v, 2 * (F.sum(1)[:, None] * x - F @ x)


@case(
    "skip-gram with negative samples, 5000 x 5, 50",
    lambda r: [
        r.integers(0, 2000, 5000),
        r.integers(0, 2000, 5000),
        r.integers(0, 2000, (5000, 5)),
        r.normal(size=(2000, 50)) / 5,
        r.normal(size=(2000, 50)) / 5,
    ],
    """(u::(N{e}) -> N{v}, p::(N{e}) -> N{v}, q::(N{e},N{s}) -> N{v}) -> (A::RM{v,d}, B::RM{v,d}) ->
  sum(e, softplus(-sum(c, A(u(e),c)*B(p(e),c)))) + sum((e,s), softplus(sum(c, A(u(e),c)*B(q(e,s),c))))""",
)
def sg(u: Array, p: Array, q: Array, A: Array, B: Array) -> tuple[Array, ...]:
    n = len(A)
    e, s = q.shape
    a = A[u]
    b = B[p]
    Q = B[q]
    sp = np.einsum("ec,ec->e", a, b)
    sn = np.matmul(Q, a[:, :, None])[:, :, 0]
    v = np.logaddexp(0, -sp).sum() + np.logaddexp(0, sn).sum()
    gp = -special.expit(-sp)
    gn = special.expit(sn)
    np.arange(e)
    # gradient through sparse matrix n x n of weights
    M = sparse.csr_array((np.r_[gp, gn.ravel()], (np.r_[u, np.repeat(u, s)], np.r_[p, q.ravel()])), shape=(n, n))
    return v, M @ B, M.T @ A


@case(
    "Dirichlet-multinomial 5000 x 10",
    lambda r: [r.poisson(3, (5000, 10)) * 1.0, r.normal(size=10) / 3],
    "(X::RM{n,k}) -> (t::RV{k}) -> begin\n a = j -> exp(t(j))\n s = sum(j, a(j))\n sum(i, lgamma(sum(j,"
    " X(i,j)) + s) - lgamma(s)) - sum((i,j), lgamma(X(i,j)+a(j)) - lgamma(a(j)))\nend",
)
def dm(X: Array, t: Array) -> tuple[Array, ...]:
    a = np.exp(t)
    s = a.sum()
    N = X.sum(1)
    n = len(X)
    v = (
        special.gammaln(N + s).sum()
        - n * special.gammaln(s)
        - (special.gammaln(X + a).sum() - n * special.gammaln(a).sum())
    )
    g = special.digamma(N + s).sum() - n * special.digamma(s) - (special.digamma(X + a).sum(0) - n * special.digamma(a))
    return v, a * g


@case(
    "coupled-cluster-like quadratic term, o 8, v 24",
    lambda r: [
        (lambda Z: Z + Z.transpose(1, 0, 3, 2))(r.normal(size=(8, 8, 24, 24))),
        (lambda Z: Z + Z.transpose(1, 0, 3, 2))(r.normal(size=(8, 8, 24, 24))) / 20,
    ],
    """@space V begin type = (N{o},N{o},N{v},N{v}) -> R; symmetries = (((2,1,4,3), :id),) end
(W::V) -> (T::V) -> begin
  L = (i,j,a,b) -> 2*W(i,j,a,b) - W(j,i,a,b)
  X = (k,i) -> sum((l,c,d), L(k,l,c,d)*T(i,l,c,d))
  Y = (a,c) -> sum((k,l,d), L(k,l,c,d)*T(k,l,a,d))
  sum((i,j,a,b), L(i,j,a,b)*T(i,j,a,b)) + sum((k,i), X(k,i)*X(i,k)) + sum((a,c), Y(a,c)*Y(c,a))
end""",
)
def cc(W: Array, T: Array) -> tuple[Array, ...]:
    o, v = W.shape[0], W.shape[2]
    L = 2 * W - W.transpose(1, 0, 2, 3)
    X = L.reshape(o, -1) @ T.reshape(o, -1).T  # k i
    Lc = L.transpose(2, 0, 1, 3).reshape(v, -1)
    Ta = T.transpose(2, 0, 1, 3).reshape(v, -1)
    Y = Ta @ Lc.T  # a c
    val = np.vdot(L, T) + np.vdot(X, X.T) + np.vdot(Y, Y.T)
    G = L + 2 * (X @ L.reshape(o, -1)).reshape(L.shape) + 2 * (Y.T @ Lc).reshape(v, o, o, v).transpose(1, 2, 0, 3)
    return val, G


@case(
    "squared hinge 10000 x 100",
    lambda r: [r.normal(size=(10000, 100)), np.sign(r.normal(size=10000)), np.array(0.1), r.normal(size=100) / 5],
    "(X::RM{n,p}, y::RV{n}, c::R) -> (w::RV{p}) -> sum(i, relu(1 - y(i)*sum(j, X(i,j)*w(j)))^2) + c*sum(j, w(j)^2)",
    "(X::RM{n,p}, y::RV{n}, c::R) -> (w::RV{p}) -> sum(i, max(0, 1 - y(i)*sum(j, X(i,j)*w(j)))^2) + c*w'*w",
)
def hinge(X: Array, y: Array, c: Array, w: Array) -> tuple[Array, ...]:
    m = np.maximum(1 - y * (X @ w), 0)
    return m @ m + c * (w @ w), 2 * c * w - 2 * ((m * y) @ X)


@case(
    "quantile regression 100000 x 10",
    lambda r: [r.normal(size=(100000, 10)), r.normal(size=100000), np.array(0.3), r.normal(size=10)],
    "(X::RM{n,p}, y::RV{n}, q::R) -> (w::RV{p}) -> sum(i, where(0 <= y(i) - sum(j, X(i,j)*w(j)), q*(y(i)"
    " - sum(j, X(i,j)*w(j))), (q-1)*(y(i) - sum(j, X(i,j)*w(j)))))",
    "(X::RM{n,p}, y::RV{n}, q::R) -> (w::RV{p}) -> begin\n r = i -> y(i) - sum(j, X(i,j)*w(j))\n sum(i,"
    " max(q*r(i), (q-1)*r(i)))\nend",
)
def quant(X: Array, y: Array, q: Array, w: Array) -> tuple[Array, ...]:
    r = y - X @ w
    k = np.where(r >= 0, q, q - 1)
    return k @ r, -(k @ X)


@case(
    "waveform inversion, 400 points, 500 steps",
    lambda r: [np.sin(np.arange(500) / 10), r.normal(size=(500, 3)), r.random(400) / 4],
    """(q::RV{T}, y::RM{T,3}) -> (c::RV{n}) -> begin
  (u, v) = scan(((u, v), t) -> (v, (i::N{n}) -> 2*v(i) - u(i) + c(i)*(where(i < n-1, v(i+1)) +
    where(1 <= i, v(i-1)) - 2*v(i)) + delta(i, 50, q(t))), ((i::N{n}) -> 0, (i::N{n}) -> 0), T)
  sum(t::N{T}, (v(t+1, 100) - y(t,0))^2 + (v(t+1, 200) - y(t,1))^2 + (v(t+1,300) - y(t,2))^2)
end""",
)
def fwi(q: Array, y: Array, c: Array) -> tuple[Array, ...]:
    T, n = len(q), len(c)
    R = [100, 200, 300]
    u = np.zeros(n)
    v = np.zeros(n)
    Ls = np.empty((T, n))
    V = np.empty((T, 3))
    for t in range(T):
        d = Ls[t]
        np.multiply(v, -2, out=d)
        d[:-1] += v[1:]
        d[1:] += v[:-1]
        w = c * d
        w += v
        w += v
        w -= u
        w[50] += q[t]
        u, v = v, w
        V[t] = v[R]
    r = V - y
    np.zeros(n)
    np.zeros(n)  # adjoints of v(t+1), v(t+2) contribution
    g = np.zeros(n)
    ku = np.zeros(n)
    kv = np.zeros(n)
    for t in range(T - 1, -1, -1):
        kv[R] += 2 * r[t]
        g += kv * Ls[t]
        z = c * kv
        nv = ku + 2 * kv - 2 * z
        nv[1:] += z[:-1]
        nv[:-1] += z[1:]
        ku, kv = -kv, nv
    return np.vdot(r, r), g


@case(
    "Hawkes process, 5000 events",
    lambda r: [np.cumsum(r.exponential(size=5000)), np.array(0.5), np.array(0.3), np.array(1.0)],
    """(x::RV{T}) -> (m::R, a::R, b::R) -> begin
  s = scan((s, t) -> exp(-b*where(t < T-1, x(t+1)-x(t)))*(1 + s), 0, T)
  -sum(t::N{T}, log(m + a*s(t))) + m*x(T-1) + a/b*sum(t, 1 - exp(-b*(x(T-1)-x(t))))
end""",
)
def hawkes(x: Array, m: Array, a: Array, b: Array) -> tuple[Array, ...]:
    T = len(x)
    d = np.diff(x)
    e = np.exp(-b * d)
    s = np.empty(T)
    s[0] = 0
    c = 0.0
    el = e.tolist()
    sl = [0.0]
    for k in el:
        c = k * (1 + c)
        sl.append(c)
    s = np.array(sl)
    lam = m + a * s
    q = x[-1] - x
    eq = np.exp(-b * q)
    v = -np.log(lam).sum() + m * x[-1] + a / b * (1 - eq).sum()
    h = -a / lam
    k = 0.0
    ks = []
    for n in range(T - 1, 0, -1):
        k = h[n].item() + k
        ks.append(k)  # adjoint of s[n]
        k *= el[n - 1]
    ks = np.array(ks[::-1])
    gb = -(ks * s[1:] * d).sum() - a / b**2 * (1 - eq).sum() + a / b * (q * eq).sum()
    return v, x[-1] - (1 / lam).sum(), -(s / lam).sum() + (1 - eq).sum() / b, gb


@case(
    "soft repulsion in two dimensions, n = 800",
    lambda r: [np.array(1.0), r.random((800, 2)) * 20],
    "(s::R) -> (x::RM{n,2}) -> sum((i,j), i < j, relu(s - sqrt(sum(c, (x(i,c)-x(j,c))^2)))^2)/2",
)
def rep(s: Array, x: Array) -> tuple[Array, ...]:
    a = x[:, 0, None] - x[:, 0]
    b = x[:, 1, None] - x[:, 1]
    q = a * a
    q += b * b
    np.fill_diagonal(q, 4 * s * s)
    R = np.sqrt(q)
    overlap = np.maximum(s - R, 0)
    v = np.vdot(overlap, overlap) / 4
    overlap /= R
    g = np.empty_like(x)
    g[:, 0] = -np.einsum("ij,ij->i", overlap, a)
    g[:, 1] = -np.einsum("ij,ij->i", overlap, b)
    return v, g


@case(
    "network flow, 20,000 edges",
    lambda r: [
        r.integers(0, 2000, 20000),
        r.integers(0, 2000, 20000),
        r.random(20000) + 0.5,
        r.normal(size=2000),
        np.array(3.0),
        r.normal(size=20000),
    ],
    """(a::(N{e}) -> N{n}, b::(N{e}) -> N{n}, c::RV{e}, s::RV{n}, p::R) -> (f::RV{e}) -> begin
  r = v -> sum(e, delta(a(e), v, f(e))) - sum(e, delta(b(e), v, f(e))) - s(v)
  sum(e, c(e)*f(e)^2) + p*sum(v, r(v)^2)
end""",
)
def netflow(a: Array, b: Array, c: Array, s: Array, p: Array, f: Array) -> tuple[Array, ...]:
    n = len(s)
    r = np.bincount(a, f, n) - np.bincount(b, f, n) - s
    cf = c * f
    pr = 2 * p * r
    return cf @ f + p * (r @ r), 2 * cf + pr[a] - pr[b]
