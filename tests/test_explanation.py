"""A derivation told from the start, with derivatives inside of what is differentiated."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.explanation import combinator_form, explanation

NESTED = {
    "inside a product": "(x::R) -> x * grad((y::R) -> x * y)(2)",
    "at a variable": "(x::R) -> x * grad((y::R) -> x * y^3)(x)",
    "two deep": "(x::R) -> grad((y::R) -> grad((z::R) -> z^2 * y^2 * x^2)(y))(x)",
    "a pullback": "(b::RV, A::RM) -> sum(i, pullback((v::RV) -> i -> sum(j, A(i, j) * v(j)^2))(b, b)(i)^2)",
    "in an equation": """(b::RV) -> begin
        x = root((v::RV) -> grad((u::RV) -> sum(i, u(i)^4 + u(i)^2 + u(i) * b(i)))(v))
        sum(i, x(i)^2)
    end""",
    "outermost": "(a::R) -> grad(grad((x::R) -> a * x^3))",
    "outermost, thrice": "(a::R) -> grad(grad(grad((x::R) -> a * x^4)))",
}
OF_TENSORS = {
    "of a gradient": "(a::R) -> pullback(grad((x::RV) -> a * sum(i, x(i)^3)))",
    "of a pullback": "(a::R) -> pullback(pullback((x::RV) -> a * sum(i, x(i)^3)))",
    "of a definition": "(a::R) -> begin f = (x::RV) -> sum(i, a * x(i)^3); pullback(grad(f)) end",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("mode", [cd.grad, cd.pullback, cd.hvp])
def test_a_nested_derivative_is_explained_and_checked(program, mode):
    d = mode(program)
    told = explanation(d)
    assert told.startswith("the program, as read") and told.endswith(f"the result\n{d}")
    assert "grad(" not in combinator_form(d) and "↦ result = " in combinator_form(d)
    assert d.check()


@pytest.mark.sampled
@pytest.mark.parametrize("program", OF_TENSORS.values(), ids=OF_TENSORS)
def test_the_pullback_of_a_derivative_is_explained_and_checked(program):
    d = cd.pullback(program)
    assert explanation(d).endswith(f"the result\n{d}")
    assert d.check()


def test_the_combinators_are_those_of_the_inner_derivative_once_taken():
    d = cd.grad("(x::R) -> x * grad((y::R) -> x * y^2)(x)")
    assert combinator_form(d) == "x ↦ result = B (mul 2) (B (pow 3) I)"


@pytest.mark.slow
def test_the_value_beside_a_second_derivative_is_the_first():
    f = cd.grad("(a::R) -> grad(grad((x::R) -> a * x^3))").compile(value=True)
    assert f(2.0, 3.0) == pytest.approx((54.0, 36.0))
    f = cd.pullback("(a::R) -> pullback(grad((x::RV) -> a * sum(i, x(i)^3)))").compile(value=True)
    value, pulled = f(2.0, np.array([1.0, 2.0]), np.array([3.0, 1.0]))
    np.testing.assert_allclose(value, [6.0, 24.0])
    np.testing.assert_allclose(pulled, [36.0, 24.0])


def test_each_term_is_told_as_it_is_differentiated() -> None:
    """A δ under a function of what another δ meets is settled after that one, term by term."""
    text = "(f::RF) -> (w::R) -> sum(e::R, delta(e, sign(w), f(sum(r::R, delta(e, r, r))))) + w"
    assert "w ↦ result = B plus (Fork (B f (B sign I)) I)" in explanation(cd.grad(text))


@pytest.mark.parametrize("mode", [cd.jvp, cd.jacobian, cd.simplified])
def test_a_map_that_no_gradient_is_taken_of_is_told_without_one(mode) -> None:
    text = "(A::RM) -> (x::RV) -> i -> sum(j, A(i, j) * x(j)^2)"
    assert explanation(mode(text)).splitlines()[1] == text
    assert explanation(cd.pullback(text)).splitlines()[1] == f"(A::RM) -> pullback({text.partition(' -> ')[2]})"


@pytest.mark.slow
def test_second_derivatives_are_told_of_the_map_that_was_written() -> None:
    text = "(x::RV) -> sum(i, x(i)^3)"
    assert explanation(cd.hessian(text)).splitlines()[1] == text
    assert explanation(cd.hvp(text)).splitlines()[1] == text
    assert explanation(cd.grad(text)).splitlines()[1] == f"grad({text})"


def test_a_projection_on_a_symmetry_is_told() -> None:
    text = "(A::RM) -> (x::Sym) -> sum((i, j), A(i, j) * x(i, j))"
    assert "projected on the declared symmetry" in explanation(cd.grad(text, symmetric=True))
    assert "projected" not in explanation(cd.grad(text))


def test_a_loop_that_is_called_otherwise_is_no_value_that_is_told() -> None:
    """Two loops are called `class`, of which the second loses its number once the first is simpler."""
    text = """(x::RV{K}) -> (y::RM{K, K}, v::RV{K}) -> begin
  class = j -> iterate((w, t) -> grad((u::R) -> u)(w), v(j), K - 1)
  sum(l::N{K}, class(0)^2)
end + sum((j, k), scan((class, j) -> i -> tanh(class(i) + y(i, j)), i -> 0, K - 1)(j, k) * x(j))"""
    assert "class = scan(" in explanation(cd.grad(text))


def test_values_that_go_when_names_are_put_in_order_do_not_lend_others_their_names() -> None:
    """A loop over nothing but a number goes with the last stage: a number stands then where a vector stood."""
    text = """(A::CM{m, n}, k::Int) -> (B::Sym{n}, a::C) -> begin
  r = i -> iterate((b, j) -> B(0, i), 1, n - 1)
  r(0)^2
end + sum(i, scan((b, j) -> atan(sum((p, l), iterate((M, t) -> (q::N{m}, l) -> sum(r, scan(
    (c, s) -> c / (1 + abs2(c)), M(j, l), n)(r)), (q::N{m}, l::N{m}) -> j, k)(p, l) * 5)) + im * (j - 1),
    a, m - 1)(i))"""
    d = cd.pullback(text)
    assert str(d.result) in explanation(d) and str(d.steps)
