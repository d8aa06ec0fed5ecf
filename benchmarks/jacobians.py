"""Jacobians that have structure, beside JAX's: `python benchmarks/jacobians.py` prints a row a function and size.

The functions are those of the micro benchmarks of Shaikhha et al., *Efficient Differentiable Programming in a
Functional Array-Processing Language* (their Fig. 11 to 13): v1 + v2, s·v, the dot product, the maximum of a vector.
Columns: our whole array, our blocks (`structured=True`), JAX's `jacfwd` and `jacrev`, jitted; all take arrays of NumPy,
and results are waited for. Then a bundle adjustment: its Jacobian in blocks, the memory of the call, and that of the
sparse matrices. Times are medians of interleaved calls in one process, on one thread.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import combdiff as cd

SIZES = (10, 100, 1000, 3000)
ROUNDS = 15

FUNCTIONS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "v1 + v2": ("(w::RV{n}) -> (v::RV{n}) -> (i::N{n}) -> v(i) + w(i)", "wv", lambda w, v: v + w),
    "s v by v": ("(s::R) -> (v::RV) -> (i::N) -> s * v(i)", "sv", lambda s, v: s * v),
    "s v by s": ("(v::RV) -> (s::R) -> (i::N) -> s * v(i)", "vs", lambda v, s: s * v),
    "dot product": ("(w::RV) -> (v::RV) -> sum(i, v(i) * w(i))", "wv", lambda w, v: v @ w),
    "maximum": ("(v::RV) -> maximum(i, v(i))", "v", lambda v: v.max()),
}

CAMERAS = """(e::(N{a}, N{a}, N{a}) -> R, m::RM{o, s}, cam::(N{o}) -> N{v}, pt::(N{o}) -> N{p}) ->
(r::RM{v, a}, c::RM{v, a}, X::RM{p, a}) -> begin
    t = v -> norm(k -> r(v, k))
    n = (v, k) -> r(v, k) / t(v)
    y = (o, k) -> X(pt(o), k) - c(cam(o), k)
    turned = (o, k) -> y(o, k) * cos(t(cam(o))) + sin(t(cam(o))) * sum((i, j), e(k, i, j) * n(cam(o), i) * y(o, j)) +
        n(cam(o), k) * sum(j, n(cam(o), j) * y(o, j)) * (1 - cos(t(cam(o))))
    (o::N{o}, s::N{s}) -> where(s == 0, turned(o, 0), turned(o, 1)) / turned(o, 2) - m(o, s)
end"""
"""What cameras with a rotation vector and a centre see of points, less what was observed."""


def medians(calls: Sequence[Callable[[], object]]) -> list[float]:
    """The median time of each call, in microseconds, the calls in turn."""
    taken: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(ROUNDS):
        for n, call in enumerate(calls):
            start = time.perf_counter()
            call()
            taken[n].append(time.perf_counter() - start)
    return [1e6 * statistics.median(t) for t in taken]


def _waited(f: Callable[..., Any], *given: Any) -> Any:
    return f(*given).block_until_ready()


def functions(only: str) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    print("| function | n | whole | blocks | jacfwd | jacrev |\n| --- | --- | --- | --- | --- | --- |")
    for name, (text, kinds, f) in FUNCTIONS.items():
        if only not in name:
            continue
        d = cd.jacobian(text)
        whole, blocks = d.compile(), d.compile(structured=True)
        place = len(kinds) - 1
        theirs = [jax.jit(jac(f, argnums=place)) for jac in (jax.jacfwd, jax.jacrev)]
        for n in SIZES:
            rng = np.random.default_rng(n)
            given = [rng.normal() if kind == "s" else rng.normal(size=n) for kind in kinds]
            np.testing.assert_allclose(whole(*given), theirs[0](*given), rtol=1e-12)
            waited = [partial(_waited, jac) for jac in theirs]
            times = medians([partial(call, *given) for call in (whole, blocks, *waited)])
            print(f"| {name} | {n} | {' | '.join(f'{t:.0f}' for t in times)} |", flush=True)


def cameras() -> None:
    levi = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        levi[i, j, k], levi[i, k, j] = 1, -1
    d = cd.jacobian(CAMERAS)
    print("\n| observations | limit | seconds | MB of the call | MB of the sparse matrices |")
    print("| --- | --- | --- | --- | --- |")
    for observations in (1_000, 10_000, 100_000):
        rng = np.random.default_rng(0)
        views, points = max(observations // 1000, 4), observations // 10
        seen = [rng.integers(0, n, observations) for n in (views, points)]
        r, c, X = (rng.normal(size=(n, 3)) for n in (views, views, points))
        given = [levi, rng.normal(size=(observations, 2)), *seen, r, c, X + np.array([0, 0, 5])]
        stored = 0.0
        for limit in (None, "twice"):
            memory = None if limit is None else int(2 * stored)
            f = d.compile(structured=True, memory=memory)
            found = f(*given)
            (took,) = medians([partial(f, *given)])
            tracemalloc.start()
            f(*given)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            sparse = [blocks.scipy() for blocks in found]
            stored = sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in sparse)
            told = "" if memory is None else f"{memory / 1e6:.1f} MB"
            print(f"| {observations} | {told} | {took / 1e6:.3f} | {peak / 1e6:.1f} | {stored / 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    functions(only)
    if only in "cameras":
        cameras()
