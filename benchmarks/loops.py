"""Loops of many steps, value and gradient, beside jitted JAX and PyTorch: `python benchmarks/loops.py` prints rows.

On one thread (OMP_NUM_THREADS=1): the function that `compile(value=True)` makes for NumPy, also with checkpoints, the
one for JAX under `jax.jit`, `jax.jit(jax.value_and_grad(…))` of the same objective with `lax.scan`, and PyTorch's
`backward` where it is installed; all in double precision, results waited for. Times are medians of interleaved calls in
one process, in milliseconds. Memory is the peak of what a call allocates: NumPy's by `tracemalloc`, JAX's as XLA plans.
Deriving is in a column of its own.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

import combdiff as cd
from combdiff.errors import CombDiffError

CALLS = 7
Row = tuple[str, str, Callable[..., Any], Sequence[Any], int]
STEPS = 1000
NETWORK = """(x::RM{T, m}, y::RV{n}) -> (W::RM{n, n}, U::RM{n, m}, b::RV{n}) -> begin
  h = iterate((h, t) -> i -> tanh(sum(j, W(i, j) * h(j)) + sum(k, U(i, k) * x(t, k)) + b(i)), i -> 0, T)
  sum(i, (h(i) - y(i))^2)
end"""
DESCENT = """(A::Sym, b::RV) -> (rate::R) -> begin
  f = (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j)) / 2 - sum(i, b(i) * x(i)) + sum(i, x(i)^4)
  x = iterate((x, t) -> i -> x(i) - rate * grad(f)(x)(i), i -> 0, 100)
  f(x)
end"""
LEAPFROG = """(q0::RV{n}, p0::RV{n}, T::Int) -> (k::RV{n}, h::R) -> begin
  force = (q::RV{n}) -> i -> -k(i) * sin(q(i))
  (q, p) = iterate(((q, p), t) -> begin
    half = i -> p(i) + h / 2 * force(q)(i)
    moved = i -> q(i) + h * half(i)
    (moved, i -> half(i) + h / 2 * force(moved)(i))
  end, (q0, p0), T)
  sum(i, q(i)^2 + p(i)^2)
