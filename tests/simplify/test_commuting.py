"""Derivatives of exponentials along matrices that they commute with: products, as in textbooks."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.simplify.provenance.words import words_of

PRODUCTS = {
    "evolution in time": (
        "(H::Her, p::CV, q::CV) -> (t::R) -> real(q' * expm(-im * t * H) * p)",
        "-sum((j, i, k), imag(H(j, i) * p(k)' * q(i) * expm((i1, j1) -> -im * t * H(i1, j1))(j, k)'))",
    ),
    "a chain of Markov": (
        "(Q::RM{n, n}, p::RV, q::RV) -> (t::R) -> p' * expm(t * Q) * q",
        "sum((j, i, k), Q(j, i) * p(j) * q(k) * expm((i1, j1) -> t * Q(i1, j1))(i, k))",
    ),
    "a matrix with a name": (
        "(Q::RM{n, n}, p::RV, q::RV) -> (t::R) -> begin A = t * Q; p' * expm(A) * q end",
        "sum((i, j, k), Q(i, j) * p(i) * q(k) * expm(A)(j, k))",
    ),
    "transitions that are read by index": (
        "(Q::RM{n, n}, a::(N{m}) -> N{n}, b::(N{m}) -> N{n}) -> (t::RV{m}) -> sum(k, log(expm(t(k) * Q)(a(k), b(k))))",
        "sum(i, Q(a(k), i) * expm((j, j1) -> Q(j, j1) * t(k))(i, b(k)))",
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_derivative_by_a_factor_of_the_exponent_is_a_product(name: str) -> None:
    program, product = PRODUCTS[name]
    d = cd.grad(program)
    assert product in str(d), str(d)
    if "log" not in program:
        assert d.check()
        assert cd.hvp(program).check()


def test_a_tangent_along_the_exponent_is_a_product() -> None:
    d = cd.jvp("(Q::RM{n, n}, p::RV, q::RV) -> (t::R) -> p' * expm(t * Q) * q")
    assert "-> k * Q" not in str(d) and d.check()


@pytest.mark.parametrize(
    "program",
    [
        "(A::RM{n, n}, B::RM{n, n}) -> (t::R) -> tr(expm(A + t * B))",
        "(A::RM{n, n}, B::RM{n, n}) -> (t::R) -> sum(expm(t * A - t^2 * B))",
        "(A::RM{n, n}, x::RV{n}) -> (t::R) -> sum(expm((i, j) -> t * x(i) * A(i, j)))",
        "(A::CM{n, n}) -> (t::C) -> abs2(sum(expm(t * A)))",
        "(A::RM{n, n}) -> (t::R) -> sum(expm(t * A')) + sum((i, j), expm(t * A)(i, j) * A(i, j))",
    ],
)
def test_what_does_not_commute_keeps_its_derivative(program: str) -> None:
    d = cd.grad(program)
    assert d.check()


def test_transitions_by_index_are_right() -> None:
    program, _ = PRODUCTS["transitions that are read by index"]
    Q = np.array([[-1.0, 0.7, 0.3], [0.2, -0.5, 0.3], [0.6, 0.4, -1.0]])
    a, b, t = np.array([0, 2, 1, 0]), np.array([1, 2, 0, 0]), np.array([0.3, 1.0, 0.2, 2.0])
    value, gradient = cd.simplified(program).compile(), cd.grad(program).compile()
    slopes = [(value(Q, a, b, t + h) - value(Q, a, b, t - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(gradient(Q, a, b, t), slopes, rtol=1e-8)


def test_the_stage_is_told() -> None:
    steps = cd.grad(PRODUCTS["a chain of Markov"][0]).steps
    (step,) = (s for s in steps if s.name == "commuting matrices")
    assert words_of(step) == [
        "a matrix A commutes with exp(t A): the derivative of the exponential along A is a product"
    ]
