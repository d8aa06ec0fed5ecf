"""Code for a choice: one np.where for each condition, no value computed twice, the same numbers in every library."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from tests.emit.array_libraries import LIBRARIES, library

__all__ = ["library"]

CODE = {
    "(x::RV) -> sum(i, where(x(i) < 0, x(i)^2, where(x(i) < 1, x(i)^3, 3 * x(i) - 2)))": [
        "return np.where(x < 0, 2 * x, np.where(x < 1, 3 * x**2, 3))"
    ],
    "(t::R) -> (x::RV) -> sum(i, where(abs(x(i)) <= t, x(i)^2 / 2, t * abs(x(i)) - t^2 / 2))": [
        "return np.where(abs(x) <= t, x, t * np.sign(x))"
    ],
    "(x::RV) -> sum(i, where(x(i) - 2 < -1, -x(i), where(x(i) - 2 > 1, x(i), (x(i) - 2)^2 / 2)))": [
        "t1 = x - 2",
        "return np.where(t1 < -1, -1, np.where(t1 <= 1, t1, 1))",
    ],
    "(x::R) -> where(x < 0, x^2, where(x < 1, x^3, 3 * x))": ["return 2 * x if x < 0 else 3 * x**2 if x < 1 else 3"],
    "(x::RV) -> sum(i, where(0 <= x(i) < 1, x(i)^2) + where(1 <= x(i) < 2, x(i)) + where(2 <= x(i) < 3, sin(x(i))))": [
        "t1 = np.where(x < 3, np.where(x < 1, 2 * x, np.where(x < 2, 1, np.cos(x))), 0)",
        "return np.where(0 <= x, t1, 0)",
    ],
    "(z::CV, x::RV) -> sum(i, where(x(i) < 0, abs2(z(i)), where(x(i) < 1, real(z(i)), imag(z(i)) * x(i))))": None,
    "(x::RV) -> sum(i, where(x(i) < 1, sqrt(1 - x(i)), where(x(i) < 2, log(x(i)), exp(-x(i)))))": None,
    "(h::R) -> (r::RV) -> sum(i, where(r(i) / h < 1, (r(i) / h)^3, where(r(i) / h < 2, (2 - r(i) / h)^3, 0)))": None,
}
POINTS = np.array([-3, -1, -0.5, 0, 0.25, 1, 1.5, 2, 2.5, 3, 7.0])


def lines(text: str) -> list[str]:
    return [line.strip() for line in cd.grad(text).source().split('"""')[2].splitlines() if line.strip()]


@pytest.mark.sampled
@pytest.mark.parametrize("program", [program for program, code in CODE.items() if code])
def test_each_condition_is_compared_once(program: str) -> None:
    assert lines(program) == CODE[program]


def test_a_sum_of_a_choice_is_made_in_one_pass() -> None:
    source = cd.simplified("(x::RV) -> sum(i, where(x(i) < 0, x(i)^2, where(x(i) < 1, x(i)^3, 3 * x(i) - 2)))").source()
    assert source.splitlines()[-1].strip() == ("return np.where(x < 0, x**2, np.where(x < 1, x**3, 3 * x - 2)).sum()")


def test_products_under_conditions_of_indices_stay_products_of_matrices() -> None:
    d = cd.simplified("(A::RM, x::RV) -> sum((i, j), where(i < j, A(i, j) * x(i) * x(j), A(i, j)^2 * x(j)))")
    assert d.source().count("@") >= 2


def arguments(program: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    scalars = [np.float64(1.5)] if program.startswith(("(t::R)", "(h::R)")) else []
    if program.startswith("(z"):
        return [rng.normal(size=POINTS.size) + 1j * rng.normal(size=POINTS.size), POINTS]
    return [*scalars, np.float64(0.25) if program.startswith("(x::R)") else POINTS]


@pytest.mark.sampled
@pytest.mark.parametrize("program", CODE)
def test_the_gradient_is_the_difference_of_the_values(program: str) -> None:
    d = cd.grad(program)
    assert bool(d.check())
    with np.errstate(all="raise"):
        d.compile(value=True)(*arguments(program))


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES, indirect=True)
@pytest.mark.parametrize("program", CODE)
def test_all_libraries_give_the_numbers_of_numpy(program: str, library) -> None:
    d, given = cd.grad(program), arguments(program)
    expected = d.compile(value=True)(*given)
    found = d.compile(library.name, value=True)(*(library.to(a) for a in given))
    for one, other in zip(np.atleast_1d(expected[0]), np.atleast_1d(library.back(found[0])), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    gradients = expected[1:] if not isinstance(expected[1], tuple) else expected[1]
    others = found[1:] if not isinstance(found[1], tuple) else found[1]
    for one, other in zip(gradients, others, strict=True):
        np.testing.assert_allclose(one, library.back(other), rtol=1e-12, atol=1e-15)


PINBALL = """(X::RM{n, p}, y::RV{n}, q::R) -> (w::RV{p}) -> sum(i, where(0 <= y(i) - sum(j, X(i, j) * w(j)),
  q * (y(i) - sum(j, X(i, j) * w(j))), (q - 1) * (y(i) - sum(j, X(i, j) * w(j)))))"""


def test_a_factor_of_all_cases_is_a_factor_of_the_choice() -> None:
    """Also where sums in it are written out: their indices have names of their own."""
    d = cd.grad(PINBALL)
    assert d.source(value=True, X=(1000, 10)).count("np.where") == 1
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(50, 3)), rng.normal(size=50), rng.normal(size=3)
    r = y - X @ w
    chosen = np.where(r >= 0, 0.3, -0.7)
    value, gradient = d.compile(value=True)(X, y, 0.3, w)
    np.testing.assert_allclose(value, chosen @ r)
    np.testing.assert_allclose(gradient, -chosen @ X)


def test_a_factor_of_some_cases_stays_in_them() -> None:
    text = "(x::RV, y::RV) -> sum(i, where(x(i) < 0, {}))"
    code = cd.simplified(text.format("x(i) * y(i), x(i)^2 + y(i)")).source()
    assert code.count("np.where") == 1
    f = cd.simplified(text.format("log(-x(i)) * y(i), y(i))")[:-1]).compile()
    x, y = np.array([-1.0, 2.0]), np.array([3.0, np.e])
    assert np.isclose(f(x, y), np.e), "the logarithm is taken where x is negative only"