end"""
PULSE = """(H::CM{n, n}, K::CM{n, n}, p::CV{n}, q::CV{n}) -> (u::RV{T}) -> begin
  z = iterate((z, t) -> begin
    w = i -> sum(j, (H(i, j) + u(t) * K(i, j)) * z(j))
    v = i -> sum(j, (H(i, j) + u(t) * K(i, j)) * w(j))
    i -> z(i) - im / 50 * w(i) - v(i) / 5000
  end, p, T)
  abs2(sum(i, q(i)' * z(i)))
end"""


LSTM = """(x::RM{T, n}, y::RV{n}) -> (W::(N{n}, N{n}, N{g}) -> R, U::(N{n}, N{n}, N{g}) -> R, b::RM{n, g}) -> begin
  (h, c) = iterate(((h, c), t) -> begin
    z = (i, g) -> sum(j, W(i, j, g) * h(j)) + sum(j, U(i, j, g) * x(t, j)) + b(i, g)
    d = i -> sigmoid(z(i, 0)) * c(i) + sigmoid(z(i, 1)) * tanh(z(i, 2))
    (i -> sigmoid(z(i, 3)) * tanh(d(i)), d)
  end, (i -> 0, i -> 0), T)
  sum(i, (h(i) - y(i))^2)
end"""
KALMAN = """(y::RM{T, m}, H::RM{m, n}, P::RM{n, n}) -> (F::RM{n, n}, Q::RM{n, n}, R::RM{m, m}) -> begin
  (x, P1, loss) = iterate(((x, P, loss), t) -> begin
    a = F * x
    B = F * P * F' + Q
    S = H * B * H' + R
    e = i -> y(t, i) - sum(k, H(i, k) * a(k))
    K = B * H' * inv(S)
    (a + K * e, B - K * H * B, loss + logdet(S) + e' * (S \\ e))
  end, (i -> 0, P, 0), T)
  loss / 2
end"""
RUNGE_KUTTA = """(x0::RV{n}, T::Int) -> (A::RM{n, n}, h::R) -> begin
  f = (x::RV{n}) -> i -> sum(j, A(i, j) * sin(x(j))) - x(i)^3
  x = iterate((x, t) -> begin
    k1 = i -> f(x)(i)
    k2 = i -> f(j -> x(j) + h / 2 * k1(j))(i)
    k3 = i -> f(j -> x(j) + h / 2 * k2(j))(i)
    k4 = i -> f(j -> x(j) + h * k3(j))(i)
    i -> x(i) + h / 6 * (k1(i) + 2 * k2(i) + 2 * k3(i) + k4(i))
  end, x0, T)
  sum(i, x(i)^2)
end"""
POWER = """(x::RV{n}, T::Int) -> (A::RM{n, n}) -> begin
  v = iterate((v, t) -> begin w = A * v; w / norm(w) end, x, T)
  v' * A * v
end"""


def rows() -> list[Row]:
    """The loops, each with the objective in JAX, and its data; the last number says how many are not varied."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(100, 100)) / 40
    H, K = (M + M.conj().T for M in (rng.normal(size=(8, 8)) + 1j * rng.normal(size=(8, 8)) for _ in range(2)))
    p, q = np.eye(8)[:2] + 0j
    network = [rng.normal(size=s) / 8 for s in ((1000, 32), (64,), (64, 64), (64, 32), (64,))]
    gates = [rng.normal(size=s) / 8 for s in ((1000, 32), (32,), (32, 32, 4), (32, 32, 4), (32, 4))]
    filtered = [rng.normal(size=(1000, 2)), rng.normal(size=(2, 4)), np.eye(4), 0.9 * np.eye(4), np.eye(4), np.eye(2)]
    symmetric = [A + A.T + 2 * np.eye(100), rng.normal(size=100), 0.05]
    return [
        ("recurrent network, T = 1000", NETWORK, _network, network, 2),
        ("LSTM, T = 1000", LSTM, _lstm, gates, 2),
        ("Kalman filter, T = 1000", KALMAN, _kalman, filtered, 3),
        ("descent unrolled, T = 100", DESCENT, _descent, symmetric, 2),
        ("leapfrog, T = 1000", LEAPFROG, _leapfrog, [*rng.normal(size=(3, 50)), 0.05], 2),
        ("Runge–Kutta, T = 1000", RUNGE_KUTTA, _runge_kutta, [rng.normal(size=50), A[:50, :50], 0.01], 1),
        ("pulse (GRAPE), T = 200", PULSE, _pulse, [H / 4, K / 4, p, q, rng.normal(size=200)], 4),
        ("power iteration, T = 1000", POWER, _power, [rng.normal(size=100), A @ A.T + np.eye(100)], 1),
    ]


# --- the objectives, in JAX and in PyTorch --------------------------------------------------------------------------


def _loop(np_: Any, step: Callable[..., Any], state: Any, each: Any, count: int) -> Any:
    """The last state: `lax.scan` in JAX, a loop of Python in PyTorch."""
    if np_.__name__ == "torch":
        for t in range(count):
            state = step(state, None if each is None else each[t])
        return state
    import jax

    return jax.lax.scan(lambda s, x: (step(s, x), None), state, each, count)[0]


def _network(np_: Any, x: Any, y: Any, W: Any, U: Any, b: Any) -> Any:
    h = _loop(np_, lambda h, each: np_.tanh(W @ h + U @ each + b), 0 * b, x, len(x))
    return ((h - y) ** 2).sum()


def _lstm(np_: Any, x: Any, y: Any, W: Any, U: Any, b: Any) -> Any:
    def sigmoid(z: Any) -> Any:
        return 1 / (1 + np_.exp(-z))

    def step(state: Any, each: Any) -> Any:
        h, c = state
        z = np_.einsum("ijg,j->ig", W, h) + np_.einsum("ijg,j->ig", U, each) + b
        c = sigmoid(z[:, 0]) * c + sigmoid(z[:, 1]) * np_.tanh(z[:, 2])
        return sigmoid(z[:, 3]) * np_.tanh(c), c

    h, _ = _loop(np_, step, (0 * y, 0 * y), x, len(x))
    return ((h - y) ** 2).sum()


def _kalman(np_: Any, y: Any, H: Any, P: Any, F: Any, Q: Any, R: Any) -> Any:
    def step(state: Any, each: Any) -> Any:
        x, P, loss = state
        x, B = F @ x, F @ P @ F.T + Q
        S, e = H @ B @ H.T + R, each - H @ x
        K = np_.linalg.solve(S.T, (B @ H.T).T).T
        return x + K @ e, B - K @ H @ B, loss + np_.linalg.slogdet(S)[1] + e @ np_.linalg.solve(S, e)

    return _loop(np_, step, (0 * P[0], P, 0.0 * P[0, 0]), y, len(y))[2] / 2


def _descent(np_: Any, A: Any, b: Any, rate: Any) -> Any:
    x = _loop(np_, lambda x, _: x - rate * ((A + A.T) @ x / 2 - b + 4 * x**3), 0 * b, None, 100)
    return x @ A @ x / 2 - b @ x + (x**4).sum()


def _leapfrog(np_: Any, q: Any, p: Any, k: Any, h: Any) -> Any:
    def step(state: Any, _: Any) -> Any:
        q, p = state
        half = p - h / 2 * k * np_.sin(q)
        q = q + h * half
        return q, half - h / 2 * k * np_.sin(q)

    q, p = _loop(np_, step, (q, p), None, STEPS)
    return (q**2 + p**2).sum()


def _runge_kutta(np_: Any, x: Any, A: Any, h: Any) -> Any:
    def f(x: Any) -> Any:
        return A @ np_.sin(x) - x**3

    def step(x: Any, _: Any) -> Any:
        k1 = f(x)
        k2 = f(x + h / 2 * k1)
        k3 = f(x + h / 2 * k2)
        return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(x + h * k3))

    return (_loop(np_, step, x, None, STEPS) ** 2).sum()


def _pulse(np_: Any, H: Any, K: Any, p: Any, q: Any, u: Any) -> Any:
    def step(z: Any, each: Any) -> Any:
        w = (H + each * K) @ z
        return z - 0.02j * w - (H + each * K) @ w / 5000

    return abs(q.conj() @ _loop(np_, step, p, u, len(u))) ** 2


def _power(np_: Any, x: Any, A: Any) -> Any:
    def step(v: Any, _: Any) -> Any:
        w = A @ v
        return w / (w @ w) ** 0.5

    v = _loop(np_, step, x, None, STEPS)
    return v @ A @ v


# --- measuring ------------------------------------------------------------------------------------------------------


def _peer(objective: Callable[..., Any], data: Sequence[Any], given: int) -> Callable[[], Any]:
    """JAX's value and gradients."""
    import jax
    import jax.numpy as jnp

    function = jax.jit(jax.value_and_grad(lambda *a: objective(jnp, *a), tuple(range(given, len(data)))))
    return lambda: jax.block_until_ready(function(*data))


def _torch(objective: Callable[..., Any], data: Sequence[Any], given: int) -> Callable[[], Any] | None:
    """PyTorch's value and gradients, if it is installed."""
    with suppress(ImportError):
        import torch

        torch.set_num_threads(1)
        fixed = [torch.as_tensor(each) for each in data[:given]]

        def call() -> Any:
            varied = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in data[given:]]
            value = objective(torch, *fixed, *varied)
            return value.detach(), torch.autograd.grad(value, varied)

        return call
    return None


def _allocated(call: Callable[[], Any]) -> float:
    """The megabytes that a call holds at once."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def _with_checkpoints(d: cd.Derivation) -> Callable[..., Any] | None:
    with suppress(CombDiffError):
        return d.compile(value=True, checkpoint=True)
    return None


def measured(row: Row) -> str:
    """A line of the table."""
    import jax

    name, program, objective, data, given = row
    start = time.perf_counter()
    d = cd.grad(program)
    deriving = time.perf_counter() - start
    steps = {"T": STEPS} if "T::Int" in program else {}
    ours, traced = d.compile(value=True), jax.jit(d.compile("jax", value=True), static_argnames=[*steps])
    kept = _with_checkpoints(d)
    calls: dict[str, Callable[[], Any] | None] = {
        "numpy": lambda: ours(*data, **steps),
        "kept": None if kept is None else lambda: kept(*data, **steps),
        "jax": lambda: jax.block_until_ready(traced(*data, **steps)),
        "peer": _peer(objective, data, given),
        "torch": _torch(objective, data, given),
    }
    runnable = {key: call for key, call in calls.items() if call is not None}
    expected = jax.tree_util.tree_leaves(runnable["peer"]())
    for key, call in runnable.items():
        for one, other in zip(jax.tree_util.tree_leaves(call()), expected, strict=True):
            # JAX's gradients by complex numbers are conjugates of ours; only real ones are varied here
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-6, atol=1e-8, err_msg=key)
    times: dict[str, list[float]] = {key: [] for key in runnable}
    for _ in range(CALLS):
        for key, call in runnable.items():
            start = time.perf_counter()
            call()
            times[key].append(1e3 * (time.perf_counter() - start))
    found = {key: statistics.median(each) for key, each in times.items()}
    quick = min(found["numpy"], found["jax"]) / min(found["peer"], found.get("torch", found["peer"]))
    cells = [f"{deriving:.2f}", *(f"{found[key]:.2f}" if key in found else "–" for key in calls), f"{quick:.2f}"]
    cells += [f"{_allocated(runnable[key]):.2f}" if key in runnable else "–" for key in ("numpy", "kept")]
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    import jax

    jax.config.update("jax_enable_x64", True)
    titles = ["loop", "derive, s", "NumPy, ms", "with checkpoints, ms", "ours on JAX, ms", "JAX, ms", "PyTorch, ms"]
    titles += ["quicker of ours / quicker of theirs", "NumPy, MB", "with checkpoints, MB"]
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    for each in rows():
        if not sys.argv[1:] or any(word in each[0] for word in sys.argv[1:]):
            print(measured(each), flush=True)
