"""Statistics, learning, tensors and images: objectives without long loops, and their gradients by hand."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.by_hand import Array
from benchmarks.fields.cases import case


@case(
    "gaussian mixture, 5000 x 8, 20 diagonal",
    lambda r: [r.normal(size=(5000, 8)), r.normal(size=20), r.normal(size=(20, 8)), r.normal(size=(20, 8)) / 5],
    """(X::RM{n,d}) -> (a::RV{K}, m::RM{K,d}, s::RM{K,d}) -> begin
  L = (i, k) -> a(k) - sum(c, s(k,c)) - sum(c, ((X(i,c) - m(k,c)) * exp(-s(k,c)))^2) / 2
  sum(i, logsumexp(k, L(i,k))) - n * logsumexp(k, a(k))
end""",
)
def gmm(X: Array, a: Array, m: Array, s: Array) -> tuple[Array, ...]:
    n = len(X)
    p = np.exp(-2 * s)
    D = X[:, None, :] - m
    L = a - s.sum(1) - 0.5 * np.einsum("nkc,kc->nk", D * D, p)
    mx = L.max(1, keepdims=True)
    E = np.exp(L - mx)
    S = E.sum(1, keepdims=True)
    R = E / S
    ma = a.max()
    ea = np.exp(a - ma)
    sa = ea.sum()
    v = (np.log(S) + mx).sum() - n * (np.log(sa) + ma)
    N = R.sum(0)
    Q = R[:, :, None] * D
    gm = Q.sum(0) * p
    gs = np.einsum("nkc,nkc->kc", Q, D) * p - N[:, None]
    return v, N - n * ea / sa, gm, gs


@case(
    "poisson factorisation 500 x 400 x 20",
    lambda r: [r.poisson(3, (500, 400)) * 1.0, r.random((500, 20)) + 0.1, r.random((20, 400)) + 0.1],
    "(X::RM{n,m}) -> (W::RM{n,k}, H::RM{k,m}) -> begin\n M = (i,j) -> sum(k, W(i,k)*H(k,j))\n sum((i,j),"
    " M(i,j) - X(i,j)*log(M(i,j)))\nend",
    "(X::RM{n,m}) -> (W::RM{n,k}, H::RM{k,m}) -> sum(W*H - X .* log.(W*H))",
)
def pf(X: Array, W: Array, H: Array) -> tuple[Array, ...]:
    M = W @ H
    v = M.sum() - np.vdot(X, np.log(M))
    G = 1 - X / M
    return v, G @ H.T, W.T @ G


@case(
    "student-t regression 20000 x 30",
    lambda r: [r.normal(size=(20000, 30)), r.normal(size=20000), np.array(4.0), r.normal(size=30) / 5, np.array(0.3)],
    "(X::RM{n,p}, y::RV{n}, nu::R) -> (w::RV{p}, ls::R) -> sum(i, (nu + 1)/2 * log(1 + (y(i) - sum(j,"
    " X(i,j)*w(j)))^2 * exp(-2*ls)/nu)) + n * ls",
    "(X::RM{n,p}, y::RV{n}, nu::R) -> (w::RV{p}, ls::R) -> begin\n r = (y - X*w) / exp(ls)\n (nu + 1)/2"
    " * sum(log.(1 .+ r .^ 2 / nu)) + n * ls\nend",
)
def st(X: Array, y: Array, nu: Array, w: Array, ls: Array) -> tuple[Array, ...]:
    r = y - X @ w
    s = np.exp(-2 * ls) / nu
    q = r * r * s
    g = (nu + 1) * s * r / (1 + q)
    return (nu + 1) / 2 * np.log1p(q).sum() + len(y) * ls, -X.T @ g, len(y) - g @ r


@case(
    "softmax regression with labels 20000 x 50 x 10",
    lambda r: [r.integers(0, 10, 20000), r.normal(size=(20000, 50)), r.normal(size=(50, 10)) / 5, r.normal(size=10)],
    "(t::(N{n}) -> N{k}, X::RM{n,p}) -> (W::RM{p,k}, b::RV{k}) -> begin\n Z = (i,c) -> sum(j,"
    " X(i,j)*W(j,c)) + b(c)\n sum(i, logsumexp(c, Z(i,c)) - Z(i,t(i)))\nend",
    "(t::(N{n}) -> N{k}, X::RM{n,p}) -> (W::RM{p,k}, b::RV{k}) -> begin\n Z = X * W .+ b'\n -sum(i,"
    " log(softmax(c, Z(i,c))(t(i))))\nend",
)
def sm(t: Array, X: Array, W: Array, b: Array) -> tuple[Array, ...]:
    Z = X @ W + b
    Z -= Z.max(1, keepdims=True)
    E = np.exp(Z)
    S = E.sum(1, keepdims=True)
    i = np.arange(len(X))
    v = np.log(S).sum() - Z[i, t].sum()
    E /= S
    E[i, t] -= 1
    return v, X.T @ E, E.sum(0)


@case(
    "contrastive loss, 600 x 64",
    lambda r: [np.array(0.5), r.normal(size=(600, 64)), r.normal(size=(600, 64))],
    "(tau::R) -> (A::RM{n,d}, B::RM{n,d}) -> begin\n a = (i,c) -> A(i,c)/norm(e -> A(i,e))\n b = (i,c)"
    " -> B(i,c)/norm(e -> B(i,e))\n S = (i,j) -> sum(c, a(i,c)*b(j,c))/tau\n sum(i, logsumexp(j, S(i,j))"
    " - S(i,i))\nend",
)
def contrast(tau: Array, A: Array, B: Array) -> tuple[Array, ...]:
    na = np.sqrt(np.einsum("ij,ij->i", A, A))[:, None]
    nb = np.sqrt(np.einsum("ij,ij->i", B, B))[:, None]
    a, b = A / na, B / nb
    S = a @ b.T / tau
    m = S.max(1, keepdims=True)
    E = np.exp(S - m)
    s = E.sum(1, keepdims=True)
    v = (np.log(s) + m).sum() - np.trace(S)
    E /= s
    E[np.arange(len(E)), np.arange(len(E))] -= 1
    ga, gb = E @ b / tau, E.T @ a / tau
    return (
        v,
        (ga - a * np.einsum("ij,ij->i", ga, a)[:, None]) / na,
        (gb - b * np.einsum("ij,ij->i", gb, b)[:, None]) / nb,
    )


@case(
    "attention layer, 400 x 64",
    lambda r: [r.normal(size=(400, 64)), r.normal(size=(400, 64)), *(r.normal(size=(64, 64)) / 8 for _ in range(3))],
    """(X::RM{t,d}, Y::RM{t,d}) -> (P::RM{d,k}, Q::RM{d,k}, V::RM{d,d}) -> begin
  S = (i,j) -> sum((a,b,c), X(i,a)*P(a,c)*Q(b,c)*X(j,b))/8
  A = (i,j) -> softmax(l, S(i,l))(j)
  Z = (i,c) -> sum((j,a), A(i,j)*X(j,a)*V(a,c))
  sum((i,c), (Z(i,c)-Y(i,c))^2)
