"""Checks that must be able to fail, and values beside derivatives: nan, kept definitions, tuples, inner derivatives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd
from combdiff.derivation import Derivation
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.terms.terms import ONE, Lam, Term, add, apply, call, mul, neg, number, power

KEPT = {
    "a complex value": "(x::CV) -> begin f = (y::C) -> exp(y)*y'; sum(i, abs2(f(x(i)))) end",
    "a real value": "(x::RV) -> begin f = (y::R) -> exp(y)*y; sum(i, f(x(i))^2) end",
    "a map of a tensor": "(A::CM, x::CV) -> begin f = (y::CV) -> sum((i, j), y(i)'*A(i, j)*y(j)); f(x)^2 end",
    "a map that uses a value": "(a::RV, x::RV) -> begin n = sum(i, a(i)^2); f = (y::R) -> n*y^3; sum(i, f(x(i))) end",
}


def doubled(d: Derivation) -> Derivation:
    """The derivation with twice its result, which is wrong wherever it is not zero."""

    def twice(t: Term) -> Term:
        return Lam(t.params, twice(t.body)) if isinstance(t, Lam) else mul(number(2), t)

    return dataclasses.replace(d, term=twice(d.term))


@pytest.mark.slow
@pytest.mark.parametrize("mode", [cd.grad, cd.pullback, cd.hvp])
@pytest.mark.parametrize("name", KEPT)
def test_a_definition_that_is_kept_unknown_is_checked(name: str, mode: Callable[..., Derivation]) -> None:
    if name == "a map of a tensor" and mode is cd.hvp:
        pytest.skip("differences of differences of every entry take half a minute")
    report = mode(KEPT[name], keep="f", wrt="x").check()
    assert report
    assert report.findings[0].difference > 0


def test_a_definition_that_calls_another_kept_one_is_checked() -> None:
    text = "(x::RV) -> begin f = (y::R) -> exp(y); g = (y::R, z::R) -> f(y)*z; sum(i, g(x(i), x(i)^2)) end"
    assert cd.grad(text, keep=("f", "g")).check()


@pytest.mark.sampled
@pytest.mark.parametrize("text", ["(x::RV) -> sum(i, log(x(i)))", "(x::RV) -> sum(i, x(i)^(1/2))"])
@pytest.mark.parametrize("seed", range(4))
def test_functions_of_positive_numbers_are_checked_on_positive_numbers(text: str, seed: int) -> None:
    d = cd.grad(text)
    assert d.check(seed)
    assert not doubled(d).check(seed)


def test_nothing_is_said_to_agree_where_no_value_is_finite() -> None:
    with pytest.raises(UnsupportedError, match="no finite value"):
        cd.grad("(x::RV) -> sqrt(-1 - sum(i, x(i)^2))").check()


def test_a_derivative_that_is_not_a_number_does_not_agree() -> None:
    d = cd.grad("(x::RV) -> sum(i, x(i)^2)")
    assert isinstance(d.term, Lam)
    (x,) = d.term.params
    assert isinstance(d.term.body, Lam)
    root_of_negative = call("sqrt", neg(add(ONE, power(apply(x, *d.term.body.params), number(2)))))
    lost = Lam((x,), Lam(d.term.body.params, mul(root_of_negative, d.term.body.body)))
    assert not dataclasses.replace(d, term=lost).check()


@pytest.mark.slow
def test_a_report_says_why_code_was_not_compared() -> None:
    text = "(f::RO) -> (A::RM) -> (x::RV) -> sum(i, f(x(i), sum(j, A(i, j)*x(j))))"
    report = cd.grad(text).check()
    assert report
    said = [*(finding.what for finding in report.findings), *report.notes]
    assert sum(text.startswith("emitted NumPy code") for text in said) == 1


def test_the_values_of_a_tuple_stand_before_the_pullback() -> None:
    d = cd.pullback("(x::CV) -> (sum(i, x(i)*x(i)'), (j::N) -> x(j)^2)")
    x, k = np.array([1 + 2j, 3j]), np.array([1j, 2.0])
    squared, squares, cotangent = d.compile(value=True)(x, 2.0, k)
    assert np.allclose(squared, np.vdot(x, x))
    assert np.allclose(squares, x**2)
    assert np.allclose(cotangent, 2 * 2.0 * x + 2 * x.conj() * k)


def test_the_value_of_an_objective_that_holds_a_derivative_is_computed() -> None:
    value, gradient = cd.grad("grad((y::R) -> grad((z::R) -> z^3*y)(y))").compile(value=True)(2.0)
    assert np.isclose(value, 3 * 2.0**3)
    assert np.isclose(gradient, 9 * 2.0**2)


def test_options_that_mean_nothing_are_refused() -> None:
    d = cd.grad("(x::RV) -> sum(i, x(i)^2)")
    with pytest.raises(UnsupportedError, match="check is 'some'"):
        d.compile(check="some")  # type: ignore[arg-type]  # what a user may type
    with pytest.raises(UnsupportedError, match="seed"):
        d.check("1")  # type: ignore[arg-type]  # what a user may type


def test_an_index_is_no_argument_that_has_a_shape() -> None:
    with pytest.raises(ArrayError, match=r"the arguments are A, x$"):
        cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").plan(B=(3, 3))
