"""Powers of one array share one root, and agree with those of the formula wherever these have a value."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate

POWERS = "(x::RV) -> sum(i, x(i)^(4/3) + 2 * x(i)^(-1/3) - x(i)^(7/6) + x(i)^(-14/3) / 9 + x(i)^(5/2) + x(i)^5)"


def source(text: str) -> str:
    """The code of a value, without its docstring."""
    return cd.simplified(text).source().split('"""')[2]


def test_powers_of_one_array_take_one_root() -> None:
    assert re.findall(r"np\.power\(.*?\)|np\.\w+|\*\* ?-?[3-9]", source(POWERS)) == ["np.power(x, 1 / 6)"]


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_products_of_roots_are_the_powers_of_the_formula(size: int) -> None:
    x = np.random.default_rng(size).lognormal(size=size)
    wanted = evaluate(infer(parse(POWERS)), {})(x)  # type: ignore[operator]
    assert cd.simplified(POWERS).compile()(x) == pytest.approx(wanted, rel=1e-13)
    assert cd.grad(POWERS).check()


def test_a_power_alone_stays_a_power() -> None:
    assert "np.power(x, 4 / 3)" in source("(x::RV) -> sum(i, x(i)^(4/3) * sin(x(i)))")


@pytest.mark.slow
def test_a_fourth_root_is_a_square_root_of_a_square_root() -> None:
    text = "(x::RV) -> sum(i, x(i)^(1/4) * sin(x(i)) + x(i)^(-7/4))"
    assert re.findall(r"np\.(power|sqrt)", source(text)) == ["sqrt", "sqrt"]
    ends = np.array([0.0, -1.0, np.inf, np.nan, 1e-300, 3.0])
    with np.errstate(all="ignore"):
        wanted = [np.power(ends, 0.25), np.power(ends, -1.75)]
    found = values("(x::RV) -> (i -> x(i)^(1/4), i -> x(i)^(-7/4))", ends)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    assert cd.grad(text).check()


def values(text: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The entries that a program makes of x, without warnings of NumPy."""
    with np.errstate(all="ignore"):
        return np.asarray(cd.simplified(text).compile()(x))


@pytest.mark.parametrize("exponents", [("1/3", "4/3"), ("-1/3", "-7/3"), ("2/3", "3/2"), ("1/6", "-5/6")])
def test_the_ends_of_the_line_have_the_powers_of_numpy(exponents: tuple[str, str]) -> None:
    x = np.array([0.0, -1.0, -8.0, np.inf, np.nan, 1e-60, 1e60])
    one, other = exponents
    found = values(f"(x::RV) -> (i -> x(i)^({one}), i -> x(i)^({other}))", x)
    with np.errstate(all="ignore"):
        wanted = [np.power(x, float(Fraction(n))) for n in exponents]
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_whole_powers_beside_roots_have_values_at_negative_numbers() -> None:
    found = values(
        "(x::RV) -> (i -> x(i)^3, i -> x(i)^(-5), i -> x(i)^2 + where(0 <= x(i), x(i)^(1/3) + x(i)^(4/3)))",
        np.array([-2.0]),
    )
    np.testing.assert_array_equal(found[:, 0], [-8, -1 / 32, 4])


def test_complex_powers_stay_powers() -> None:
    text = source("(z::CV) -> sum(i, abs2(z(i)^(4/3) + z(i)^(1/3)))")
    assert text.count("np.power") == 2


INVERSES = (
    "(x::RV) -> begin w = i -> 1 / (1 + x(i)^2); sum(i, exp(w(i)) + x(i) / w(i) + sin(x(i)) / (1 + x(i)^2)^2) end"
)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_inverses_are_divided_for_once(size: int) -> None:
    text = source(INVERSES)
    assert text.count("/") == 1, text
    x = np.random.default_rng(size).normal(size=size)
    d, value = cd.grad(INVERSES), cd.simplified(INVERSES)
    expected = evaluate(value.term, {})(x), evaluate(d.term, {})(x)  # type: ignore[operator]
    for found, wanted in zip(d.compile(value=True)(x), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
