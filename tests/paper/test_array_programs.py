"""Smeding and others, *Dual-Numbers Reverse AD for Functional Array Languages*: its array operations as programs.

`build` and `gather` are maps of indices, `scatter` (section 3.3) is a sum with δ, a conditional is `where`; index
functions are index arithmetic, or arrays of integers where they divide. Values and gradients are held against loops.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd

SIZES = [1, 2, 3, 5, 7]


@cache
def checked(text: str) -> Any:
    d = cd.grad(text)
    assert d.check()
    return d.compile(value=True)


def value_and_gradient(text: str, *given: Any) -> tuple[Any, ...]:
    results: tuple[Any, ...] = checked(text)(*given)
    return results


# --- section 3.3 ----------------------------------------------------------------------------------------------------


def test_the_scatter_of_section_3_3() -> None:
    halves = cd.simplified("(half::(N{e}) -> N{m}, x::RV{e}) -> (k::N{m}) -> sum(i, delta(half(i), k, x(i)))")
    found = halves.compile()(np.arange(9) // 2, np.arange(1.0, 10.0), m=6)
    np.testing.assert_array_equal(found, [1 + 2, 3 + 4, 5 + 6, 7 + 8, 9, 0])


@pytest.mark.sampled
@pytest.mark.parametrize("size", SIZES)
def test_gather_and_scatter_are_adjoint(size: int) -> None:
    rng = np.random.default_rng(size)
    at, x, y = rng.integers(0, 4, size), rng.normal(size=(4, 2)), rng.normal(size=(size, 2))
    gather = cd.vjp("(at::(N) -> N{n}) -> (x::RM{n, c}) -> (e::N, c1::N{c}) -> x(at(e), c1)")
    scatter = cd.vjp(
        "(at::(N{e}) -> N{n}) -> (y::RM{e, c}) -> (j::N{n}, c1::N{c}) -> sum(e1, delta(at(e1), j, y(e1, c1)))"
    )
    scattered = np.zeros((4, 2))
    for e in range(size):
        scattered[at[e]] += y[e]
    np.testing.assert_allclose(gather.compile()(at, x, y), scattered, rtol=1e-14)
    np.testing.assert_array_equal(scatter.compile()(at, y, x), x[at])
    assert "x[at]" in cd.simplified("(at::(N) -> N{n}, x::RM{n, c}) -> (e::N, c1::N{c}) -> x(at(e), c1)").source()


@pytest.mark.parametrize("size", SIZES)
def test_a_gather_by_index_functions_of_two_indices(size: int) -> None:
    # gather [n, n] (λ[i, j]. [j, n − 1 − i]): a quarter turn
    rng = np.random.default_rng(size)
    w, A = rng.normal(size=(2, size, size))
    value, gradient = value_and_gradient(
        "(w::RM{n, n}) -> (A::RM{n, n}) -> sum((i, j), w(i, j) * A(j, n - 1 - i)^2)", w, A
    )
    np.testing.assert_allclose(value, np.sum(w * _turned(A) ** 2), rtol=1e-13)
    expected = np.zeros_like(A)
    for i in range(size):
        for j in range(size):
            expected[j, size - 1 - i] += 2 * w[i, j] * A[j, size - 1 - i]
    np.testing.assert_allclose(gradient, expected, rtol=1e-13)


def _turned(A: Any) -> Any:
    n = len(A)
    return np.array([[A[j, n - 1 - i] for j in range(n)] for i in range(n)])


# --- build, conditionals --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_build_of_indexed_sums_takes_no_array_of_one_hot_vectors(size: int) -> None:
    # section 4.4: the derivative of an index is a one-hot vector, and many of them are to be one array
    rng = np.random.default_rng(size)
    x = rng.normal(size=size)
    text = "(x::RV{n}) -> sum(i, i + 1 < n, x(i) * sin(x(i + 1)))"
    value, gradient = value_and_gradient(text, x)
    np.testing.assert_allclose(value, sum(x[i] * np.sin(x[i + 1]) for i in range(size - 1)), rtol=1e-13)
    expected = np.zeros(size)
    for i in range(size - 1):
        expected[i] += np.sin(x[i + 1])
        expected[i + 1] += x[i] * np.cos(x[i + 1])
    np.testing.assert_allclose(gradient, expected, rtol=1e-13, atol=1e-15)
    plan = cd.grad(text).plan(x=(50,))
    assert max(map(plan.entries, plan.steps)) == 50


@pytest.mark.parametrize("size", SIZES)
def test_a_conditional_computes_no_branch_that_is_not_taken(size: int) -> None:
    x = np.random.default_rng(size).normal(size=size)
    value, gradient = value_and_gradient("(x::RV) -> sum(i, where(x(i) > 0, log(x(i)), x(i)^2))", x)
    up = x > 0
    np.testing.assert_allclose(value, np.log(x[up]).sum() + (x[~up] ** 2).sum(), rtol=1e-13)
    np.testing.assert_allclose(gradient, [1 / t if t > 0 else 2 * t for t in x], rtol=1e-13)


# --- Fig. 18 --------------------------------------------------------------------------------------------------------


def test_the_product_of_figure_18() -> None:
    d = cd.grad("(x::RV) -> sum(i, i <= 4, x(i) * x(4 - i))")
    assert str(d) == "(x::RV{n}) -> (i::N{n}) -> 2 * where(i <= 4, x(4 - i))"
    np.testing.assert_array_equal(d.compile()(np.arange(1.0, 8.0)), [10, 8, 6, 4, 2, 0, 0])
    with pytest.raises(cd.CombDiffError, match="reads entry 4 of slot 1 of x, which has 4 values"):
        d.compile()(np.ones(4))


@pytest.mark.parametrize("size", SIZES)
def test_the_product_of_an_array_and_its_reverse(size: int) -> None:
    d = cd.grad("(x::RV{n}) -> sum(i, x(i) * x(n - 1 - i))")
    assert str(d) == "(x::RV{n}) -> (i::N{n}) -> 2 * x(n - 1 - i)"
    x = np.random.default_rng(size).normal(size=size)
    np.testing.assert_array_equal(d.compile()(x), 2 * x[::-1])
    assert "return 2 * x[::-1]" in d.source()


# --- reads out of range ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_concatenation_reads_no_array_beyond_its_range(size: int) -> None:
    rng = np.random.default_rng(size)
    x, y, w = rng.normal(size=size), rng.normal(size=3), rng.normal(size=size + 3)
    text = """(w::RV{k}) -> (x::RV{n}, y::RV{m}) -> begin
    both = i -> sum(j, j == i, x(j)) + where(n <= i < n + m, y(i - n))
    sum(i, w(i) * both(i)^3)