end""",
)
def att(X: Array, Y: Array, P: Array, Q: Array, V: Array) -> tuple[Array, ...]:
    q, k, v = X @ P, X @ Q, X @ V
    S = q @ k.T / 8
    S -= S.max(1, keepdims=True)
    A = np.exp(S)
    A /= A.sum(1, keepdims=True)
    R = A @ v - Y
    g = 2 * R
    gA = g @ v.T
    gv = A.T @ g
    gS = A * (gA - np.einsum("ij,ij->i", A, gA)[:, None]) / 8
    return np.vdot(R, R), X.T @ (gS @ k), X.T @ (gS.T @ q), X.T @ gv


@case(
    "batch normalised network 1000 x 100 x 50",
    lambda r: [
        r.normal(size=(1000, 100)),
        r.normal(size=1000),
        r.normal(size=(100, 50)) / 10,
        r.normal(size=50),
        r.normal(size=50),
        r.normal(size=50),
    ],
    """(X::RM{n,p}, y::RV{n}) -> (W::RM{p,k}, g::RV{k}, b::RV{k}, v::RV{k}) -> begin
  Z = (i,j) -> sum(a, X(i,a)*W(a,j))
  m = j -> sum(i, Z(i,j))/n
  s = j -> sum(i, (Z(i,j)-m(j))^2)/n
  H = (i,j) -> relu(g(j)*(Z(i,j)-m(j))/sqrt(s(j)+1e-5) + b(j))
  sum(i, (sum(j, H(i,j)*v(j)) - y(i))^2)
