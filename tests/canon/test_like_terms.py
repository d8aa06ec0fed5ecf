"""Laws of terms of one sum that are alike in part: each with a sum that it does not change."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.terms.conditions.guards import Condition
from combdiff.terms.conditions.ordering import implies
from combdiff.terms.terms import ONE, add, fresh, total
from combdiff.terms.types import Domain, Index

SUMS = {
    # fractions
    "r^2 / (r + m)^2 + r * m / (r + m)^2": "r / (r + m)",
    "r^2 / (r + m)^2 + 2 * r * m / (r + m)^2": "(r^2 + 2 * r * m) / (r + m)^2",
    "r^2 / (r + m + x)^2 + r * m / (r + m + x)^2": "(r^2 + r * m) / (r + m + x)^2",
    "r^2 / (r + m)^2 - r * m / (r + m)^2": "(r^2 - r * m) / (r + m)^2",
    # fractions in divisors
    "1 / r / (1 + x / r)": "1 / (r + x)",
    "1 / r / (1 + x / r^2)": "1 / r / (1 + x / r^2)",
    "1 / r / (1 + x / m)": "1 / r / (1 + x / m)",
    # sums multiplied out
    "(1 + sin(x)) / 2 - (1 - sin(x)) / 2": "sin(x)",
    "m * (r + x) - r * m": "m * x",
    "(r - x) * (r + x) + m": "(r - x) * (r + x) + m",
    # signs
    "m * sign(r - x) + x * sign(x - r)": "sign(r - x) * (m - x)",
    "(1 + sign(x)) * (1 + sign(1 - x))": "2 * (sign(x) + sign(1 - x))",
    "(1 + sign(x)) * (1 + sign(m - x))": "(1 + sign(x)) * (1 + sign(m - x))",
    "(1 + sign(x)) * (1 + sign(-1 - x))": "(1 + sign(x)) * (1 - sign(1 + x))",
}


@pytest.mark.parametrize("text", SUMS)
def test_terms_of_a_sum_meet(text: str) -> None:
    assert str(cd.simplified(f"(r::R, m::R, x::R) -> {text}")) == f"(r::R, m::R, x::R) -> {SUMS[text]}"


OF_ENTRIES = {
    "(c::RV, d::RV) -> sum(i, where(c(i) < 1, d(i))) + sum(i, where(1 <= c(i), c(i)))": (
        "(c::RV, d::RV) -> sum(i, where(c(i) < 1, d(i), c(i)))"
    ),
    "(c::RV, d::RV) -> sum(i, where(c(i) < 1, d(i))) + sum(i, where(1 <= d(i), c(i)))": (
        "(c::RV, d::RV) -> sum(i, where(c(i) < 1, d(i))) + sum(i, where(1 <= d(i), c(i)))"
    ),
    "(x::RV) -> i -> x(i) * sum(softmax(x))": "(x::RV) -> i -> x(i)",
    "(x::RV, y::RV) -> i -> y(i) * sum(softmax(x))": "(x::RV, y::RV) -> i -> y(i) * sum(i1, softmax(x)(i1))",
}


@pytest.mark.parametrize("program", OF_ENTRIES)
def test_sums_of_entries_meet(program: str) -> None:
    assert str(cd.simplified(program)) == OF_ENTRIES[program]


def test_a_condition_tells_that_there_are_indices_of_which_it_holds() -> None:
    n = Index(Domain("n"))
    i, j, k, m = (fresh(name, n) for name in "ijkm")
    some = Condition(ONE, total((k, m), Condition(k, m).over(ONE)))
    assert implies(Condition(j, i), some)
    assert not implies(Condition(add(i, j), ONE), some)


def test_a_summand_that_is_left_out_and_stands_beside_the_sum_is_in_it() -> None:
    """A spin that is turned over: the sum with −s(f) in the place of s(f) is that of all but 2 s(f)."""
    d = cd.grad("(s::RV{n}, w::RV{n}) -> (b::R) -> sum(f::N{n}, sin(b + sum(i, w(i) * where(i == f, -s(i), s(i)))))")
    assert str(d).split(" -> ")[-1] == "sum(f, cos(b + sum(i, s(i) * w(i)) - 2 * s(f) * w(f)))"
    # far more of it would be left out than stands there
    kept = cd.grad("(s::RV{n}, w::RV{n}) -> (b::R) -> sum(f, sin(b + sum(i, where(i != f, w(i))) + w(f) / 8) * s(f))")
    assert "!=" in str(kept)
    assert d.check() and kept.check()
