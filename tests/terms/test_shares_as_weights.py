"""Shares and σ that weigh exponentials under a logarithm: they underflow where the logarithm of the sum does not."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

A, E = np.array([800.0, 0.0]), np.array([[-900.0, -1.0], [0.0, 3.0]])

SPELLINGS = {
    "a function": "sum(i, log(sum(k, softmax(a)(k) * exp(e(i, k)))))",
    "a quotient": "sum(i, log(sum(k, exp(a(k)) / sum(b, exp(a(b))) * exp(e(i, k)))))",
    "a definition": "begin p = softmax(a); sum(i, log(sum(k, p(k) * exp(e(i, k))))) end",
    "a weight of logsumexp": "sum(i, logsumexp(k, softmax(a)(k), e(i, k)))",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_shares_of_a_mixture_do_not_underflow(spelling: str) -> None:
    d = cd.grad(f"(e::RM{{n, m}}) -> (a::RV{{m}}) -> {SPELLINGS[spelling]}")
    with np.errstate(all="raise", under="ignore"):
        value, gradient = d.compile(value=True)(E, A)
    np.testing.assert_allclose(value, -801.0)
    np.testing.assert_allclose(gradient, [-1.0, 1.0])
    index = str(d).split("-> ")[2].strip()
    assert f"-> {index} -> sum(i, softmax(" in str(d), "the responsibilities, less the shares"
    assert f"- n * softmax(a)({index})" in str(d)


def test_a_sigmoid_that_weighs_an_exponential_does_not_underflow() -> None:
    d = cd.grad("(e::RV) -> (a::RV) -> log(sum(k, sigmoid(a(k)) * exp(e(k))))")
    with np.errstate(all="raise", under="ignore"):
        value, gradient = d.compile(value=True)(np.array([900.0, 0.0]), np.array([-800.0, 2.0]))
    np.testing.assert_allclose(value, 100.0)
    np.testing.assert_allclose(gradient, [1.0, 0.0], atol=1e-30)


def test_a_product_of_two_matrices_of_shares_stays_a_product() -> None:
    """In an exponent it would be a table over three indices."""
    program = """(C::RM{d, v}) -> (t::RM{d, k}, p::RM{k, v}) -> begin
      T = (i, k) -> softmax(l, t(i, l))(k)
      P = (k, w) -> softmax(u, p(k, u))(w)
      sum((i, w), C(i, w) * log(sum(k, T(i, k) * P(k, w))))
    end"""
    assert "T @ P" in cd.grad(program).source(value=True)


def test_the_model_of_counts_with_more_zeros_is_finite_and_short() -> None:
    d = cd.grad("""(m::RV, y::RV) -> (g::R) -> begin
      p = sigmoid(g)
      -sum(i, where(y(i) == 0, log(p + (1 - p) * exp(-m(i))), log(1 - p) - m(i)))
    end""")
    assert "sigmoid(-g - m(i))" in str(d)
    m, y = np.array([1100.0, 2.0, 0.5]), np.array([0.0, 0.0, 1.0])
    with np.errstate(all="raise", under="ignore"):
        for g in (-800.0, -1.0, 800.0):
            value, gradient = d.compile(value=True)(m, y, g)
            logs = -np.logaddexp(0, -g), -np.logaddexp(0, g)
            exact = -np.logaddexp(logs[0], logs[1] - m[:2]).sum() - logs[1] + 0.5
            np.testing.assert_allclose(value, exact, rtol=1e-12)
            assert np.isfinite(gradient)


def test_opposite_softplus_cancel() -> None:
    assert str(cd.simplified("(x::R) -> log(1 + exp(x)) - log(1 + exp(-x))")) == "(x::R) -> x"


def test_the_chance_that_an_answer_is_wrong_is_a_product_of_two() -> None:
    """log(1 − g − (1 − g) p), of the model of tests in which a guess may be right."""
    program = """(Y::RM{n, m}) -> (t::RV{n}, b::RV{m}, c::RV{m}) -> begin
      g = sigmoid.(c)
      P = (i, j) -> g(j) + (1 - g(j)) / (1 + exp(b(j) - t(i)))
      sum((i, j), Y(i, j) * log(P(i, j)) + (1 - Y(i, j)) * log(1 - P(i, j)))
    end"""
    d = cd.grad(program)
    assert " / " not in str(d), "nothing is divided by P or by 1 - P, which may be 0"
    Y, t, b, c = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([800.0, -800.0]), np.zeros(2), np.array([-1.0, -800.0])
    with np.errstate(all="raise", under="ignore"):
        value, (in_t, in_b, in_c) = (lambda v, *g: (v, g))(*d.compile(value=True)(Y, t, b, c))
    lg, rest = -np.logaddexp(0, -c), -np.logaddexp(0, c)
    z = t[:, None] - b
    right = np.logaddexp(lg, rest - np.logaddexp(0, -z))
    np.testing.assert_allclose(value, (Y * right + (1 - Y) * (rest - np.logaddexp(0, z))).sum(), rtol=1e-12)
    assert np.isfinite([*in_t, *in_b, *in_c]).all()


def test_a_label_with_noise_has_a_short_gradient() -> None:
    d = cd.grad("""(y::RV) -> (x::RV, e::R) -> begin
      p = sigmoid(e)
      sum(i, y(i) * log((1 - p) * sigmoid(x(i)) + p * (1 - sigmoid(x(i)))))
    end""")
    assert "softplus" not in str(d)
    assert "sigmoid(e - x(i))" in str(d)