end""",
)
def bn(X: Array, y: Array, W: Array, g: Array, b: Array, v: Array) -> tuple[Array, ...]:
    n = len(X)
    Z = X @ W
    D = Z - Z.mean(0)
    q = 1 / np.sqrt(np.einsum("ij,ij->j", D, D) / n + 1e-5)
    N = D * q
    H = np.maximum(N * g + b, 0)
    r = H @ v - y
    gv = 2 * r @ H
    G = np.outer(2 * r, v) * (H > 0)
    gb = G.sum(0)
    gg = np.einsum("ij,ij->j", G, N)
    dZ = (G - gb / n - N * (gg / n)) * (g * q)
    return r @ r, X.T @ dZ, gg, gb, gv


@case(
    "tensor train completion 20000, rank 10",
    lambda r: [
        *(r.integers(0, s, 20000) for s in (60, 50, 40)),
        r.normal(size=20000),
        r.normal(size=(60, 10)),
        r.normal(size=(10, 50, 10)),
        r.normal(size=(10, 40)),
    ],
    "(i::(N{e}) -> N{n}, j::(N{e}) -> N{m}, k::(N{e}) -> N{o}, y::RV{e}) -> (A::RM{n,r},"
    " B::(N{r},N{m},N{s}) -> R, C::RM{s,o}) -> sum(e, (sum((a,b), A(i(e),a)*B(a,j(e),b)*C(b,k(e))) -"
    " y(e))^2)",
)
def tt(i: Array, j: Array, k: Array, y: Array, A: Array, B: Array, Cc: Array) -> tuple[Array, ...]:
    a, c = A[i], Cc.T[k]
    Bj = B.transpose(1, 0, 2)[j]
    u = np.matmul(a[:, None, :], Bj)[:, 0]
    r = np.einsum("eb,eb->e", u, c) - y
    g = 2 * r[:, None]
    e, R = len(y), A.shape[1]
    ga_rows = np.matmul(Bj, (g * c)[:, :, None])[:, :, 0]

    def add(idx, rows, n):
        return sparse.csr_array((np.ones(e), (idx, np.arange(e))), shape=(n, e)) @ rows

    gA = add(i, ga_rows, len(A))
    gC = add(k, g * u, Cc.shape[1]).T
    P = ((g * a)[:, :, None] * c[:, None, :]).reshape(e, -1)
    gB = add(j, P, B.shape[1]).reshape(B.shape[1], R, -1).transpose(1, 0, 2)
    return r @ r, gA, gB, gC


@case(
    "Tucker loss 80 x 70 x 60, core 8",
    lambda r: [
        r.normal(size=(80, 70, 60)),
        r.normal(size=(8, 8, 8)),
        r.normal(size=(80, 8)),
        r.normal(size=(70, 8)),
        r.normal(size=(60, 8)),
    ],
    "(T::(N,N,N) -> R) -> (G::(N,N,N) -> R, A::RM, B::RM, C::RM) -> sum((i,j,k), (T(i,j,k) -"
    " sum((a,b,c), G(a,b,c)*A(i,a)*B(j,b)*C(k,c)))^2)",
)
def tucker(T: Array, G: Array, A: Array, B: Array, Cc: Array) -> tuple[Array, ...]:
    i, j, k = T.shape
    a, b, c = G.shape
    GA = (A @ G.reshape(a, -1)).reshape(i, b, c)
    GAB = np.matmul(B, GA)  # i j c
    R = T.reshape(i * j, k) - GAB.reshape(i * j, c) @ Cc.T
    v = np.vdot(R, R)
    gC = -2 * R.T @ GAB.reshape(i * j, c)
    RC = (R @ Cc).reshape(i, j, c)
    gB = np.zeros_like(B)
    gB = -2 * np.tensordot(RC, GA, ((0, 2), (0, 2)))
    RBC = np.matmul(B.T, RC)  # i b c
    gA = -2 * RBC.reshape(i, -1) @ G.reshape(a, -1).T
    gG = -2 * (A.T @ RBC.reshape(i, -1)).reshape(G.shape)
    return v, gG, gA, gB, gC


@case(
    "density fitted Hartree-Fock 70, 300, 12",
    lambda r: [
        (lambda Z: Z + Z.T)(r.normal(size=(70, 70))),
        (lambda Z: Z + Z.transpose(0, 2, 1))(r.normal(size=(300, 70, 70))),
        r.normal(size=(70, 12)) / 8,
    ],
    """@space B3 begin type = (N,N,N) -> R; symmetries = (((1,3,2), :id),) end