end"""
    value, of_x, of_y = value_and_gradient(text, w, x, y)
    both = np.concatenate([x, y])
    np.testing.assert_allclose(value, w @ both**3, rtol=1e-13)
    np.testing.assert_allclose(np.concatenate([of_x, of_y]), 3 * w * both**2, rtol=1e-13)
    # what is behind both is 0, what is beyond the result is left out
    longer, shorter = np.append(w, rng.normal(size=2)), w[: size + 1]
    f = checked(text)
    for got, expected in zip(f(longer, x, y), (value, of_x, of_y), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-13)
    _, of_x, of_y = f(shorter, x, y)
    np.testing.assert_allclose(of_x, 3 * w[:size] * x**2, rtol=1e-13)
    np.testing.assert_allclose(of_y, [3 * w[size] * y[0] ** 2, 0, 0], rtol=1e-13)


@pytest.mark.slow
def test_zeros_around_an_array() -> None:
    text = "(c::RV{m}) -> (x::RV{n}) -> sum(i::N{n}, sum(k, 0 <= i + k - 1 < n, c(k) * x(i + k - 1))^2)"
    d = cd.grad("@domain K begin base = I; lower = 0; upper = 2 end\n" + text.replace("RV{m}", "(K) -> R"))
    assert d.check()
    f = d.compile(value=True)
    for size in SIZES:
        rng = np.random.default_rng(size)
        kernel, x = rng.normal(size=3), rng.normal(size=size)
        _, gradient = f(kernel, x)
        M = np.array([[kernel[j - i + 1] if 0 <= j - i + 1 < 3 else 0 for j in range(size)] for i in range(size)])
        np.testing.assert_allclose(gradient, 2 * M.T @ (M @ x), rtol=1e-12, atol=1e-13)
