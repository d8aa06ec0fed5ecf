"""Quotients of sums of exponentials over an index, as an effective sample size, at exponents of ±800."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd

grad = cache(cd.grad)
hvp = cache(cd.hvp)

mpmath = pytest.importorskip("mpmath")

SPELLINGS: dict[str, tuple[str, Callable[..., Any]]] = {
    "an inverse": ("1 / sum(j, exp(x(j)))", lambda w, x, y: 1 / _sum(x)),
    "an inverse with a name": (
        "begin Z = sum(j, exp(x(j))); 1 / Z + log(Z) end",
        lambda w, x, y: 1 / _sum(x) + mpmath.log(_sum(x)),
    ),
    "an effective sample size": (
        "sum(j, exp(x(j)))^2 / sum(j, exp(2 * x(j)))",
        lambda w, x, y: _sum(x) ** 2 / _sum(x, 2),
    ),
    "of squares": (
        "begin e = j -> exp(x(j)); s = sum(j, e(j)); s^2 / sum(j, e(j)^2) end",
        lambda w, x, y: _sum(x) ** 2 / _sum(x, 2),
    ),
    "a root": ("sum(j, exp(x(j))) / sqrt(sum(j, exp(2 * x(j))))", lambda w, x, y: _sum(x) / mpmath.sqrt(_sum(x, 2))),
    "of two vectors": ("sum(j, exp(x(j))) / sum(j, exp(y(j)))", lambda w, x, y: _sum(x) / _sum(y)),
    "one of two": (
        "begin a = sum(j, exp(x(j))); b = sum(j, exp(y(j))); a / (a + b) end",
        lambda w, x, y: _sum(x) / (_sum(x) + _sum(y)),
    ),
    "weights of any sign": (
        "sum(j, w(j) * exp(x(j))) / sum(j, exp(y(j)))",
        lambda w, x, y: _sum(x, w=w) / _sum(y),
    ),
    "a square of such": (
        "sum(j, w(j) * exp(x(j)))^2 / sum(j, exp(2 * x(j)))",
        lambda w, x, y: _sum(x, w=w) ** 2 / _sum(x, 2),
    ),
    "the largest": ("maximum(j, exp(x(j))) / sum(j, exp(x(j)))", lambda w, x, y: mpmath.exp(max(x)) / _sum(x)),
    "the smallest": ("minimum(j, exp(x(j))) / sum(j, exp(y(j)))", lambda w, x, y: mpmath.exp(min(x)) / _sum(y)),
    "rows": (
        "sum(i, 1 / sum(j, exp(x(j) - y(i))))",
        lambda w, x, y: sum(mpmath.exp(b) for b in y) / _sum(x),
    ),
    "a product above": ("prod(j, exp(x(j) / 3)) / sum(j, exp(x(j)))", lambda w, x, y: mpmath.exp(sum(x) / 3) / _sum(x)),
    "a harmonic mean": ("1 / mean(j, 1 / exp(-x(j)))", lambda w, x, y: 3 / _sum(x)),
    "shares before exponentials": (
        "begin d = i -> sum(k, exp(x(k) - y(i))); sum(k, w(k) * exp(x(k)) * sum(i, exp(-y(i)) / d(i))) end",
        lambda w, x, y: 3 * _sum(x, w=w) / _sum(x),
    ),
    "a condition": (
        "sum(i, where(1 <= i, exp(x(i))) / sum(j, j <= i, exp(y(j))))",
        lambda w, x, y: sum(mpmath.exp(x[i]) / _sum(y[: i + 1]) for i in range(1, len(x))),
    ),
}
X, Y, W = [0.5, -0.75, 1.25], [-0.25, 0.5, 0.375], [2.0, -0.25, 0.5]


def _sum(x: list[Any], factor: int = 1, w: list[float] | None = None) -> Any:
    return sum((v * mpmath.exp(factor * u) for v, u in zip(w or [1] * len(x), x, strict=True)), mpmath.mpf(0))


INVERSES = ("an inverse", "an inverse with a name", "a harmonic mean")
"""These are out of range themselves at −800."""


@pytest.mark.parametrize(
    ("name", "shift"),
    [(name, 800) for name in SPELLINGS]
    + [
        pytest.param(name, shift, marks=(pytest.mark.slow, pytest.mark.long))
        for name in SPELLINGS
        for shift in (0, -800)
        if shift >= 0 or name not in INVERSES
    ],
)
def test_quotients_of_sums_of_exponentials_are_right_at_any_exponents(name: str, shift: float) -> None:
    text, of = SPELLINGS[name]
    program = f"(w::RV{{n}}) -> (x::RV{{n}}, y::RV{{n}}) -> {text}"
    x, y, w = np.array(X) + shift, np.array(Y) + shift, np.array(W)
    value, *gradient = grad(program).compile(value=True)(w, x, y)
    k = np.array([[0.5, 1.0, -1.5], [1.0, -0.5, 0.25]])
    product = hvp(program).compile()(w, x, y, *k)
    with mpmath.workdps(60):
        exact = _Exact(of, W)
        at, along = ([*map(mpmath.mpf, v)] for v in (np.concatenate([x, y]), k.ravel()))
        np.testing.assert_allclose(float(value), float(exact.value(at)), rtol=1e-12)
        np.testing.assert_allclose(np.concatenate(gradient), exact.gradient(at), rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(np.concatenate(product), exact.product(at, along), rtol=1e-9, atol=1e-11)


class _Exact:
    """A function of x and y with 60 digits, and its derivatives by differences."""

    step = 1e-20

    def __init__(self, of: Callable[..., Any], w: list[float]) -> None:
        self.of, self.w = of, w

    def value(self, at: list[Any]) -> Any:
        return self.of(self.w, at[:3], at[3:])

    def gradient(self, at: list[Any]) -> list[float]:
        return [float(u) for u in self._slopes(at)]

    def product(self, at: list[Any], along: list[Any]) -> list[float]:
        ends = ([u + s * v for u, v in zip(at, along, strict=True)] for s in (self.step, -self.step))
        ahead, behind = map(self._slopes, ends)
        return [float((a - b) / (2 * self.step)) for a, b in zip(ahead, behind, strict=True)]

    def _slopes(self, at: list[Any]) -> list[Any]:
        ends = [
            [self.value([*at[:n], at[n] + s, *at[n + 1 :]]) for s in (self.step, -self.step)] for n in range(len(at))
        ]
        return [(ahead - behind) / (2 * self.step) for ahead, behind in ends]


FORMS = {
    "(x::RV) -> 1 / sum(j, exp(x(j)))": "j -> -softmax(x)(j) * exp(-logsumexp(x))",
    "(x::RV) -> maximum(j, exp(x(j))) / sum(j, exp(x(j)))": (
        "j -> exp(maximum(x) - logsumexp(x)) * (ties(x)(j) - softmax(x)(j))"
    ),
    "(x::RV) -> sum(i, 1 / sum(j, exp(x(j) - x(i))))": "(j::N{n}) -> 0",
    "(x::RV) -> maximum(j, 1 <= j, exp(x(j)))": "ties(j1, 1 <= j1, exp(x(j1)))(j)",  # of nothing it is −∞, not 0
    "(x::R) -> exp(x) * exp(-2 * softplus(x))": "sigmoid(-x)^2 * sigmoid(x) - sigmoid(-x) * sigmoid(x)^2",
    # these cannot overflow, and have numbers for exponents
    "(w::RV) -> (x::RV) -> 1 / sum(j, exp(-(x(0) - w(j))^2))": "sum(j, exp(-(x(0) - w(j))^2))^2",
    "(x::RV{n}) -> x(0) / sum(j::N{n}, exp(-j))": "(d::N{n}) -> delta(0, d, 1) / sum(j::N{n}, exp(-j))",
}


@pytest.mark.parametrize("text", FORMS)
def test_quotients_of_sums_of_exponentials_are_short(text: str) -> None:
    assert FORMS[text] in " ".join(str(grad(text)).split())


ROOTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "one over a root": ("exp(x) / sqrt(1 + exp(2 * x))", lambda a, x: 1 / mpmath.sqrt(1 + mpmath.exp(-2 * x))),
    "a root of two": (
        "begin s = sqrt(1 + exp(2 * x)); exp(x) / s + 1 / s end",
        lambda a, x: (mpmath.exp(x) + 1) / mpmath.sqrt(1 + mpmath.exp(2 * x)),
    ),
    "a sum over a root": (
        "(1 + exp(x)) / sqrt(1 + exp(2 * x))",
        lambda a, x: (mpmath.exp(x) + 1) / mpmath.sqrt(1 + mpmath.exp(2 * x)),
    ),
    "two exponentials below a root": (
        "exp(x) / sqrt(exp(2 * x) + exp(2 * a))",
        lambda a, x: 1 / mpmath.sqrt(1 + mpmath.exp(2 * a - 2 * x)),
    ),
    "a square": ("exp(2 * x) / (1 + exp(x))^2", lambda a, x: (1 + mpmath.exp(-x)) ** -2),
    "any sign": ("exp(2 * x) / (a + exp(x))^2", lambda a, x: (1 + a * mpmath.exp(-x)) ** -2),
    "any sign below a root": (
        "exp(x) / sqrt(a + exp(2 * x))",
        lambda a, x: 1 / mpmath.sqrt(1 + a * mpmath.exp(-2 * x)),
    ),
}


@pytest.mark.parametrize("x", [-800.0, -300.0, 0.75, 300.0, 400.0, 800.0])
@pytest.mark.parametrize("name", ROOTS)
def test_exponentials_over_roots_and_powers_of_sums_do_not_overflow(name: str, x: float) -> None:
    text, of = ROOTS[name]
    with np.errstate(over="ignore"):  # a + exp(800) is ∞, and one over it 0
        value, slope = cd.grad(f"(a::R) -> (x::R) -> {text}").compile(value=True)(0.5, x)
    with mpmath.workdps(900):
        exact = [of(mpmath.mpf(0.5), mpmath.mpf(x) + s * mpmath.mpf(10) ** -300) for s in (0, 1, -1)]
        wanted = float((exact[1] - exact[2]) / (2 * mpmath.mpf(10) ** -300))
        np.testing.assert_allclose(float(value), float(exact[0]), rtol=1e-12, atol=1e-150)
        np.testing.assert_allclose(float(slope), wanted, rtol=1e-9, atol=1e-13)