(h::Sym{m}, B::B3) -> (C::RM{m,o}) -> begin
  P = (p,q) -> sum(i, C(p,i)*C(q,i))
  2*sum((p,q), h(p,q)*P(p,q)) + sum((Q,p,q,r,s), B(Q,p,q)*B(Q,r,s)*(2*P(p,q)*P(r,s) - P(p,r)*P(q,s)))
end""",
    """@space B3 begin type = (N,N,N) -> R; symmetries = (((1,3,2), :id),) end
(h::Sym{m}, B::B3) -> (C::RM{m,o}) -> begin
  X = (Q,p,i) -> sum(q, B(Q,p,q)*C(q,i))
  Y = (Q,i,j) -> sum(p, X(Q,p,i)*C(p,j))
  2*sum((p,q,i), h(p,q)*C(p,i)*C(q,i)) + 2*sum(Q, sum(i, Y(Q,i,i))^2) - sum((Q,i,j), Y(Q,i,j)^2)
end""",
)
def dfhf(h: Array, B: Array, Cc: Array) -> tuple[Array, ...]:
    Q, m, _ = B.shape
    o = Cc.shape[1]
    X = (B.reshape(-1, m) @ Cc).reshape(Q, m, o)
    Y = np.matmul(Cc.T, X)
    g = np.trace(Y, axis1=1, axis2=2)
    hC = h @ Cc
    v = 2 * np.vdot(hC, Cc) + 2 * g @ g - np.vdot(Y, Y)
    J = (g @ X.reshape(Q, -1)).reshape(m, o)
    K = np.tensordot(X, Y, ((0, 2), (0, 1)))
    return v, 4 * hC + 8 * J - 4 * K


@case(
    "isotropic total variation, 400 x 400",
    lambda r: [r.normal(size=(400, 400)), np.array(0.1), r.normal(size=(400, 400))],
    "(y::RM{n,m}, l::R) -> (x::RM{n,m}) -> sum((i,j), (x(i,j)-y(i,j))^2)/2 + l*sum((i,j), i < n-1 and j"
    " < m-1, sqrt((x(i+1,j)-x(i,j))^2 + (x(i,j+1)-x(i,j))^2 + 1e-6))",
)
def tv(y: Array, weight: Array, x: Array) -> tuple[Array, ...]:
    r = x - y
    dx = x[1:, :-1] - x[:-1, :-1]
    dy = x[:-1, 1:] - x[:-1, :-1]
    s = dx * dx
    s += dy * dy
    s += 1e-6
    np.sqrt(s, out=s)
    v = 0.5 * np.vdot(r, r) + weight * s.sum()
    dx *= weight
    dx /= s
    dy *= weight
    dy /= s
    r[1:, :-1] += dx
    r[:-1, 1:] += dy
    r[:-1, :-1] -= dx
    r[:-1, :-1] -= dy
    return v, r


@case(
    "deconvolution, kernel 5 x 5, image 256 x 256",
    lambda r: [r.normal(size=(252, 252)), r.normal(size=(5, 5)), r.normal(size=(256, 256))],
    """(y::RM{a,b}) -> (k::RM{5,5}, x::(N{a+4}, N{b+4}) -> R) ->
  sum((i::N{a}, j::N{b}), (sum((p::N{5}, q::N{5}), k(p,q)*x(i+p,j+q)) - y(i,j))^2)""",
)
def deconv(y: Array, k: Array, x: Array) -> tuple[Array, ...]:
    a, b = y.shape
    r = -y
    for p in range(5):
        for q in range(5):
            r += k[p, q] * x[p : p + a, q : q + b]
    gk = np.empty_like(k)
    gx = np.zeros_like(x)
    g = 2 * r
    for p in range(5):
        for q in range(5):
            gk[p, q] = np.einsum("ij,ij", g, x[p : p + a, q : q + b])
            gx[p : p + a, q : q + b] += k[p, q] * g
    return np.vdot(r, r), gk, gx


@case(
    "convolutional layer, 8 images 32 x 32, 16 to 16 channels",
    lambda r: [r.normal(size=(8, 16, 30, 30)), r.normal(size=(16, 16, 3, 3)) / 9, r.normal(size=(8, 16, 32, 32))],
    """(y::(N{b}, N{o}, N{n}, N{m}) -> R) ->
  (K::(N{o}, N{c}, N{3}, N{3}) -> R, x::(N{b}, N{c}, N{n+2}, N{m+2}) -> R) ->
  sum((b, o, i, j), (relu(sum((c, p, q), K(o,c,p,q)*x(b,c,i+p,j+q))) - y(b,o,i,j))^2)""",
)
def layer(y: Array, K: Array, x: Array) -> tuple[Array, ...]:
    b, o, n, m = y.shape
    c = x.shape[1]
    flat = np.empty((3, 3, c, b, n * m))
    for p in range(3):
        for q in range(3):
            flat[p, q] = x[:, :, p : p + n, q : q + m].transpose(1, 0, 2, 3).reshape(c, b, n * m)
    rows, matrix = flat.reshape(9 * c, b * n * m), K.transpose(0, 2, 3, 1).reshape(o, 9 * c)
    z = (matrix @ rows).reshape(o, b, n, m)
    r = np.maximum(z, 0) - y.transpose(1, 0, 2, 3)
    g = (2 * r * (z > 0)).reshape(o, -1)
    gK = (g @ rows.T).reshape(o, 3, 3, c).transpose(0, 3, 1, 2)
    gx = np.zeros_like(x)
    back = (matrix.T @ g).reshape(3, 3, c, b, n, m)
    for p in range(3):
        for q in range(3):
            gx[:, :, p : p + n, q : q + m] += back[p, q].transpose(1, 0, 2, 3)
    return np.vdot(r, r), gK, gx


@case(
    "dilated filter, 9 entries, 100,000 values",
    lambda r: [r.normal(size=100000), r.normal(size=9), r.normal(size=100032)],
    """(y::RV{n}) -> (k::RV{9}, x::(N{n+32}) -> R) ->
  sum(i::N{n}, log(1 + (sum(p::N{9}, k(p)*x(i+4*p)) - y(i))^2))""",
)
def dilated(y: Array, k: Array, x: Array) -> tuple[Array, ...]:
    n = len(y)
    r = -y
    for p in range(9):
        r += k[p] * x[4 * p : 4 * p + n]
    s = 1 + r * r
    g = 2 * r / s
    gk, gx = np.empty_like(k), np.zeros_like(x)
    for p in range(9):
        gk[p] = g @ x[4 * p : 4 * p + n]
        gx[4 * p : 4 * p + n] += k[p] * g
    return np.log(s).sum(), gk, gx


@case(
    "stencil in three dimensions, 3 x 3 x 3, 48 x 48 x 48",
    lambda r: [r.normal(size=(48, 48, 48)), r.normal(size=(3, 3, 3)), r.normal(size=(48, 48, 48))],
    """(y::(N{a},N{b},N{c}) -> R) -> (k::(N{3},N{3},N{3}) -> R, x::(N{a},N{b},N{c}) -> R) ->
  sum((i,j,l), (sum((p,q,r), 0 <= i+p-1 and i+p-1 < a and 0 <= j+q-1 and j+q-1 < b and 0 <= l+r-1 and l+r-1 < c,
    k(p,q,r)*x(i+p-1,j+q-1,l+r-1)) - y(i,j,l))^2)""",
)
def stencil(y: Array, k: Array, x: Array) -> tuple[Array, ...]:
    a, b, c = y.shape
    padded = np.pad(x, 1)
    r = -y
    gk, gx = np.empty_like(k), np.zeros_like(padded)
    for p, q, s in np.ndindex(3, 3, 3):
        r += k[p, q, s] * padded[p : p + a, q : q + b, s : s + c]
    g = 2 * r
    for p, q, s in np.ndindex(3, 3, 3):
        at = slice(p, p + a), slice(q, q + b), slice(s, s + c)
        gk[p, q, s] = np.einsum("ijk,ijk", g, padded[at])
        gx[at] += k[p, q, s] * g
    return np.vdot(r, r), gk, gx[1:-1, 1:-1, 1:-1]


@case(
    "optical flow, 300 x 400",
    lambda r: [
        *(r.normal(size=(300, 400)) for _ in range(3)),
        np.array(0.5),
        *(r.normal(size=(300, 400)) for _ in range(2)),
    ],
    """(X::RM{n,m}, Y::RM{n,m}, T::RM{n,m}, a::R) -> (u::RM{n,m}, v::RM{n,m}) ->
  sum((i,j), (X(i,j)*u(i,j) + Y(i,j)*v(i,j) + T(i,j))^2) +
  a*sum((i,j), i < n-1, (u(i+1,j)-u(i,j))^2 + (v(i+1,j)-v(i,j))^2) +
  a*sum((i,j), j < m-1, (u(i,j+1)-u(i,j))^2 + (v(i,j+1)-v(i,j))^2)""",
)
def flow(X: Array, Y: Array, T: Array, a: Array, u: Array, v: Array) -> tuple[Array, ...]:
    r = X * u
    r += Y * v
    r += T
    val = np.vdot(r, r)
    r *= 2
    out = []
    reg = 0
    for w, G in ((u, X * r), (v, Y * r)):
        d = w[1:] - w[:-1]
        reg += np.vdot(d, d)
        d *= 2 * a
        G[1:] += d
        G[:-1] -= d
        d = w[:, 1:] - w[:, :-1]
        reg += np.vdot(d, d)
        d *= 2 * a
        G[:, 1:] += d
        G[:, :-1] -= d
        out.append(G)
    return val + a * reg, *out


@case(
    "heat equation on a torus, 128 x 128, 100 steps",
    lambda r: [r.normal(size=(128, 128)), r.random((128, 128)) / 5, r.normal(size=(128, 128))],
    """@domain X begin periodic = true end
@domain Y begin periodic = true end
(y::(X,Y) -> R, k::(X,Y) -> R) -> (u::(X,Y) -> R) -> begin
  w = iterate((u, t) -> (i::X, j::Y) -> u(i,j) + k(i,j)*(u(i+1,j) + u(i-1,j) + u(i,j+1) + u(i,j-1) - 4*u(i,j)), u, 100)
  sum((i::X, j::Y), (w(i,j) - y(i,j))^2)
end""",
)
def heat(y: Array, k: Array, u: Array) -> tuple[Array, ...]:
    def lap(u):
        w = -4 * u
        w[1:] += u[:-1]
        w[0] += u[-1]
        w[:-1] += u[1:]
        w[-1] += u[0]
        w[:, 1:] += u[:, :-1]
        w[:, 0] += u[:, -1]
        w[:, :-1] += u[:, 1:]
        w[:, -1] += u[:, 0]
        return w

    for _ in range(100):
        d = lap(u)
        d *= k
        u = u + d
    r = u - y
    g = 2 * r
    for _ in range(100):
        g = g + lap(k * g)
    return np.vdot(r, r), g
