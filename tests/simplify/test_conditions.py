"""Conditions of order are stated once, and what stands under one condition together."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.language.printing.printer import expression_text
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify.conditions import stated_once
from combdiff.terms.terms import ONE, TWO, Term, add, call, fresh, indicator, mul, number, power, sub
from combdiff.terms.types import REAL

x, y, z = fresh("x", REAL), fresh("y", REAL), fresh("z", REAL)
INVERSE = power(y, number(-1))


def below(e: Term) -> Term:
    return indicator(x, y, e)


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        (mul(below(x), below(z)), "indicator(x, y, x * z)"),
        (mul(z, below(x), below(y), below(ONE)), "z * indicator(x, y, x * y)"),
        (below(call("exp", below(z))), "indicator(x, y, exp(z))"),
        (below(add(x, mul(z, below(INVERSE)))), "indicator(x, y, x + z / y)"),
        (below(mul(number(3), INVERSE)), "3 * indicator(x, y, 1 / y)"),
        (sub(below(INVERSE), mul(TWO, below(call("log", z)))), "indicator(x, y, 1 / y - 2 * log(z))"),
        (add(below(x), below(z)), "indicator(x, y, x) + indicator(x, y, z)"),
        (mul(add(below(INVERSE), below(call("log", z))), below(z)), "indicator(x, y, z * (1 / y + log(z)))"),
        (mul(below(x), indicator(y, x, z)), "indicator(x, y, x) * indicator(y, x, z)"),
        (power(below(x), TWO), "indicator(x, y, x)^2"),
    ],
)
def test_a_condition_is_stated_once(t: Term, expected: str) -> None:
    found = stated_once(t)
    text = expression_text(found)
    assert sorted(text) == sorted(expected), text
    for values in ({x: 1.0, y: 2.0, z: 3.0}, {x: 2.0, y: 1.0, z: 3.0}, {x: -1.0, y: 0.5, z: 0.25}):
        assert evaluate(found, values) == pytest.approx(evaluate(t, values))


def test_a_term_without_guards_stays_itself() -> None:
    t = add(x, mul(y, z))
    assert stated_once(t) is t


def test_what_is_under_one_guard_stands_together_in_a_result() -> None:
    d = cd.grad(
        "(e::R, s::R) -> (x::RM) -> begin; r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2))\n"
        "sum((i, j), indicator(i + 1, j, 4 * e * ((s / r(i, j))^12 - (s / r(i, j))^6))); end"
    )
    assert "12 * e * s * indicator(i + 1, j, 1 / r(i, j) * (s^5 / r(i, j)^7 - 2 * s^11 / r(i, j)^13))" in str(d)


def test_like_terms_are_alike_however_their_guards_were_written() -> None:
    d = cd.grad(
        "(y::RM) -> (x::RV) -> begin; v = (i, j) -> log(x(i) - x(j))\n"
        "sum((i, j), y(i, j) * indicator(i + 1, j, v(i, j) + log(x(i) - x(j)))); end"
    )
    assert str(d).endswith(
        "i ->\n"
        "    2 * sum(j, y(i, j) * indicator(i + 1, j, 1 / (x(i) - x(j)))) -\n"
        "    2 * sum(j, y(j, i) * indicator(j + 1, i, 1 / (x(j) - x(i))))"
    )


def test_springs_have_one_guard() -> None:
    d = cd.grad(
        "(k::R) -> (x::RM) -> begin; r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2))\n"
        "sum((i, j), indicator(i + 1, j, k * (r(i, j) - 1)^2)); end"
    )
    assert "u1_bar = (i, j) -> k * indicator(i + 1, j, 1 / r(i, j) * (r(i, j) - 1))" in str(d)
