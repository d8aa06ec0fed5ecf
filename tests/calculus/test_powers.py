"""Derivatives of powers and quotients, held against mpmath from 1e-120 to 1e120: finite where the answer is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd

mp = pytest.importorskip("mpmath")
mp.mp.dps = 60
EXPONENTS = (-125, *range(-120, 121, 8), -65, 65, 125)
Function = Callable[[Any], Any]


def q(numerator: int, denominator: int) -> Any:
    return mp.mpf(numerator) / denominator


PROGRAMS: dict[str, Function] = {
    "2.5 / x^(8/3)": lambda x: 2.5 / x ** q(8, 3),
    "begin r = x^(8/3); 2.5 / r end": lambda x: 2.5 / x ** q(8, 3),
    "begin r = 2 * x^(8/3); 3 / r + x / r^2 end": lambda x: 3 / (2 * x ** q(8, 3)) + x / (2 * x ** q(8, 3)) ** 2,
    "x^(4/3) * log(x^(8/3))": lambda x: x ** q(4, 3) * q(8, 3) * mp.log(x),
    "log(x) / x^(4/3)": lambda x: mp.log(x) / x ** q(4, 3),
    "1 / sqrt(x)": lambda x: 1 / mp.sqrt(x),
    "begin s = sqrt(x); x / s end": lambda x: mp.sqrt(x),
    "x / sqrt(x)": lambda x: mp.sqrt(x),
    "sqrt(x) / x": lambda x: 1 / mp.sqrt(x),
    "1 / (x * sqrt(x))": lambda x: x ** q(-3, 2),
    "sqrt(x^3)": lambda x: x ** q(3, 2),
    "sqrt(x)^(-5/3)": lambda x: x ** q(-5, 6),
    "(x^2)^(-3/2)": lambda x: x**-3,
    "1 / (x^4)^(1/3)": lambda x: x ** q(-4, 3),
    "1 / abs(x)^(7/3)": lambda x: x ** q(-7, 3),
    "x^(1/2) * x^(1/3)": lambda x: x ** q(5, 6),
    "(1 / x^(5/3)) / (1 / x^(2/3))": lambda x: 1 / x,
    "(sqrt(x) * x^(1/3))^(-2)": lambda x: x ** q(-5, 3),
}


def derivative(f: Function, at: float, order: int) -> float:
    x = mp.mpf(at)
    return float(mp.diff(f, x, order, h=x * mp.mpf(10) ** -20))


def compared(text: str, f: Function) -> None:
    runs = [cd.grad(f"(x::R) -> {text}").compile(), cd.hvp(f"(x::R) -> {text}").compile()]
    for e in EXPONENTS:
        at = 1.37 * 10.0**e
        for order, run in enumerate(runs, 1):
            expected = derivative(f, at, order)
            if 1e-300 < abs(expected) < 1e300:
                with np.errstate(over="ignore"):  # of 1 / x**7, which is nothing beside what it is added to
                    found = run(at) if order == 1 else run(at, 1.0)
                assert found == pytest.approx(expected, rel=1e-11), (text, order, at)


@pytest.mark.sampled
@pytest.mark.parametrize("text", PROGRAMS)
def test_derivatives_of_quotients_are_finite_where_the_answer_is(text: str) -> None:
    compared(text, PROGRAMS[text])


def test_the_quotient_at_the_smallest_numbers() -> None:
    run = cd.grad("(a::R) -> (x::R) -> a / x^(8/3)").compile()
    assert run(1.0, 1e-65) == pytest.approx(derivative(lambda x: 1 / x ** q(8, 3), 1e-65, 1), rel=1e-12)
    run = cd.grad("(x::R) -> x^(4/3) * log(x^(8/3))").compile(value=True)
    value, slope = run(1e-125)
    assert value == pytest.approx(float(mp.mpf(1e-125) ** q(4, 3) * q(8, 3) * mp.log(mp.mpf(1e-125))), rel=1e-12)
    assert slope == pytest.approx(derivative(PROGRAMS["x^(4/3) * log(x^(8/3))"], 1e-125, 1), rel=1e-12)


FACTORS = st.lists(st.tuples(st.integers(-5, 5).filter(bool), st.sampled_from((1, 2, 3))), min_size=1, max_size=3)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(FACTORS, FACTORS)
def test_products_over_products_of_powers(above: list[tuple[int, int]], below: list[tuple[int, int]]) -> None:
    def spelled(factors: list[tuple[int, int]]) -> str:
        return " * ".join(f"x^({n}/{d})" for n, d in factors)

    total = sum(q(*f) for f in above) - sum(q(*f) for f in below)
    compared(f"{spelled(above)} / ({spelled(below)})", lambda x: x**total)


def test_quotients_of_entries_and_of_complex_numbers() -> None:
    text = "(a::RV) -> (x::RV) -> begin r = i -> x(i)^(8/3); sum(i, a(i) / r(i)) end"
    x, a = np.array([1e-65, 3e-20, 1.0, 2e60]), np.array([1.0, -2.0, 3.0, 0.5])
    np.testing.assert_allclose(cd.grad(text).compile()(a, x), -8 / 3 * a * x ** (-11 / 3), rtol=1e-12)
    z = 1e-65 * np.exp(0.7j)
    found = cd.grad("(z::C) -> real(1 / z^(8/3))").compile()(z)
    assert found == pytest.approx(np.conj(-8 / 3 * z ** (-11 / 3)), rel=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("text", ["1 / x^p", "x^p / x^q", "begin r = x^p; q / r end"])
def test_exponents_that_are_numbers_of_the_program(text: str) -> None:
    program = f"(p::R, q::R) -> (x::R) -> {text}"
    assert cd.grad(program).check()
    assert cd.hvp(program).check()
    found = cd.grad(program).compile()(8 / 3, 1.5, 1e-65)
    expected = {"1": -8 / 3 * 1e-65 ** (-11 / 3), "x": (8 / 3 - 1.5) * 1e-65 ** (8 / 3 - 2.5)}
    assert found == pytest.approx(expected.get(text[0], -8 / 3 * 1.5 * 1e-65 ** (-11 / 3)), rel=1e-12)
