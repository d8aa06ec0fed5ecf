"""Square roots of numbers: as many of them as meet in a product are one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import combdiff as cd


def _value(program: str) -> float:
    return float(cd.simplified(f"(x::R) -> {program} * x").compile()(1.0))


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("sqrt(2) * sqrt(pi)", "sqrt(2 * pi)"),
        ("1 / sqrt(2) / sqrt(pi)", "1 / sqrt(2 * pi)"),
        ("sqrt(2) / sqrt(2 * pi)", "1 / sqrt(pi)"),
        ("sqrt(2) / sqrt(pi)", "sqrt(2 / pi)"),
        ("sqrt(6) * sqrt(3)", "3 * sqrt(2)"),
        ("sqrt(5) / sqrt(3)", "sqrt(5/3)"),
        ("sqrt(2 * pi) / sqrt(pi)^3", "sqrt(2) / pi"),
        ("1 / sqrt(2) / sqrt(pi) - 1 / sqrt(2 * pi) + 3", "3"),
        ("sqrt(2)", "sqrt(2)"),
    ],
)
def test_roots_of_numbers_are_one_root(program: str, shown: str) -> None:
    assert str(cd.grad(f"(x::R) -> ({program}) * x")) == f"(x::R) -> {shown}"


def test_the_number_stays_the_same() -> None:
    roots = ("sqrt(2)", "sqrt(pi)", "sqrt(12 * pi)", "sqrt(3 / pi)", "sqrt(5 / 7)", "sqrt(pi^2 / 2)")
    for first, second, third in itertools.combinations(roots, 3):
        for program in (f"{first} * {second} / {third}", f"1 / {first} / {second} * {third}^3"):
            exact = eval(program.replace("^", "**"), {"sqrt": math.sqrt, "pi": math.pi})
            assert np.isclose(_value(program), exact, rtol=1e-14), program


def test_the_improvement_over_the_best_value_has_the_slope_that_books_print() -> None:
    d = cd.grad("(f::R) -> (m::RV) -> sum(i, (m(i) - f) * normcdf(m(i) - f) + normpdf(m(i) - f))")
    assert str(d) == "(f::R) -> (m::RV) -> i -> 1/2 * erfc(-(m(i) - f) / sqrt(2))"
