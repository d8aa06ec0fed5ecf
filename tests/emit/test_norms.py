"""Norms of what overflows or vanishes as a square, against mpmath, in every library."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.verify import PlanError, verify
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

mpmath = pytest.importorskip("mpmath")

SCALES = (1e300, 1e160, 1.0, 1e-160, 1e-300)
DRAWN = np.random.default_rng(5).normal(size=(2, 2, 3, 5))


def _length(z: np.ndarray) -> float:
    return float(mpmath.sqrt(sum(mpmath.mpf(part) ** 2 for x in z.ravel() for part in (x.real, x.imag))))


@pytest.mark.sampled
@pytest.mark.parametrize("text", ["(x::RV) -> norm(x)", "(A::CM) -> norm(A)"])
def test_a_norm_and_its_gradient_have_any_scale(library: Numbers, text: str) -> None:
    z = DRAWN[0, 0, 0] if "RV" in text else DRAWN[0, 0] + 1j * DRAWN[1, 0]
    for numbers in (Numbers("numpy"), library):
        norm = cd.grad(text).compile(numbers.name, value=True)
        for scale in SCALES:
            value, gradient = norm(numbers.to(z * scale))
            np.testing.assert_allclose(numbers.back(value), _length(z * scale), rtol=1e-14)
            np.testing.assert_allclose(numbers.back(gradient), z / _length(z), rtol=1e-13)


@pytest.mark.sampled
def test_norms_of_rows_are_scaled_one_by_one(library: Numbers) -> None:
    rows = DRAWN[0, 0] * np.array([1e200, 1.0, 1e-200])[:, None]
    for numbers in (Numbers("numpy"), library):
        gradient = cd.grad("(A::RM) -> sum(i, norm(j -> A(i, j)))").compile(numbers.name)(numbers.to(rows))
        np.testing.assert_allclose(numbers.back(gradient), [row / _length(row) for row in rows], rtol=1e-13)
        columns = cd.simplified("(A::RM) -> j -> norm(i -> A(i, j))").compile(numbers.name)(numbers.to(rows))
        np.testing.assert_allclose(numbers.back(columns), [_length(column) for column in rows.T], rtol=1e-13)


@pytest.mark.sampled
def test_norms_of_nothing_of_zeros_and_of_what_is_not_finite(library: Numbers) -> None:
    for numbers in (Numbers("numpy"), library):
        norm = cd.simplified("(x::RV) -> norm(x)").compile(numbers.name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = [float(numbers.back(norm(numbers.to(x)))) for x in ([0.0, 0.0], [1.0, -np.inf], [np.nan, 2.0])]
        np.testing.assert_array_equal(found, [0, np.inf, np.nan])
        if numbers.name != "dask":  # which has no chunks of nothing
            assert float(numbers.back(norm(numbers.to(np.zeros(0))))) == 0


def test_a_norm_is_computed_in_blocks() -> None:
    text = "(x::RV) -> norm((i, j) -> exp(x(i) - x(j)))"
    x = np.random.default_rng(6).normal(size=700)
    norm = cd.simplified(text).compile("numpy", memory=1_000_000)
    np.testing.assert_allclose(norm(x), np.linalg.norm(np.exp(x[:, None] - x)), rtol=1e-13)


@pytest.mark.parametrize(
    "program", ["(x::CV) -> norm(x)", "(x::CM) -> norm(x)", "(x::CM) -> sum(i, norm(k -> x(i, k)))"]
)
def test_the_norm_of_complex_numbers_is_real(program: str) -> None:
    plan = cd.grad(program).plan(value=True)
    norms = [step for step in plan.steps if isinstance(step.op, ops.Norm)]
    assert norms and not any(step.complex for step in norms)
    wrong = replace(norms[0], complex=True)
    with pytest.raises(PlanError, match="norms are real"):
        verify(replace(plan, outputs=(wrong,)))


def test_kernels_take_the_norm_of_complex_numbers_as_real() -> None:
    text = cd.grad("(x::CM) -> sum(i, sin(exp(norm(k -> x(i, k)))))").source("cupy")
    assert "complex128" not in text
