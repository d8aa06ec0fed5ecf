"""Arguments of nonlinear functions are named before the reverse pass, and only those."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd
from combdiff.calculus.definitions.floating import float_lets
from combdiff.calculus.definitions.naming import name_arguments
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.terms.terms import Lam, Let, Term


def named(text: str) -> tuple[list[str], Term, Lam]:
    """The names given in the body of the program's innermost map, and the body with its bindings."""
    f = infer(parse(text))
    while isinstance(f, Lam) and isinstance(f.body, Lam):
        f = f.body
    assert isinstance(f, Lam)
    bindings, core = name_arguments(f.params, *float_lets(f.body))
    return [var.name for var, _ in bindings], Let(tuple(bindings), core) if bindings else core, f


def test_the_argument_of_an_unknown_function_is_named_once() -> None:
    names, _, _ = named("(g::RF, W::RM) -> (x::RV) -> sum(i, g(sum(j, W(i, j) * x(j))) * g(sum(k, W(i, k) * x(k))))")
    assert names == ["u1"]


def test_a_cheap_argument_is_not_named() -> None:
    assert named("(x::RV) -> sum(i, exp(2 * x(i)))")[0] == []


def test_what_the_unknown_does_not_reach_is_not_named() -> None:
    assert named("(A::RM, c::RV) -> (x::RV) -> sum(i, x(i) * exp(sum(j, A(i, j) * c(j))))")[0] == []


def test_linear_functions_need_no_name() -> None:
    assert named("(A::CM) -> (x::CV) -> real(sum((i, j), x(i)' * A(i, j) * x(j)))")[0] == []


def test_names_of_the_program_are_not_taken() -> None:
    names, _, _ = named("(u1::RM) -> (x::RV) -> exp(sum((i, j), u1(i, j) * x(i) * x(j)))")
    assert names == ["u2"]


def test_inner_arguments_are_named_before_outer_ones() -> None:
    names, body, _ = named("(x::RV) -> exp(sin(sum(i, x(i)^2)) * sum(i, x(i)))")
    assert names == ["u1", "u2"]
    assert isinstance(body, Let)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(W::RM) -> (x::RV) -> sum(i, tanh(sum(j, W(i, j) * x(j))))",
        "(x::CV) -> sum(i, x(i)' * x(i)) / abs2(sum(i, x(i)^2))",
        "(A::RM) -> (x::RV) -> log(sum(i, exp(sum(j, A(i, j) * x(j)))))",
        "(T::(N, N) -> R) -> (X::RM, Y::RM) -> sum((i, j), (T(i, j) - sum(n, X(i, n) * Y(j, n)))^4)",
    ],
)
def test_named_arguments_leave_the_derivative_right(text: str) -> None:
    for derive in (cd.grad, cd.hvp):
        assert derive(text).check()


def test_softmax_computes_its_normalisation_once() -> None:
    d = cd.grad("(A::RM) -> (x::RV) -> log(sum(i, exp(sum(j, A(i, j) * x(j)))))")
    assert str(d).count("softmax(") == 1 and str(d).count("sum(") == 2


@pytest.mark.parametrize(
    "text",
    [
        "(s::R) -> (a::R, k1::R) -> k1 * a^2 + s",
        "(s::R, x::RV, v::RV) -> (z::RV) -> sum(k, z(k) * k)",
        "(k::R, v::R, u::R, h::R, c::R, cotangent::R) -> (z::RV) -> sum(i, z(i)^2)",
    ],
)
def test_a_cotangent_has_a_name_that_no_argument_has(text: str) -> None:
    directions = [a.name for a in cd.hvp(text).compile().arguments]
    assert len(set(directions)) == len(directions)
    assert cd.grad(text).compile(value=True, hvp=True).source


GAUSSIAN_PROCESS = """(X::RM{n, d}, y::RV{n}) -> (l::RV{d}, s::R) -> begin
  K = (i::N{n}, j::N{n}) -> exp(-sum(c, (X(i, c) - X(j, c))^2 / l(c)^2)) + delta(i, j, s^2)
  y' * inv(K) * y + logdet(K)
end"""


def test_a_matrix_that_functions_take_has_a_name_where_its_entries_are_functions() -> None:
    assert named("(D::RM{n, n}) -> (a::R) -> logdet((i, j) -> exp(-a * D(i, j)))")[0] == ["u1"]
    assert named("(D::RM{n, n}) -> (a::R) -> logdet((i, j) -> a * D(i, j))")[0] == []


@pytest.mark.parametrize("mode", [cd.grad, cd.hvp])
def test_a_matrix_that_is_written_twice_is_derived_as_one_with_a_name(mode: Callable[[str], cd.Derivation]) -> None:
    """Its cotangent is collected once; written out, the Hessian product had four times as many characters."""
    head, entry, body = re.split(r"  K = |\n  (?=y)", GAUSSIAN_PROCESS.replace("begin\n", "").removesuffix("\nend"))
    twice = head + body.replace("K", f"({entry})")
    ours, own = mode(GAUSSIAN_PROCESS), mode(twice)
    assert len(str(own)) < 1.1 * len(str(ours))
    rng = np.random.default_rng(1)
    X, y, v = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=3)
    at = X, y, np.array([0.7, 1.3]), 0.5, *([v[:2], v[2]] if mode is cd.hvp else [])
    for a, b in zip(ours.compile()(*at), own.compile()(*at), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_a_function_that_is_applied_to_one_index_twice_defines_its_values_once() -> None:
    d = cd.grad("""(a::(N{m}) -> N{n}) -> (q::RM{n, 2}) -> begin
      turned = (i::N{n}) -> begin
        w = q(i, 0) * q(i, 1)
        (w, 2 * w^2)
      end
      sum(e, begin
        (u, v) = turned(a(e))
        u^2 * v + u * v^2
      end)
    end""")
    assert str(d).count("q(a(e), 0) * q(a(e), 1)") == 1
    assert d.check()


RASCH = """(Y::RM{n, m}) -> (t::RV{n}, b::RV{m}) -> begin
  P = (i, j) -> 1 / (1 + exp(-(t(i) - b(j))))
  -sum((i, j), Y(i, j) * log(P(i, j)) + (1 - Y(i, j)) * log(1 - P(i, j)))
end"""
GUESSING = """(Y::RM{n, m}) -> (t::RV{n}, b::RV{m}, c::RV{m}) -> begin
  g = j -> 1 / (1 + exp(-c(j)))
  P = (i, j) -> g(j) + (1 - g(j)) / (1 + exp(-1.7 * (t(i) - b(j))))
  -sum((i, j), Y(i, j) * log(P(i, j)) + (1 - Y(i, j)) * log(1 - P(i, j)))
end"""


def test_a_definition_that_a_law_opens_gives_its_name_to_an_equal_value() -> None:
    d = cd.grad(RASCH)
    assert "  P = (i, j) -> sigmoid(t(i) - b(j))\n" in str(d)
    assert d.check()


def test_no_value_has_the_name_of_a_definition_that_it_does_not_equal() -> None:
    d = cd.grad(GUESSING)
    assert not re.search(r"^  [gP] = ", str(d), re.MULTILINE)
    assert d.check()
