"""The cubic form Σ T x x x with T real and fully symmetric, complex x too."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

SPACE = "@space Cubic begin type = (N, N, N) -> R; symmetries = (((2, 1, 3), :id), ((1, 3, 2), :id)) end\n"
TEXT = SPACE + "(T::Cubic) -> (x::RV) -> sum((i, j, k), T(i, j, k) * x(i) * x(j) * x(k))"
OVER_C = TEXT.replace("RV", "CV")
gradient, hessian = cache(cd.grad), cache(cd.hvp)
SIZES = (0, 1, 2, 5)


def body(d):
    return str(d).splitlines()[-1]


def test_the_gradient_is_one_term_with_factor_three():
    assert body(gradient(TEXT)) == "(T::Cubic) -> (x::RV) -> i -> 3 * sum((j, k), T(i, j, k) * x(j) * x(k))"


def test_the_gradient_in_latex():
    assert gradient(TEXT).latex() == r"T \mapsto x \mapsto i \mapsto 3 \sum_{j,k} T_{i,j,k}\, x_{j}\, x_{k}"


def test_the_hessian_vector_product_is_one_term_with_factor_six():
    (term,) = oracle.outputs(hessian(TEXT))
    assert oracle.factors_in_front(term) == [6]


def test_over_complex_numbers_the_gradient_is_conjugate():
    (term,) = oracle.outputs(gradient(OVER_C))
    assert oracle.factors_in_front(term) == [3]
    assert str(gradient(OVER_C)).count("'") == 2


def test_with_one_symmetry_of_two_there_are_two_terms():
    text = TEXT.replace(", ((1, 3, 2), :id)", ",")
    found = oracle.squeezed(gradient(text))
    assert oracle.squeezed("sum((j, k), x(j) * x(k) * (2 * T(i, k, j) + T(k, j, i)))") in found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_as_numbers(seed, size):
    t = oracle.trial(gradient(TEXT), seed, T=(size,) * 3)
    expected = 3 * np.einsum("ijk,j,k->i", t["T"], t["x"], t["x"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_over_complex_numbers_as_numbers(seed, size):
    t = oracle.trial(gradient(OVER_C), seed, T=(size,) * 3)
    expected = 3 * np.einsum("ijk,j,k->i", t["T"], t["x"], t["x"]).conj()
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_hessian_vector_product_as_numbers(seed):
    t = oracle.trial(hessian(TEXT), seed, T=(3, 3, 3))
    (k,) = t.cotangents()
    oracle.close(t.run(), 6 * np.einsum("ijk,j,k->i", t["T"], t["x"], k))
    oracle.agrees_with_second_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_by_jax(seed):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(TEXT), seed, T=(3, 3, 3))
    oracle.close(t.run(), oracle.jax_gradient(lambda x: jnp.einsum("ijk,i,j,k->", t["T"], x, x, x), t["x"]))
