"""Sums that cancel with their inverses inside of one larger sum."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import expression_text
from combdiff.simplify.contraction.cancelling import without_inverses


def cancelled(text: str) -> str:
    return body(expression_text(without_inverses(infer(parse(text)))))


def body(text: str) -> str:
    """What is below the parameters, in one line."""
    return " ".join(text.split()).split(" -> ", 1)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum((i, j), x(i) * y(j) / sum(i, x(i)))", "sum(j, y(j))"),
        ("sum((i, j), x(i) * y(j) / sum(k, x(k))^2)", "sum(j, y(j) / sum(k, x(k)))"),
        ("sum((i, j), x(i) * y(j) / sum(k, x(k)) / sum(k, y(k)))", "1"),
        ("sum((i, j, k), A(i, j) * x(i) * x(j) * y(k) / sum((i, j), A(j, i) * x(j) * x(i)))", "sum(k, y(k))"),
    ],
)
def test_a_sum_cancels_with_its_inverse(text: str, expected: str) -> None:
    assert cancelled(f"(A::RM, x::RV, y::RV) -> {text}") == expected


@pytest.mark.parametrize(
    "text",
    [
        "sum((i, j), x(i) * y(j) / sum(k, x(k)^2))",
        "sum((i, j), x(i) * A(i, j) / sum(k, x(k)))",
        "sum((i, j), x(i) * y(j) * sum(k, x(k)))",
        "sum((i, j, k), A(i, j) * x(i) * y(j) * y(k) / sum((i, j), A(j, i) * x(i) * y(j)))",
        "sum((i, j), x(i) * y(j) / sum(k, A(i, k)))",
    ],
)
def test_other_sums_stay(text: str) -> None:
    program = f"(A::RM, x::RV, y::RV) -> {text}"
    assert cancelled(program) == body(expression_text(infer(parse(program))))


def test_a_declared_symmetry_is_not_used() -> None:
    """It may be that of what is varied, for whose derivative the two sums are different."""
    text = "sum((i, j, k), A(i, j) * x(i) * y(j) * y(k) / sum((i, j), A(j, i) * x(i) * y(j)))"
    assert "A(" in cancelled(f"(A::Sym, x::RV, y::RV) -> {text}")


@pytest.mark.slow
def test_the_gradient_of_a_ratio_where_they_meet() -> None:
    d = cd.grad(
        "(A::Sym, y::RV) -> (x::RV) -> sum((i, j), A(i, j) * x(i) * y(j))^2 / sum((i, j), A(i, j) * x(i) * x(j))"
    )
    assert d.check()
    rng = np.random.default_rng(0)
    a, x, y = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    a = a + a.T
    u, v = x @ a @ y, x @ a @ x
    np.testing.assert_allclose(d.compile()(a, y, x), 2 * u / v * a @ y - 2 * u**2 / v**2 * a @ x)


def test_maxima_and_norms_come_over_one_denominator_under_conditions_too() -> None:
    for f, slope in (("maximum(x)", "ties(x)(i)"), ("logsumexp(x)", "softmax(x)(i)")):
        found = str(cd.grad(f"(x::RV) -> {f} / (1 + {f})"))
        assert found == f"(x::RV) -> i -> {slope} / (1 + {f})^2"
    text = "(L::R) -> (x::RM) -> sum((i, j), i != j, abs(x(i, j)) / (1 + L * abs(x(i, j))))"
    assert str(cd.grad(text)).endswith("(i, j) -> sign(x(i, j)) * where(i != j, 1 / (1 + L * abs(x(i, j)))^2)")


def test_a_distance_is_that_in_the_other_direction() -> None:
    """The correlation of two electrons: r(i, j) and r(j, i) are norms of opposite vectors."""
    distance = "norm(c -> x(i, c) - x(j, c))"
    d = cd.grad(f"(L::R) -> (x::RM) -> sum((i, j), i < j, {distance} / (1 + L * {distance}))")
    far = "norm(c1 -> x(i, c1) - x(j, c1))"
    assert f"where(i != j and 0 < {far}, 1 / {far} / (1 + L * {far})^2)" in " ".join(str(d).split())
    assert str(d).count("sum(") == 1
    assert d.check()


def test_powers_of_a_norm_have_slopes_without_a_condition() -> None:
    assert str(cd.grad("(x::RV) -> norm(x)^3")) == "(x::RV) -> i -> 3 * x(i) * norm(x)"
    assert str(cd.grad("(x::RV) -> norm(x)^5")).endswith("i -> 5 * x(i) * norm(x)^3")
    d = cd.grad("(x::RV) -> norm(x) / (1 + norm(x))")
    assert str(d).endswith("i -> x(i) * where(0 < norm(x), 1 / norm(x)) / (1 + norm(x))^2")
    hessian = cd.hvp("(x::RV) -> norm(x)^3").compile()
    assert (hessian(np.zeros(3), np.ones(3)) == 0).all()
    assert d.check()


DISTANCES = "(q::RV, k::R) -> (x::RM{n, 3}) -> begin\n  r = (i, j) -> norm(c -> x(i, c) - x(j, c))\n"


@pytest.mark.parametrize(
    "energy, slope",
    [
        ("sum((i, j), i < j, 1 / r(i, j)^12)", "-12 * sum(j, (x(i, c) - x(j, c)) * where(i != j, 1 / r(i, j)^14))"),
        (
            "sum((i, j), i < j, 1 / r(i, j)^12 - 1 / r(i, j)^6)",
            "sum(j, (x(i, c) - x(j, c)) * where(i != j, 6 / r(i, j)^8 - 12 / r(i, j)^14))",
        ),
        (
            "sum((i, j), i < j, (k / r(i, j))^12 - (k / r(i, j))^6)",
            "sum(j, (x(i, c) - x(j, c)) * where(i != j, 6 * k^6 / r(i, j)^8 - 12 * k^12 / r(i, j)^14))",
        ),
        (
            "sum((i, j), i != j, q(i) * q(j) / r(i, j)) / 2",
            "-q(i) * sum(j, (x(i, c) - x(j, c)) * where(i != j, q(j) / r(i, j)^3))",
        ),
        (
            "sum((i, j), 0 < r(i, j), 1 / r(i, j)^2)",
            "-4 * sum(j, (x(i, c) - x(j, c)) * where(0 < r(i, j), 1 / r(i, j)^4))",
        ),
    ],
)
def test_what_divides_by_a_defined_distance_does_not_ask_whether_it_is_zero(energy: str, slope: str) -> None:
    d = cd.grad(f"{DISTANCES}  {energy}\nend")
    assert " ".join(str(d).split()).endswith(f"(i, c) -> {slope} end")
    assert d.check()


def test_powers_of_a_defined_norm_have_slopes_without_a_condition() -> None:
    d = cd.grad("(x::RV) -> begin; r = norm(x); r^3 + 1 / r; end")
    assert str(d).endswith("i -> x(i) * (3 * r - 1 / r^3)\nend")
    rows = cd.grad("(x::RM) -> begin; r = i -> norm(c -> x(i, c)); sum(i, r(i)^3); end")
    assert str(rows).endswith("(i, c) -> 3 * r(i) * x(i, c)\nend")
    assert (rows.compile()(np.zeros((2, 3))) == 0).all()


def test_a_defined_norm_keeps_its_condition_where_nothing_else_is_infinite() -> None:
    springs, far = "sum((i, j), i < j, (r(i, j) - k)^2)", "sum((i, j), i < j, where(k < r(i, j), 1 / r(i, j)))"
    d = cd.grad(f"{DISTANCES}  {springs} + {far}\nend")
    assert "where(0 < r(i, j), 1 / r(i, j))" in str(d)
    x = np.array([[0.0, 0, 0], [0, 0, 0], [1, 2, 2]])
    gradient = d.compile()(np.ones(3), 1.5, x)
    assert np.isfinite(gradient).all()
    assert np.allclose(gradient[2], 2 * 2 * 1.5 * x[2] / 3 - 2 * x[2] / 27)
    assert d.check()
