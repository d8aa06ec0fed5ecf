"""Shares of a sum with one more term, exp(u_j)/(1 + Σ exp(u_k)), and the logarithm of their mean, at scores of ±800."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import combdiff as cd

U = np.array([800.0, 790.0, 3.0])


def _logarithms(u: Any) -> Any:
    return u - np.logaddexp(0, logsumexp(u, axis=0))


SPELLINGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "shares": ("sum(j, y(j) * exp(u(j)) / (1 + sum(k, exp(u(k)))))", lambda y, u: y @ np.exp(_logarithms(u))),
    "a definition": (
        "begin d = 1 + sum(k, exp(u(k))); sum(j, y(j) * exp(u(j)) / d) end",
        lambda y, u: y @ np.exp(_logarithms(u)),
    ),
    "squares": (
        "sum(j, y(j) * (exp(u(j)) / (1 + sum(k, exp(u(k)))))^2)",
        lambda y, u: y @ np.exp(2 * _logarithms(u)),
    ),
    "entries": ("begin e = exp.(u); sum(y .* e) / (1 + sum(e)) end", lambda y, u: y @ np.exp(_logarithms(u))),
    "the other option": (
        "y(0) / (1 + sum(k, exp(-u(k))))",
        lambda y, u: y[0] * np.exp(-np.logaddexp(0, logsumexp(-u))),
    ),
    "two more": (
        "sum(j, y(j) * exp(u(j)) / (2 + exp(y(0)) + sum(k, exp(u(k)))))",
        lambda y, u: y @ np.exp(u - np.logaddexp(np.log(2 + np.exp(y[0])), logsumexp(u))),
    ),
    "one that is no summand": (
        "exp(u(0) - 1) / (1 + sum(k, exp(u(k))))",
        lambda y, u: np.exp(u[0] - 1 - np.logaddexp(0, logsumexp(u))),
    ),
    "a mean": (
        "begin s = j -> mean(i, exp(u(j) + y(i)) / (1 + sum(k, exp(u(k) + y(i))))); sum(j, log(s(j))) end",
        lambda y, u: (logsumexp(_logarithms(u[:, None] + y), axis=1) - np.log(len(y))).sum(),
    ),
    "a mean of shares": (
        "sum(j, log(mean(i, softmax(k, u(k) * y(i))(j))))",
        lambda y, u: (logsumexp(u[:, None] * y - logsumexp(u[:, None] * y, axis=0), axis=1) - np.log(len(y))).sum(),
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_shares_beside_another_option_do_not_overflow(name: str) -> None:
    text, value = SPELLINGS[name]
    d = cd.grad(f"(y::RV{{n}}) -> (u::RV{{n}}) -> {text}")
    f = d.compile(value=True)
    product = cd.hvp(f"(y::RV{{n}}) -> (u::RV{{n}}) -> {text}").compile()
    y = np.array([0.7, -0.2, 1.1])
    for u in (U, U - 797, -U, np.array([0.3, -0.6, 1.2])):
        with np.errstate(all="raise", under="ignore"):
            found, gradient = f(y, u)
            curvature = product(y, u, np.ones(3))
        np.testing.assert_allclose(found, value(y, u), rtol=1e-11, atol=1e-300)
        steps = [(value(y, u + e) - value(y, u - e)) / 2e-5 for e in 1e-5 * np.eye(3)]
        np.testing.assert_allclose(gradient, steps, rtol=1e-6, atol=1e-7)
        bent = (f(y, u + 1e-5)[1] - f(y, u - 1e-5)[1]) / 2e-5
        np.testing.assert_allclose(curvature, bent, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_shares_of_any_number_of_options(n: int) -> None:
    d = cd.grad("(y::RV) -> (u::RV) -> sum(j, y(j) * exp(u(j)) / (1 + sum(k, exp(u(k)))))")
    y, u = np.linspace(-1, 1, n), np.linspace(0, 2, n)
    s = np.exp(u) / (1 + np.exp(u).sum())
    np.testing.assert_allclose(d.compile()(y, u), y * s - s * (y @ s), rtol=1e-12)


EMPTY = {
    "an option of nobody": "(m::RV{n}) -> (a::RV{n}, s::R) -> log(sum(j, m(j) > 0, exp(a(j))) + exp(s))",
    "shares beside it": "(m::RV{n}) -> (a::RV{n}, s::R) -> "
    "sum(k, k * exp(a(k)) / (sum(j, m(j) > 0, exp(a(j))) + exp(s)))",
    "those behind, and more": "(m::RV{n}) -> (a::RV{n}, s::R) -> begin\n"
    "  Z = i -> sum(j, j > i, exp(a(j)))\n  sum(i, m(i) * log(Z(i) + exp(s)))\nend",
    "groups of which one is empty": "(m::RV{n}) -> (a::RV{n}, s::R) -> begin\n"
    "  g = j -> argmin(k, m(k) * m(j))\n  sum((q::N{n}), log(exp(s) + sum(j, g(j) == q, exp(a(j)))))\nend",
    "two sides": "(m::RV{n}) -> (a::RV{n}, s::R) -> "
    "s^2 + sum(i, m(i) * log(sum(j, j < i, exp(a(j))) + sum(j, j >= i, exp(2 * a(j)))))",
}


@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EMPTY)
def test_a_sum_in_which_nobody_takes_part_is_finite_beside_another(name: str, n: int) -> None:
    """Its logarithm is −∞, from which nothing is subtracted; the sum of the last, of those behind it, is one, too."""
    rng = np.random.default_rng(n)
    m, a, s = -1 - rng.random(n), rng.normal(size=n), float(rng.normal())
    f = cd.grad(EMPTY[name]).compile(value=True)
    _, by_a, by_s = f(m, a, s)
    h, direction = 1e-6, rng.normal(size=n)
    ends = [f(m, a + e * direction, s + e)[0] for e in (h, -h)]
    np.testing.assert_allclose(by_a @ direction + by_s, (ends[0] - ends[1]) / (2 * h), rtol=1e-7, atol=1e-8)


def test_a_group_may_have_another_option() -> None:
    # goods j in markets g(j), each with a good outside
    text = """(g::(N{n}) -> N{m}, y::RV{n}) -> (u::RV{n}) -> begin
      p = j -> exp(u(j)) / (1 + sum(k, g(k) == g(j), exp(u(k))))
      sum(j, y(j) * log(p(j)))
    end"""
    g, y, u = np.array([0, 1, 0, 1]), np.array([0.5, 2.0, 1.0, 3.0]), np.array([800.0, -800.0, 790.0, -1.0])
    same = g[:, None] == g
    inner = logsumexp(np.where(same, u, -np.inf), axis=1)
    d = cd.grad(text)
    value, gradient = d.compile(value=True)(g, y, u, m=2)
    assert np.isclose(value, y @ (u - np.logaddexp(0, inner)))
    shares = np.exp(np.where(same, u - np.logaddexp(0, inner)[:, None], -np.inf))
    assert np.allclose(gradient, y - y @ shares)
    assert np.isfinite(cd.hvp(text).compile()(g, y, u, np.ones(4), m=2)).all()
