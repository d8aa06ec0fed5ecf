"""Sums of exponentials where a number, or all of them, is −∞ or ∞, against the limit, in every library."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.values import Value
from combdiff.terms.terms import Lam, Term
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

INF = np.inf
CASES = [
    ("(x::RV) -> logsumexp(i, x(i))", ([-INF, -INF],), -INF, [0, 0]),
    ("(x::RV) -> logsumexp(i, x(i))", ([-INF],), -INF, [0]),
    ("(x::RV) -> logsumexp(i, x(i))", ([-INF, 2.0],), 2, [0, 1]),
    ("(x::RV) -> logsumexp(i, x(i))", ([-1e200, -1e200],), -1e200, [0.5, 0.5]),
    ("(x::RV) -> log(sum(i, exp(x(i))))", ([-INF, -INF],), -INF, [0, 0]),
    ("(x::RV) -> logsumexp(i, 1 <= i, x(i))", ([3.0, -INF],), -INF, [0, 0]),
    ("(w::RV) -> (x::RV) -> logsumexp(i, w(i), x(i))", ([0.0, 1.0], [5.0, -INF]), -INF, [0, 0]),
    ("(w::RV) -> (x::RV) -> logsumexp(i, w(i), x(i))", ([0.0, 1.0], [INF, 2.0]), 2, [0, 1]),
    ("(w::RV) -> (x::RV) -> logsumexp(i, w(i), x(i))", ([0.0, 0.0], [1.0, 2.0]), -INF, [0, 0]),
    ("(x::RV) -> (w::RV) -> logsumexp(i, w(i), x(i))", ([700.0, 0.0], [0.0, 1.0]), 0, [np.exp(700.0), 1]),
]


def _meaning(term: Term, arrays: list[np.ndarray]) -> Value:
    values = {}
    while isinstance(term, Lam) and len(values) < len(arrays):
        values |= dict(zip(term.params, arrays[len(values) :], strict=False))
        term = term.body
    return evaluate(term, values)


@pytest.mark.sampled
@pytest.mark.parametrize(("text", "data", "value", "gradient"), CASES)
def test_infinite_exponents_have_their_limits(
    library: Numbers, text: str, data: tuple[list[float], ...], value: float, gradient: list[float]
) -> None:
    arrays = [np.array(x) for x in data]
    for numbers in (Numbers("numpy"), library):
        both = cd.grad(text).compile(numbers.name, value=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = both(*map(numbers.to, arrays))
        assert float(numbers.back(found[0])) == value
        np.testing.assert_allclose(numbers.back(found[1]), gradient, rtol=1e-13)


@pytest.mark.parametrize(("text", "data", "value", "gradient"), CASES)
def test_the_meaning_of_infinite_exponents_is_their_limit(
    text: str, data: tuple[list[float], ...], value: float, gradient: list[float]
) -> None:
    arrays = [np.array(x) for x in data]
    assert _meaning(infer(parse(text)), arrays) == value
    np.testing.assert_allclose(_meaning(cd.grad(text).term, arrays), gradient, rtol=1e-13)


@pytest.mark.sampled
def test_the_second_derivative_where_nothing_is_finite_is_zero(library: Numbers) -> None:
    d = cd.hvp("(x::RM) -> sum(i, logsumexp(j, x(i, j)))")
    x, k = np.array([[-INF, -INF], [1.0, -INF], [0.0, 0.0]]), np.ones((3, 2)) * [1.0, 3.0]
    for numbers in (Numbers("numpy"), library):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = numbers.back(d.compile(numbers.name)(numbers.to(x), numbers.to(k)))
        np.testing.assert_allclose(found, [[0, 0], [0, 0], [-0.5, 0.5]])


def test_one_infinite_exponent_makes_the_value_infinite(library: Numbers) -> None:
    text = "(x::RV) -> logsumexp(i, x(i))"
    assert _meaning(infer(parse(text)), [np.array([INF, 1.0])]) == INF
    for numbers in (Numbers("numpy"), library):
        found = cd.simplified(text).compile(numbers.name)(numbers.to(np.array([INF, 1.0])))
        assert float(numbers.back(found)) == INF


STABLE = [
    # Cox's partial likelihood: data are compared, so there is no running sum
    (
        "(t::RV, X::RV) -> (b::R) -> sum(i, b * X(i) - log(sum(j, t(j) >= t(i), exp(b * X(j)))))",
        ([1.0, 2.0, 2.0, 3.0], [900.0, -900.0, 800.0, 5.0], 1.5),
        -2550.0,
        -1700.0,
    ),
    ("(x::R) -> log(gamma(x))", (200.0,), math.lgamma(200), 5.295815283228877),
    (
        "(n::R) -> (k::R) -> log(gamma(n + 1) / (gamma(k + 1) * gamma(n - k + 1)))",
        (400.0, 200.0),
        math.lgamma(401) - 2 * math.lgamma(201),
        0,
    ),
    # a likelihood as a product
    (
        "(y::RV) -> (t::R) -> log(prod(i, sigmoid(t)^y(i) * (1 - sigmoid(t))^(1 - y(i))))",
        ([0.0, 1.0] * 2000, 0.0),
        -4000 * np.log(2),
        0,
    ),
]


@pytest.mark.parametrize(("program", "arrays", "value", "gradient"), STABLE)
def test_likelihoods_neither_overflow_nor_underflow(
    program: str, arrays: tuple[float | list[float], ...], value: float, gradient: float
) -> None:
    found = cd.grad(program).compile(value=True)(*map(np.array, arrays))
    np.testing.assert_allclose(found, (value, gradient), rtol=1e-9, atol=1e-9)
