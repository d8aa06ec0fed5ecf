"""All powers of an array, x(i)^j for every j, are made by products; a product of matrices is negated, not a matrix."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

SIZES = (1, 2, 3, 5, 7)
POLYNOMIAL = "(t::RV) -> (c::RV) -> (i::N) -> sum(j, t(i)^j * c(j))"


@pytest.mark.sampled
@pytest.mark.parametrize("library", ["numpy", "jax", "dask"])
@pytest.mark.parametrize("degree", [*SIZES, 8, 9, 17, 64])
def test_a_polynomial_has_the_powers_of_numpy(library: str, degree: int) -> None:
    d = cd.simplified(POLYNOMIAL)
    if library == "dask":
        pytest.importorskip("dask")
    if library == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    assert "powers(" in d.source(library) and ".power(" not in d.source(library)
    f = d.compile(library)
    rng = np.random.default_rng(degree)
    for n in SIZES:
        t, c = rng.normal(size=n), rng.normal(size=degree)
        t[0] = 0
        want = np.polynomial.polynomial.polyval(t, c)
        assert np.allclose(f(t, c), want, rtol=1e-12, atol=1e-12 * abs(want).max())


@pytest.mark.sampled
@pytest.mark.parametrize("text", [POLYNOMIAL, "(t::CM) -> (c::RV) -> (i::N, k::N) -> sum(j, t(i, k)^j * c(j))"])
def test_their_derivatives_are_those_of_the_formula(text: str) -> None:
    assert cd.grad(text.replace("(i::N) -> ", "sum(i, ").replace("(i::N, k::N) -> ", "sum((i, k), ") + ")").check()
    for wrt in "tc":
        assert cd.pullback(text, wrt=wrt).check()


def test_no_power_overflows_that_is_not_asked_for() -> None:
    f = cd.simplified(POLYNOMIAL).compile()
    with np.errstate(all="raise"):
        assert np.array_equal(f(np.array([1e200, -1e200]), np.ones(2)), [1 + 1e200, 1 - 1e200])


def test_exponents_that_do_not_begin_at_zero_are_left_to_the_library() -> None:
    text = "@domain E begin lower = 1; upper = 3 end\n(t::RV) -> (c::(E) -> R) -> (i::N) -> sum(j, t(i)^j * c(j))"
    d = cd.simplified(text)
    assert "powers(" not in d.source()
    assert np.allclose(d.compile()(np.array([2.0, -3.0]), np.array([1.0, 0.0, 1.0])), [10, -30])


def test_a_product_of_matrices_is_negated_and_not_its_first_factor() -> None:
    text = "(A::RM, y::RV) -> (x::RV) -> (i::N) -> -sum(j, A(i, j) * x(j))"
    assert "return -(A @ x)" in cd.simplified(text).source()
