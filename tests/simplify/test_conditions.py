"""Conditions of order are stated once, and what stands under one condition together."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import combdiff as cd
from combdiff.canon.canonical import merge_like_terms
from combdiff.language.printing.printer import expression_text
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify.conditions import stated_once
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.terms import (
    ONE,
    TWO,
    ZERO,
    App,
    Sum,
    Term,
    add,
    call,
    delta,
    fresh,
    indicator,
    mul,
    number,
    power,
    size,
    sub,
)
from combdiff.terms.types import REAL, Domain, Index, Map

K = Index(Domain("K"))
i, j = fresh("i", K), fresh("j", K)
x, y, z = fresh("x", REAL), fresh("y", REAL), fresh("z", REAL)
INVERSE = power(y, number(-1))
LENGTH = call("abs", y)
LAST = sub(size(Domain("K")), ONE)
SIZE = "sum(i₁, 1)"
AT = App(fresh("v", Map((K,), REAL)), (add(i, ONE),))


def below(e: Term) -> Term:
    return indicator(x, y, e)


def above(e: Term) -> Term:
    return compared(x, ">", y, e)


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        (mul(below(x), below(z)), "where(x <= y, x * z)"),
        (mul(z, below(x), below(y), below(ONE)), "z * where(x <= y, x * y)"),
        (below(call("exp", below(z))), "where(x <= y, exp(z))"),
        (below(add(x, mul(z, below(INVERSE)))), "where(x <= y, x + z / y)"),
        (below(mul(number(3), INVERSE)), "3 * where(x <= y, 1 / y)"),
        (sub(below(INVERSE), mul(TWO, below(call("log", z)))), "where(x <= y, 1 / y - 2 * log(z))"),
        (add(below(x), below(z)), "where(x <= y, x) + where(x <= y, z)"),
        (mul(add(below(INVERSE), below(call("log", z))), below(z)), "where(x <= y, z * (1 / y + log(z)))"),
        (mul(below(x), indicator(y, x, z)), "where(x <= y, x) * where(y <= x, z)"),
        (power(below(x), TWO), "where(x <= y, x)^2"),
        (mul(y, z, below(INVERSE)), "z * where(x <= y, 1)"),
        (mul(y, below(mul(z, INVERSE))), "z * where(x <= y, 1)"),
        (mul(x, below(mul(z, INVERSE))), "x * z * where(x <= y, 1 / y)"),
        # what is finite needs no condition, but for what has nothing beside it that does
        (below(mul(x, z)), "where(x <= y, x * z)"),
        (below(mul(x, call("exp", z), INVERSE)), "x * where(x <= y, exp(z) / y)"),
        (add(below(x), mul(x, below(call("log", z)))), "where(x <= y, x + x * log(z))"),
        (below(mul(INVERSE, below(indicator(y, x, z)))), "where(x <= y, where(y <= x, z) / y)"),
        (above(add(INVERSE, mul(z, below(INVERSE)))), "where(y < x, 1 / y)"),
        (below(add(INVERSE, mul(z, above(INVERSE)))), "where(x <= y, 1 / y)"),
        (above(add(INVERSE, mul(z, below(indicator(ONE, z, x))))), "where(y < x, 1 / y)"),
        (above(add(INVERSE, indicator(x, add(y, ONE), z))), "where(y < x, where(x <= 1 + y, z) + 1 / y)"),
        (above(add(INVERSE, indicator(add(y, number(-1)), x, z))), "where(y < x, z + 1 / y)"),
        (below(add(INVERSE, indicator(x, add(y, ONE), z))), "where(x <= y, z + 1 / y)"),
        (below(add(INVERSE, indicator(add(y, ONE), x, z))), "where(x <= y, 1 / y)"),
        (above(add(INVERSE, compared(x, "<", add(y, number(-1)), z))), "where(y < x, 1 / y)"),
        (below(compared(x, "!=", add(y, ONE), INVERSE)), "where(x <= y, 1 / y)"),
        (above(add(INVERSE, above(z))), "where(y < x, 1 / y + z)"),
        # what divides by y is not finite where y is 0, and says nothing of a y below 0
        (mul(compared(y, "!=", ZERO, call("log", z)), INVERSE), "log(z) / y"),
        (mul(compared(ZERO, "<", LENGTH, call("log", z)), power(LENGTH, number(-2))), "log(z) / y^2"),
        (mul(compared(ZERO, "<", y, call("log", z)), INVERSE), "where(0 < y, log(z)) / y"),
        (mul(compared(LENGTH, "<", ZERO, call("log", z)), INVERSE), "where(abs(y) < 0, log(z)) / y"),
        (mul(compared(ZERO, "<", LENGTH, call("log", z)), LENGTH), "abs(y) * where(0 < abs(y), log(z))"),
    ],
)
def test_a_condition_is_stated_once(t: Term, expected: str) -> None:
    found = stated_once(t)
    text = expression_text(found)
    assert sorted(text) == sorted(expected), text
    for values in ({x: 1.0, y: 2.0, z: 3.0}, {x: 2.0, y: 1.0, z: 3.0}, {x: -1.0, y: 0.5, z: 0.25}):
        assert evaluate(found, values) == pytest.approx(evaluate(t, values))


def from_(first: int, e: Term) -> Term:
    """e where first ≤ i."""
    return indicator(number(first), i, e)


def apart(e: Term) -> Term:
    """e where i is not 3."""
    return indicator(ONE, call("abs", sub(i, number(3))), e)


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        (from_(1, from_(2, INVERSE)), "where(2 <= i, 1 / y)"),
        (from_(2, from_(1, INVERSE)), "where(2 <= i, 1 / y)"),
        (from_(1, mul(INVERSE, from_(2, call("log", x)))), "where(2 <= i, log(x) / y)"),
        (mul(z, from_(2, INVERSE), from_(1, call("log", x))), "z * where(2 <= i, log(x) / y)"),
        (from_(3, apart(INVERSE)), "where(4 <= i, 1 / y)"),
        (indicator(i, TWO, apart(INVERSE)), "where(i <= 2, 1 / y)"),
        (indicator(i, number(3), apart(INVERSE)), "where(i <= 2, 1 / y)"),
        (mul(apart(INVERSE), from_(3, call("log", x))), "where(4 <= i, log(x) / y)"),
        (from_(2, apart(INVERSE)), "where(2 <= i and i != 3, 1 / y)"),
        (apart(indicator(i, j, INVERSE)), "where(i != 3 and i <= j, 1 / y)"),
    ],
)
def test_a_condition_of_indices_that_follows_from_another_is_not_written(t: Term, expected: str) -> None:
    found = stated_once(t)
    assert sorted(expression_text(found)) == sorted(expected), expression_text(found)
    for at in product(range(6), range(6)):
        values = {x: 1.5, y: 2.0, z: 3.0, i: at[0], j: at[1]}
        assert evaluate(found, values) == evaluate(t, values)


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        # what overflows does so everywhere, if it does not depend on the indices that are compared
        (from_(1, mul(call("exp", z), INVERSE)), "exp(z) * where(1 <= i, 1 / y)"),
        (from_(1, mul(call("exp", mul(z, i)), INVERSE)), "where(1 <= i, exp(z * i) / y)"),
        (from_(1, mul(power(z, number(-1)), INVERSE)), "where(1 <= i, 1 / z / y)"),
        # a condition in a condition takes its factors along
        (from_(1, mul(z, apart(mul(x, INVERSE)))), "z * x * where(1 <= i and i != 3, 1 / y)"),
        # δ tells that j is 3 there
        (delta(add(i, ONE), j, mul(z, indicator(ONE, j, x))), "delta(i + 1, j, z * x)"),
        (delta(add(i, ONE), j, mul(z, indicator(TWO, j, x))), "delta(i + 1, j, z * where(2 <= j, x))"),
        (delta(add(i, TWO), j, indicator(TWO, j, INVERSE)), "delta(i + 2, j, 1 / y)"),
        (delta(add(i, ONE), j, indicator(add(i, ONE), LAST, x)), "delta(i + 1, j, x)"),
        (
            delta(add(i, ONE), j, indicator(add(i, ONE), LAST, AT)),
            "delta(i + 1, j, where(i < sum(i₁, 1) - 1, v(i + 1)))",
        ),
    ],
)
def test_what_needs_no_condition_of_indices_stands_in_front(t: Term, expected: str) -> None:
    found = stated_once(t)
    assert sorted(expression_text(found)) == sorted(expected), expression_text(found)
    for at in product(range(6), range(6)):
        values = {x: 1.5, y: 2.0, z: 3.0, i: at[0], j: at[1], AT.function: np.arange(6.0)}
        sizes = {K.domain: 6}
        assert evaluate(found, values, sizes) == pytest.approx(evaluate(t, values, sizes))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            "(x::RV{n}, y::R) -> exp(y * sum(i, where(i < n - 1, sin(x(i + 1) - x(i)))))",
            "i -> y * s * (where(1 <= i, cos(x(i) - x(i - 1))) - where(i < n - 1, cos(x(i + 1) - x(i)))), t * s",
        ),
        (
            "(x::RV{n}, y::RV) -> sum(j, y(j)^2) * sum(i, where(i < n - 1, x(i + 1) * x(i)))",
            "(i::N{n}) -> sum(j, y(j)^2) * (where(1 <= i, x(i - 1)) + where(i < n - 1, x(i + 1))), "
            "j -> 2 * y(j) * sum(i, where(i < n - 1, x(i) * x(i + 1)))",
        ),
        (
            "(e::R, s::R) -> (x::RM) -> begin r2 = (i, j) -> sum(c, (x(i, c) - x(j, c))^2); "
            "4 * e * sum((i, j), i < j, (s^2 / r2(i, j))^6 - (s^2 / r2(i, j))^3) end",
            "24 * e * sum(j, (x(i, c) - x(j, c)) * where(i != j, s^6 / r2(i, j)^4 - 2 * s^12 / r2(i, j)^7))",
        ),
    ],
)
def test_factors_that_conditions_have_in_common_are_collected(program: str, expected: str) -> None:
    d = cd.grad(program)
    assert expected in " ".join(str(d).split())
    assert d.check()


def test_conditions_whose_indices_cancel_are_not_spelled_by_one_another() -> None:
    """[i + j ≤ i] and [j + k ≤ k] say the same of j, each in sight of an index of its own."""
    k, entry = fresh("k", K), fresh("w", Map((K,), REAL))
    kept = [indicator(add(a, j), mul(TWO, a), App(entry, (a,))) for a in (i, k)]
    t = add(*(Sum((a,), t) for a, t in zip((i, k), kept, strict=True)))
    other = add(*(Sum((a,), indicator(add(a, j), a, App(entry, (a,)))) for a in (i, k)))
    for term in (t, other):
        assert stated_once(term).free == {j, entry}
    d = cd.grad("(y::RV{n}) -> sum((i, j), where(j < j, y(i)) * y(j)) + sum((i, j), where(i + j <= i, y(i)) * y(j))")
    assert np.allclose(d.compile()(np.array([3.0, 5.0])), [11.0, 3.0])


@pytest.mark.parametrize("condition", ["j < j", "n <= j", "j < 0", "j + 1 <= i and i + 1 <= i"])
def test_what_no_index_satisfies_is_nothing(condition: str) -> None:
    assert cd.simplified(f"(y::RV{{n}}) -> sum((i::N{{n}}, j), where({condition}, y(j)))").term.body == ZERO


def test_a_term_without_guards_stays_itself() -> None:
    t = add(x, mul(y, z))
    assert stated_once(t) is t


@pytest.mark.slow
def test_what_is_under_one_guard_stands_together_in_a_result() -> None:
    d = cd.grad(
        "(e::R, s::R) -> (x::RM) -> begin; r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2))\n"
        "sum((i, j), where(i < j, 4 * e * ((s / r(i, j))^12 - (s / r(i, j))^6))); end"
    )
    assert "where(i != j, (s^6 / r(i, j)^7 - 2 * s^12 / r(i, j)^13) / r(i, j))" in str(d)


def test_like_terms_are_alike_however_their_guards_were_written() -> None:
    d = cd.grad(
        "(y::RM) -> (x::RV) -> begin; v = (i, j) -> log(x(i) - x(j))\n"
        "sum((i, j), y(i, j) * where(i < j, v(i, j) + log(x(i) - x(j)))); end"
    )
    assert str(d).endswith(
        "i ->\n"
        "    2 * sum(j, y(i, j) * where(i < j, 1 / (x(i) - x(j)))) -\n"
        "    2 * sum(j, y(j, i) * where(j < i, 1 / (x(j) - x(i))))"
    )


def test_springs_have_one_guard() -> None:
    d = cd.grad(
        "(k::R) -> (x::RM) -> begin; r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2))\n"
        "sum((i, j), where(i < j, k * (r(i, j) - 1)^2)); end"
    )
    assert "2 * k * sum(j, (x(i, c) - x(j, c)) * where(i != j, (r(i, j) - 1) / r(i, j)))" in str(d)


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        (add(compared(i, "<", j, INVERSE), compared(j, "<", i, INVERSE)), "where(i != j, 1 / y)"),
        (add(x, mul(z, compared(j, "<", i, x)), mul(z, compared(i, "<", j, x))), "x + z * where(j != i, x)"),
        (
            add(mul(z, compared(j, "<", i, x)), mul(y, compared(i, "<", j, x))),
            "z * where(j < i, x) + y * where(i < j, x)",
        ),
        (add(compared(i, "<", j, x), compared(j, "<", i, z)), "where(i < j, x) + where(j < i, z)"),
        (add(compared(i, "<=", j, x), compared(j, "<", i, x)), "x"),
        (add(compared(i, "<", j, x), mul(TWO, compared(j, "<", i, x))), "where(i < j, x) + 2 * where(j < i, x)"),
        (add(compared(x, "<", y, z), compared(y, "<", x, z)), "where(x < y, z) + where(y < x, z)"),
    ],
)
def test_one_order_and_the_other_are_unequal(t: Term, expected: str) -> None:
    assert expression_text(merge_like_terms(t)).split() == expected.split()


def test_forces_of_pairs_have_one_condition() -> None:
    d = cd.grad("(x::RV) -> sum((i, j), i < j, (x(i) - x(j))^2)")
    assert str(d) == "(x::RV) -> i -> 2 * sum(j, x(i) - x(j))"
    assert d.check()


@pytest.mark.slow
def test_what_divides_by_a_norm_does_not_ask_whether_it_is_zero() -> None:
    d = cd.hvp("(x::RV) -> 1 / norm(x)")
    assert str(d).endswith("i -> (3 * x(i) * sum(i1, x(i1) * k(i1)) / norm(x)^2 - k(i)) / norm(x)^3")
    assert d.check()
    rows = cd.grad("(Y::RM) -> (X::RM) -> sum((i, j), sum(k, Y(i, k) * X(j, k)) / norm(k -> X(j, k)))")
    assert "where" not in str(rows)
    assert rows.check()


def test_the_slope_of_a_loss_of_sums_needs_no_condition() -> None:
    """The conditional value at risk: the slope 1 - sign(u) is 0 where the condition does not hold."""
    d = cd.grad("""(R::RM{S, n}, a::R) -> (w::RV{n}, t::R) ->
        t + 1 / ((1 - a) * S) * sum(s, max(0, -sum(i, R(s, i) * w(i)) - t))""")
    assert " ".join(str(d).split()).endswith(
        "( i -> -1/2 * sum(s, R(s, i) * (1 - sign(sum(i1, R(s, i1) * w(i1)) + t))) / S / (1 - a), "
        "1 - 1/2 * sum(s, 1 - sign(sum(i, R(s, i) * w(i)) + t)) / S / (1 - a) )"
    )
    assert d.check()
    rooted = cd.grad("(R::RM, y::RV) -> (w::RV) -> sum(s, sqrt(max(0, y(s) - sum(i, R(s, i) * w(i)))))")
    assert "where(0 <=" in str(rooted)


def test_a_length_beside_a_number_is_never_zero() -> None:
    """The pseudo-Huber loss."""
    d = cd.grad("(x::RV) -> sum(i, hypot(x(i), 0.1))")
    assert str(d) == "(x::RV) -> i -> x(i) / hypot(x(i), 1/10)"
    assert d.check()
