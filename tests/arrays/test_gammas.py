"""Quotients of gamma functions in code, and powers beside them, from 171 on and where signs change."""

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


def _poisson(k: float, l: Any) -> Any:  # noqa: E741
    return mpmath.exp(-l) * mpmath.power(l, k) / mpmath.gamma(k + 1)


def _binomial(n: float, k: float, p: Any) -> Any:
    return mpmath.binomial(n, k) * mpmath.power(p, k) * mpmath.power(1 - p, n - k)


def _gamma_density(x: float, a: Any) -> Any:
    return 2**a / mpmath.gamma(a) * mpmath.power(x, a - 1) * mpmath.exp(-2 * mpmath.mpf(x))


def _student(x: float, v: Any) -> Any:
    norm = mpmath.gamma((v + 1) / 2) / (mpmath.sqrt(v * mpmath.pi) * mpmath.gamma(v / 2))
    return norm * mpmath.power(1 + mpmath.mpf(x) ** 2 / v, -(v + 1) / 2)


CASES: dict[str, tuple[str, list[tuple[Any, ...]], Callable[..., Any]]] = {
    "a ratio": (
        "(x::R) -> gamma(x + 1) / gamma(x + 1/2)",
        [(2.5,), (300.25,), (-0.75,), (-1.25,), (-2.625,), (1e4,)],
        lambda x: mpmath.gamma(x + 1) / mpmath.gamma(x + 0.5),
    ),
    "a beta function": (
        "(b::R) -> (a::R) -> gamma(a) * gamma(b) / gamma(a + b)",
        [(1.5, 2.5), (0.5, 300.0), (1.5, -0.75), (-1.25, -2.5), (200.0, 210.0)],
        lambda b, a: mpmath.beta(a, b),
    ),
    "Poisson": (
        "(k::RV) -> (l::R) -> sum(i, exp(-l) * l^k(i) / factorial(k(i)))",
        [(np.array([0.0, 3.0, 7.0]), 2.5), (np.array([130.0, 180.0, 200.0]), 190.0), (np.array([0.0, 1.0, 4.0]), -1.5)],
        lambda k, l: sum(_poisson(j, l) for j in k),  # noqa: E741
    ),
    "a weighted mixture": (
        "(k::RV, w::RV) -> (t::R) -> sum(i, log(sum(c, w(c) * exp(-w(c) * t) * (w(c) * t)^k(i) / gamma(k(i) + 1))))",
        [(np.array([0.0, 3.0]), np.array([0.5, 1.5]), 2.5), (np.array([160.0, 310.0]), np.array([0.5, 1.5]), 200.0)],
        lambda k, w, t: sum(mpmath.log(sum(c * _poisson(j, c * t) for c in w)) for j in k),
    ),
    "binomial": (
        "(n::RV, k::RV) -> (p::R) -> "
        "sum(i, factorial(n(i)) / (factorial(k(i)) * factorial(n(i) - k(i))) * p^k(i) * (1 - p)^(n(i) - k(i)))",
        [
            (np.array([3.0, 5.0]), np.array([0.0, 2.0]), 0.25),
            (np.array([600.0, 2000.0]), np.array([150.0, 510.0]), 0.25),
        ],
        lambda n, k, p: sum(_binomial(m, j, p) for m, j in zip(n, k, strict=True)),
    ),
    "a gamma density": (
        "(x::RV) -> (a::R) -> sum(i, 2^a / gamma(a) * x(i)^(a - 1) * exp(-2 * x(i)))",
        [(np.array([0.5, 2.0]), 1.5), (np.array([90.0, 130.0]), 220.0)],
        lambda x, a: sum(_gamma_density(u, a) for u in x),
    ),
    "Student": (
        "(x::RV) -> (v::R) -> "
        "sum(i, gamma((v + 1) / 2) / (sqrt(v * pi) * gamma(v / 2)) * (1 + x(i)^2 / v)^(-(v + 1) / 2))",
        [(np.array([0.5, -2.0]), 2.5), (np.array([0.5, -2.0]), 400.0)],
        lambda x, v: sum(_student(u, v) for u in x),
    ),
    "a logarithm": (
        "(k::RV) -> (l::R) -> sum(i, log(exp(-l) * l^k(i) / factorial(k(i))))",
        [(np.array([0.0, 3.0]), 2.5), (np.array([3.0, 2000.0]), 900.0)],
        lambda k, l: sum(mpmath.log(_poisson(j, l)) for j in k),  # noqa: E741
    ),
}


@pytest.mark.parametrize(("name", "n"), [(name, n) for name in CASES for n in range(len(CASES[name][1]))])
def test_quotients_of_gammas_are_right_at_any_arguments(name: str, n: int) -> None:
    text, points, of = CASES[name]
    *given, x = points[n]
    value, slope = grad(text).compile(value=True)(*given, x)
    with mpmath.workdps(60):
        exact = [mpmath.diff(lambda u: of(*given, u), mpmath.mpf(x), order) for order in range(3)]
    np.testing.assert_allclose(float(value), float(exact[0]), rtol=1e-10)
    np.testing.assert_allclose(float(slope), float(exact[1]), rtol=1e-7, atol=1e-9 * abs(float(exact[0])))
    if (name, n) != ("a weighted mixture", 1):
        # its Hessian product has weighted sums of powers that stand alone
        curvature = hvp(text).compile()(*given, x, 1.0)
        np.testing.assert_allclose(float(curvature), float(exact[2]), rtol=1e-5, atol=1e-9 * abs(float(exact[0])))


def test_a_power_of_zero_beside_a_gamma_function_is_one() -> None:
    f = cd.simplified("(k::RV, p::R) -> i -> p^k(i) / factorial(k(i))").compile()
    np.testing.assert_array_equal(f(np.array([0.0, 2.0, 3.0]), 0.0), [1, 0, 0])


def test_what_is_about_a_power_leaves_powers_beside_it() -> None:
    source = cd.simplified("(v::R, x::R) -> gamma(x + 1) / gamma(x + 1/2) * v^x").source()
    assert "gammaln" in source and "sign" not in source.split('"""')[-1]
    assert "gammaln" not in cd.simplified("(x::R, y::R) -> gamma(x) * gamma(y)").source()
