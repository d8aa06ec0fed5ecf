"""Programs that lead with indices, `(A::RM) -> (i::N) -> (x::RV) -> …`: one array over all values of i."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

SIZES = ((1, 1), (2, 3), (3, 2), (5, 7), (7, 5))
LOSS = """(A::RM, b::RV) -> (i::N) -> (x::RV) -> begin
  r = sum(j, A(i, j) * x(j)) - b(i)
  r^2 + exp(-r * r)
end"""


def _expected(A: np.ndarray, b: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r = A @ x - b
    slope = 2 * r * (1 - np.exp(-(r**2)))
    bend = 2 * (1 - np.exp(-(r**2))) + 4 * r**2 * np.exp(-(r**2))
    return r**2 + np.exp(-(r**2)), slope[:, None] * A, bend[:, None, None] * A[:, :, None] * A[:, None, :]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch"])
def test_per_example_gradients_are_rows(backend: str) -> None:
    if backend != "numpy":
        library = pytest.importorskip(backend)
        if backend == "jax":
            library.config.update("jax_enable_x64", True)
    f = cd.grad(LOSS).compile(backend, value=True)
    rng = np.random.default_rng(1)
    for n, m in SIZES:
        A, b, x = rng.standard_normal((n, m)), rng.standard_normal(n), rng.standard_normal(m)
        value, gradient, _ = _expected(A, b, x)
        found = f(*((library.asarray if backend == "torch" else np.asarray)(v) for v in (A, b, x)))
        assert np.allclose(found[0], value) and np.allclose(found[1], gradient)


@pytest.mark.slow
def test_products_and_matrices_of_second_derivatives_have_the_axis_too() -> None:
    rng = np.random.default_rng(2)
    f, h = cd.grad(LOSS).compile(hvp=True), cd.hessian(LOSS).compile()
    for n, m in SIZES:
        A, b, x, k = rng.standard_normal((n, m)), rng.standard_normal(n), rng.standard_normal(m), rng.standard_normal(m)
        _, gradient, hessian = _expected(A, b, x)
        found, hvp = f(A, b, x)
        assert np.allclose(found, gradient) and np.allclose(hvp(k), hessian @ k) and np.allclose(h(A, b, x), hessian)


def test_an_index_among_the_parameters_leads_as_well() -> None:
    text = "(A::RM, i::N, x::RV) -> sum(j, A(i, j) * x(j)^2)"
    d = cd.grad(text, wrt="x")
    A, x = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    assert np.allclose(d.compile()(A, x), 2 * A * x) and d.check()


@pytest.mark.slow
def test_the_rows_are_those_of_the_jacobian() -> None:
    rows = cd.grad("(A::RM) -> (i::N) -> (x::RV) -> tanh(sum(j, A(i, j) * x(j)))").compile()
    jacobian = cd.jacobian("(A::RM) -> (x::RV) -> (i::N) -> tanh(sum(j, A(i, j) * x(j)))").compile()
    rng = np.random.default_rng(3)
    A, x = rng.standard_normal((4, 3)), rng.standard_normal(3)
    assert np.allclose(rows(A, x), jacobian(A, x))


@pytest.mark.slow
def test_code_printed_text_and_sources_agree() -> None:
    d = cd.grad(LOSS)
    assert d.check() and "def gradient(A, b, x)" in d.source() and d.latex(style="paper")


@pytest.mark.slow
def test_two_leading_indices_and_two_unknowns() -> None:
    d = cd.grad("(A::RM) -> (i::N, j::N) -> (x::RV, s::R) -> A(i, j) * x(i) * x(j)^2 * s")
    assert d.check()
    A = np.arange(4.0).reshape(2, 2)
    gradient, slope = d.compile()(A, np.array([2.0, 3.0]), 0.5)
    assert gradient.shape == (2, 2, 2) and slope.shape == (2, 2)
    assert np.isclose(slope[0, 1], A[0, 1] * 2 * 9)
