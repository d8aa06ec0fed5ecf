"""Listing 2: xᴴ A x, with A Hermitian (Eq. 47) and with A general."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

from . import oracle

HERMITIAN = oracle.example("quadratic")
GENERAL = HERMITIAN.replace("A::Her", "A::CM")
SIZES = (0, 1, 2, 5)


def test_eq_47_the_gradient_of_a_hermitian_form_is_one_term():
    assert str(cd.grad(HERMITIAN)) == "(A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))"


def test_eq_47_in_matrix_form():
    d = cd.grad(HERMITIAN)
    assert d.matrix_text() == "2 A x"
    assert d.latex(form="matrix") == r"A \mapsto x \mapsto 2 A x"
    assert d.latex() == r"A \mapsto x \mapsto i \mapsto 2 \sum_{j} A_{i,j}\, x_{j}"


def test_the_gradient_of_a_general_form_has_two_terms():
    d = cd.grad(GENERAL)
    assert str(d) == "(A::CM) -> (x::CV) -> i -> sum(j, A(i, j) * x(j)) + sum(j, A(j, i)' * x(j))"


def test_the_gradient_of_a_general_form_in_matrix_form():
    d = cd.grad(GENERAL)
    assert d.matrix_text() == "(A + A†) x"
    assert d.latex(form="matrix") == r"A \mapsto x \mapsto (A + A^{\dagger}) x"


def test_a_real_symmetric_and_a_real_general_form():
    text = "(A::Sym) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))"
    assert cd.grad(text).matrix_text() == "2 A x"
    assert cd.grad(text.replace("Sym", "RM")).matrix_text() == "(A + Aᵀ) x"


def test_the_hessian_vector_product_of_a_hermitian_form():
    d = cd.hvp(HERMITIAN)
    assert d.matrix_text() == "2 A k"
    assert str(d) == "(A::Her) -> (x::CV, k::CV) -> i -> 2 * sum(j, A(i, j) * k(j))"


@pytest.mark.sampled
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_of_a_hermitian_form_as_numbers(seed, size):
    t = oracle.trial(cd.grad(HERMITIAN), seed, A=(size, size))
    oracle.close(t.result(), 2 * t["A"] @ t["x"])
    oracle.close(t.run(), 2 * t["A"] @ t["x"])
    oracle.agrees_with_differences(t)


@pytest.mark.sampled
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_of_a_general_form_as_numbers(seed, size):
    t = oracle.trial(cd.grad(GENERAL), seed, A=(size, size))
    expected = (t["A"] + t["A"].conj().T) @ t["x"]
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_value_and_gradient_come_together(seed):
    t = oracle.trial(cd.grad(HERMITIAN), seed, A=(4, 4))
    value, gradient = t.run(value=True)
    oracle.close(value, np.vdot(t["x"], t["A"] @ t["x"]))
    oracle.close(gradient, 2 * t["A"] @ t["x"])


@pytest.mark.slow
@pytest.mark.parametrize("text", [HERMITIAN, GENERAL])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_is_the_conjugate_of_what_jax_returns(seed, text):
    t = oracle.trial(cd.grad(text), seed, A=(3, 3))

    def f(x):
        return (x.conj() @ t["A"] @ x).real

    oracle.close(t.run(), oracle.jax_gradient(f, t["x"]))
