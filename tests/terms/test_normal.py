"""The normal distribution's logarithm and ratios at scores where its tail is 0 in floating point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

mpmath = pytest.importorskip("mpmath")

SCORES = np.array([-120.0, -40.0, -6.0, -0.5, 0.0, 1.0, 7.0])


def _log(x: Any) -> Any:
    return mpmath.log(mpmath.ncdf(x))


def _ratio(x: Any) -> Any:
    return mpmath.npdf(x) / mpmath.ncdf(x)


PROGRAMS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "normcdf": ("log(normcdf(x(i)))", _log),
    "erfc": ("log(0.5 * erfc(-x(i) / sqrt(2)))", _log),
    "erf": ("log((1 + erf(x(i) / sqrt(2))) / 2)", _log),
    "less erf": ("log(1 - erf(x(i)))", lambda x: mpmath.log(mpmath.erfc(x))),
    "the other tail": ("log(1 - normcdf(x(i)))", lambda x: _log(-x)),
    "a power": ("log(normcdf(x(i))^3)", lambda x: 3 * _log(x)),
    "a density in front": ("log(normpdf(x(i)) * normcdf(-x(i)))", lambda x: mpmath.log(mpmath.npdf(x)) + _log(-x)),
    "a definition": ("begin P = normcdf(x(i)); log(P) + log(1 - P) end", lambda x: _log(x) + _log(-x)),
    "the ratio": ("normpdf(x(i)) / normcdf(x(i))", _ratio),
    "the hazard": ("normpdf(x(i)) / (1 - normcdf(x(i)))", lambda x: _ratio(-x)),
    "its square": ("(normpdf(x(i)) / normcdf(x(i)))^2", lambda x: _ratio(x) ** 2),
    "the function": ("lognormcdf(x(i))", _log),
}
GROWN: dict[str, Callable[[Any], Any]] = {
    "exp(x(i)^2) * erfc(x(i))": lambda x: mpmath.exp(x**2) * mpmath.erfc(x),
    "x(i) * erfc(2 * x(i)) * exp(4 * x(i)^2)": lambda x: x * mpmath.exp(4 * x**2) * mpmath.erfc(2 * x),
    "erfcx(x(i))": lambda x: mpmath.exp(x**2) * mpmath.erfc(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_tail_of_the_normal_distribution_does_not_underflow(name: str) -> None:
    text, value = PROGRAMS[name]
    program = f"(x::RV) -> (i::N) -> {text}"
    with mpmath.workdps(40), np.errstate(all="raise", under="ignore"):
        exact = [[float(mpmath.diff(value, x, n)) for n in range(3)] for x in map(mpmath.mpf, SCORES)]
        values, slopes, curvatures = np.array(exact).T
        np.testing.assert_allclose(cd.simplified(program).compile()(SCORES), values, rtol=1e-11)
        summed = f"(x::RV) -> sum(i, {text})"
        np.testing.assert_allclose(
            cd.grad(summed).compile()(SCORES), slopes, rtol=1e-7
        )  # of the ratio, 1 is a difference of 120²
        ones = np.ones_like(SCORES)
        np.testing.assert_allclose(cd.hvp(summed).compile()(SCORES, ones), curvatures, rtol=1e-5, atol=1e-3)


def test_the_probability_of_an_interval_is_right_in_both_tails() -> None:
    program = "(a::RV) -> (b::RV) -> sum(i, log(normcdf(b(i)) - normcdf(a(i))))"
    a, b = np.array([-41.0, -1.0, 30.0]), np.array([-40.0, 1.0, 31.0])
    with mpmath.workdps(400):
        exact = [mpmath.npdf(v) / (mpmath.ncdf(v) - mpmath.ncdf(u)) for u, v in zip(a, b, strict=True)]
    np.testing.assert_allclose(cd.grad(program).compile()(a, b), [float(t) for t in exact], rtol=1e-10)


def test_the_likelihood_of_a_frontier_is_finite_far_from_it() -> None:
    program = """
    (e::RV) -> (s::R, l::R) -> -sum(log.(2 / s * normpdf.(e / s) .* normcdf.(-e * l / s)))
    """
    found = cd.grad(program).compile()(np.array([80.0, -80.0, 0.0]), 1.0, 1.5)
    assert np.isfinite(found).all()


def test_the_formula_is_the_ratio() -> None:
    d = cd.grad("(x::RV) -> sum(i, log(normcdf(x(i))))")
    assert str(d) == "(x::RV) -> i -> exp(-1/2 * x(i)^2 - lognormcdf(x(i))) / sqrt(2 * pi)"
    assert d.check()


@pytest.mark.parametrize("text", GROWN)
def test_a_tail_times_what_grows_neither_overflows_nor_underflows(text: str) -> None:
    x = np.array([-3.0, 0.0, 0.4, 5.0, 30.0, 1000.0])
    with mpmath.workdps(60):
        exact = [[float(mpmath.diff(GROWN[text], v, n)) for n in range(2)] for v in map(mpmath.mpf, x)]
    values, slopes = np.array(exact).T
    found, gradient = cd.grad(f"(x::RV) -> sum(i, {text})").compile(value=True)(x)
    assert np.isclose(found, values.sum(), rtol=1e-13)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-9)
    assert "erfcx" in str(cd.grad(f"(x::RV) -> sum(i, {text})"))


@pytest.mark.parametrize("tail, at", [("normcdf(x)", -1.0), ("erfc(x)", 1.0), ("normcdf(3 * x)", -1.0)])
def test_the_ratio_keeps_its_digits_far_out(tail: str, at: float) -> None:
    """The exponent x²/2 + log Φ is a difference of numbers of 10⁶, and the curvature one of such ratios."""
    of = {"normcdf(x)": mpmath.ncdf, "erfc(x)": mpmath.erfc, "normcdf(3 * x)": lambda x: mpmath.ncdf(3 * x)}[tail]
    text = f"(x::R) -> log({tail})"
    slope, curvature = cd.grad(text).compile(), cd.hvp(text).compile()
    for x in (at * 40, at * 1000):
        with mpmath.workdps(60):
            exact = [float(mpmath.diff(lambda t: mpmath.log(of(t)), mpmath.mpf(x), n)) for n in (1, 2)]
        assert np.isclose(slope(x), exact[0], rtol=1e-14)
        assert np.isclose(curvature(x, 1.0), exact[1], rtol=1e-8)


def test_quantiles_are_those_of_scipy() -> None:
    special = pytest.importorskip("scipy.special")
    p = np.array([1e-300, 1e-5, 0.3, 0.5, 0.999])
    found, slopes = cd.grad("(p::RV) -> sum(i, norminv(p(i)))").compile(value=True)(p)
    assert np.isclose(found, special.ndtri(p).sum())
    np.testing.assert_allclose(slopes * np.exp(-(special.ndtri(p) ** 2) / 2) / np.sqrt(2 * np.pi), 1, rtol=1e-12)
    assert cd.grad("(x::RV) -> sum(i, erfinv(x(i) / (1 + abs(x(i)))))").check()
    guarded = cd.grad("(p::RV) -> sum(i, where(p(i) > 0 and p(i) < 1, norminv(p(i))))")
    assert np.isfinite(guarded.compile()(np.array([-1.0, 0.0, 0.5, 1.0, 2.0]))).all()
