"""Sums under conditions that cut a range, beside an expert's slices: `python benchmarks/slices.py` prints a row each.

Value and gradient of open chains and of an open lattice, in NumPy, on one thread: the function that
`source(value=True)` defines for these sizes, and code by hand that allocates what it returns. Times are medians of
interleaved calls in one process, in microseconds, ours / by hand, and their ratio.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import combdiff as cd

Array: TypeAlias = Any
SIZES = (3_000, 30_000, 300_000)


def chain(x: Array) -> tuple[Array, Array]:
    d = x[1:] - x[:-1]
    g = np.zeros_like(x)
    step = 2 * d
    g[1:] = step
    g[:-1] -= step
    return np.vdot(d, d).real, g


def beam(x: Array) -> tuple[Array, Array]:
    d = x[2:] - 2 * x[1:-1] + x[:-2]
    value = d @ d
    d *= 2
    g = np.zeros_like(x)
    g[2:] += d
    g[:-2] += d
    d *= 2
    g[1:-1] -= d
    return value, g


def rotors(x: Array) -> tuple[Array, Array]:
    d = x[1:] - x[:-1]
    s = np.sin(d)
    g = np.zeros_like(x)
    g[:-1] = s
    g[1:] -= s
    return np.cos(d).sum(), g


def exponentials(x: Array) -> tuple[Array, Array]:
    e = np.exp(x[1:] - x[:-1])
    g = np.zeros_like(x)
    g[1:] = e
    g[:-1] -= e
    return e.sum(), g


def quartic(x: Array) -> tuple[Array, Array]:
    d = x[1:] - x[:-1]
    q = d * d
    f = d + q * d
    g = np.zeros_like(x)
    g[1:] = f
    g[:-1] -= f
    return d @ d / 2 + q @ q / 4, g


def rosenbrock(x: Array) -> tuple[Array, Array]:
    a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    g = np.zeros_like(x)
    g[1:] = 200 * a
    g[:-1] -= 400 * x[:-1] * a + 2 * b
    return 100 * (a @ a) + b @ b, g


def lattice(x: Array) -> tuple[Array, Array]:
    a, b = x[1:] - x[:-1], x[:, 1:] - x[:, :-1]
    value = np.vdot(a, a) + np.vdot(b, b)
    a *= 2
    b *= 2
    g = np.zeros_like(x)
    g[1:] += a
    g[:-1] -= a
    g[:, 1:] += b
    g[:, :-1] -= b
    return value, g


ROWS: dict[str, tuple[str, Callable[[Array], tuple[Array, Array]]]] = {
    "chain": ("(x::RV{n}) -> sum(i, i < n - 1, (x(i + 1) - x(i))^2)", chain),
    "chain, complex": ("(x::CV{n}) -> sum(i, i < n - 1, abs2(x(i + 1) - x(i)))", chain),
    "beam": ("(x::RV{n}) -> sum(i, where(1 <= i and i < n - 1, (x(i + 1) - 2 * x(i) + x(i - 1))^2))", beam),
    "rotors": ("(x::RV{n}) -> sum(i, i + 1 < n, cos(x(i + 1) - x(i)))", rotors),
    "exponentials": ("(x::RV{n}) -> sum(i, i + 1 < n, exp(x(i + 1) - x(i)))", exponentials),
    "Fermi–Pasta–Ulam": (
        "(x::RV{n}) -> sum(i, i + 1 < n, (x(i + 1) - x(i))^2 / 2 + (x(i + 1) - x(i))^4 / 4)",
        quartic,
    ),
    "Rosenbrock": ("(x::RV{n}) -> sum(i, i + 1 < n, 100 * (x(i + 1) - x(i)^2)^2 + (1 - x(i))^2)", rosenbrock),
    "lattice": (
        "(x::RM{n, m}) -> sum((i, j), i + 1 < n, (x(i + 1, j) - x(i, j))^2)"
        " + sum((i, j), j + 1 < m, (x(i, j + 1) - x(i, j))^2)",
        lattice,
    ),
    "chain with declared bounds": (
        "@domain Z begin base = I; lower = 0; upper = {n} - 1 end\n"
        "@domain Y begin base = I; lower = 0; upper = {n} - 2 end\n"
        "(x::(Z) -> R) -> sum(i::Y, (x(i + 1) - x(i))^2)",
        chain,
    ),
}


def drawn(text: str, size: int) -> Array:
    """About so many numbers."""
    rng = np.random.default_rng(2024)
    side = round(size**0.5)
    shape = (side, side) if "::RM" in text else (size,)
    x = rng.standard_normal(shape) / 3
    return x + 1j * rng.standard_normal(shape) / 3 if "::CV" in text else x


def medians(calls: tuple[Callable[[Array], object], ...], x: Array, rounds: int) -> list[float]:
    """Microseconds of each, their calls one after the other in turn."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, found, strict=True):
            start = time.perf_counter()
            call(x)
            times.append(time.perf_counter() - start)
    return [1e6 * statistics.median(times) for times in found]


def row(name: str) -> str:
    """A line of the table, after both have been compared."""
    text, by_hand = ROWS[name]
    cells = [name]
    for size in SIZES:
        program = text.replace("{n} - 1", str(size - 1)).replace("{n} - 2", str(size - 2))
        x = drawn(text, size)
        scope: dict[str, Any] = {}
        exec(cd.grad(program).source(value=True, x=x.shape), scope)
        ours = scope["value_and_gradient"]
        for mine, theirs in zip(ours(x), by_hand(x), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
        a, b = medians((ours, by_hand), x, 3_000_000 // size + 100)
        cells.append(f"{a:.1f} / {b:.1f} = {a / b:.2f}")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(f"| problem | {' | '.join(f'n = {size:,}' for size in SIZES)} |\n| --- | --- | --- | --- |")
    for name in ROWS:
        print(row(name), flush=True)
