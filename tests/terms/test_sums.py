"""Sums of a few exponentials, their logarithms and quotients: what the laws make, and the naive text against mpmath."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

mpmath = pytest.importorskip("mpmath")
exp, log, tanh, cosh, sinh = mpmath.exp, mpmath.log, mpmath.tanh, mpmath.cosh, mpmath.sinh

LAWS = {
    "log(exp(x) + exp(y))": "x + softplus(y - x)",
    "log(2 + 3 * exp(x))": "log(2) + softplus(log(3) + x - log(2))",
    "log(exp(x) - exp(y))": "x + log(1 - exp(y - x))",
    "log(exp(x) - 1)": "x + log(1 - exp(-x))",
    "log(exp(x) + exp(-x) + 1)": "softplus(x) + softplus(-x - softplus(x))",
    "log(1 + exp(x)^2)": "softplus(2 * x)",
    "log(1 + tanh(x))": "log(2) - softplus(-2 * x)",
    "log((1 - tanh(x)) / 2)": "-softplus(2 * x)",
    "log(1 - (1 - sigmoid(x)))": "-softplus(-x)",
    "log(sigmoid(x) * (1 - sigmoid(x)))": "-softplus(-x) - softplus(x)",
    "log(sigmoid(x) - sigmoid(y))": "log(1 - exp(y - x)) - softplus(-x) - softplus(y)",
    "(exp(x) - exp(-x)) / (exp(x) + exp(-x))": "tanh(x)",
    "(exp(2 * x) - 1) / (exp(2 * x) + 1)": "tanh(x)",
    "(1 + 3 * exp(x)) / (1 + exp(x))": "sigmoid(-x) + 3 * sigmoid(x)",
    "exp(x) / (exp(x) + exp(y))": "sigmoid(x - y)",
    "exp(x)^2 / (1 + exp(x)^2)": "sigmoid(2 * x)",
    "y * exp(x) / (2 + y * exp(x))^2": "y / (2 + y * exp(x)) / (y + 2 * exp(-x))",
    "exp(x) / (exp(x) - 1)": "1 / (1 - exp(-x))",
    # logistic growth: an inner sum of exponentials counts, too
    "exp(x) / (y + 2 * (exp(x) - 1))": "1 / (2 + (y - 2) * exp(-x))",
    "y * exp(x) / (2 + y * (exp(x) - 1))": "y / (y + (2 - y) * exp(-x))",
    "exp(2 * x) / (exp(x) + exp(2 * x) + exp(y))": "exp(x - softplus(x) - softplus(y - x - softplus(x)))",
    "cosh(x) / sinh(x)": "1 / tanh(x)",
    # a scale of numbers and π, as normal densities have
    "log(exp(x) / sqrt(2 * pi) + exp(y) / sqrt(2 * pi))": "x + softplus(y - x) - 1/2 * log(2 * pi)",
    "log(exp(x) + 1 / sqrt(2 * pi))": "softplus(x + 1/2 * log(2 * pi)) - 1/2 * log(2 * pi)",
    "log(exp(x) / (2 * pi)^(3/2) + exp(y))": "x + softplus(y + 3/2 * log(2 * pi) - x) - 3/2 * log(2 * pi)",
    # nothing here can overflow, or the sign is not known
    "log(2 + exp(-x^2))": "log(2 + exp(-x^2))",
    "log(2 - exp(x))": "log(2 - exp(x))",
    "log(y + exp(x))": "log(y + exp(x))",
    "log(exp(x) + y * exp(-x))": "log(exp(x) + y * exp(-x))",
    "log(1 - 2 * tanh(x))": "log(1 - 2 * tanh(x))",
    "exp(y) / (1 + exp(x))": "exp(y) * sigmoid(-x)",
}


# as in Student's t: where a term is 0, its logarithm has no derivative, and that of the sum has one
AT_ZERO = [
    "(x::R, y::R) -> log(1 + x^2 * exp(y))",
    "(x::R, y::R) -> log(1 + x^2 * exp(-2 * y) / (1 + exp(y)))",
    "(x::R, y::R) -> log(exp(y) + x^2 * exp(2 * y) + 1)",
    "(x::R, y::R) -> log(1 + relu(x) * exp(y))",
    "(x::R, y::R) -> log(1 + abs(x)^3 * exp(y))",
    "(x::R, y::R) -> log(1 + sum(i::N{3}, x^2 * exp(y * i)))",
    "(x::R, y::R) -> exp(x) * log(1 + prod(i::N{2}, x * exp(y * i)))",
]


@pytest.mark.parametrize("text", AT_ZERO)
def test_a_term_that_is_zero_leaves_a_derivative(text: str) -> None:
    assert cd.grad(text).compile()(0.0, 0.3)[0] == 0


def _text(objective: str) -> str:
    return f"(x::R, y::R) -> {objective}"


@pytest.mark.parametrize("objective", LAWS)
def test_a_sum_of_exponentials_is_read_in_a_stable_form(objective: str) -> None:
    assert str(cd.simplified(_text(objective))) == _text(LAWS[objective])


@pytest.mark.parametrize("objective", LAWS)
@pytest.mark.filterwarnings("ignore")
def test_a_stable_form_has_the_value_of_the_sum(objective: str) -> None:
    given, found = (infer(parse(text)) for text in (_text(objective), str(cd.simplified(_text(objective)))))
    for point in ((0.7, 0.3), (0.3, 0.7), (-1.2, 0.4), (0.4, -2.0), (0.2, 0.2)):
        one, other = (complex(evaluate(f.body, dict(zip(f.params, point, strict=True)))) for f in (given, found))
        if np.isfinite(one):
            assert other == pytest.approx(one, rel=1e-12, abs=1e-15)
        else:
            assert not np.isfinite(other)


# --- the naive text, run --------------------------------------------------------------------------------------------

FAR = (-1000.0, -40.0, -1.3, 0.7, 40.0, 1000.0)
RIGHT = (0.7, 40.0, 1000.0)
Function = Callable[[Any], Any]
NAIVE: dict[str, tuple[Function, tuple[float, ...]]] = {
    "log(cosh(x))": (lambda x: log(cosh(x)), FAR),
    "log(2 * cosh(3 * x)) + log(1 / cosh(x)^2)": (lambda x: log(2 * cosh(3 * x)) - 2 * log(cosh(x)), FAR),
    "log(1 - tanh(x)^2)": (lambda x: -2 * log(cosh(x)), FAR),
    "begin p = tanh(x / 2); log(3 * (1 - p^2)) end": (lambda x: log(3) - 2 * log(cosh(x / 2)), FAR),
    "log1p(-tanh(x)^2)": (lambda x: -2 * log(cosh(x)), FAR),
    "log1p(-tanh(x)) + log1p(-sigmoid(x / 2))": (lambda x: log(1 - tanh(x)) - log(1 + exp(x / 2)), FAR),
    "log(tanh(x) - tanh(x - 1))": (lambda x: log(tanh(x) - tanh(x - 1)), FAR),
    "log(sinh(x))": (lambda x: log(sinh(x)), RIGHT),
    "log(sinh(x) / x)": (lambda x: log(sinh(x) / x), FAR),
    "log(sinh(x)^2) + log(3 * x * sinh(x / 2))": (lambda x: log(sinh(x) ** 2) + log(3 * x * sinh(x / 2)), FAR),
    "log(1 + tanh(x)) + log(1 - tanh(x / 2))": (lambda x: log(1 + tanh(x)) + log(1 - tanh(x / 2)), FAR),
    "(exp(x) - exp(-x)) / (exp(x) + exp(-x))": (tanh, FAR),
    "(exp(2 * x) - 1) / (exp(2 * x) + 1)": (tanh, FAR),
    "exp(2 * x) / (1 + exp(x)^2)": (lambda x: 1 / (1 + exp(-2 * x)), FAR),
    "log(2 + exp(x))": (lambda x: log(2 + exp(x)), FAR),
    "-log(1 + exp(-x) + exp(-2 * x))": (lambda x: -log(1 + exp(-x) + exp(-2 * x)), FAR),
    "log(exp(x) - exp(x / 2))": (lambda x: log(exp(x) - exp(x / 2)), (40.0, 1000.0)),
    "3 * log(exp(x) / (exp(x) + 2)) + 2 * log(2 / (exp(x) + 2))": (
        lambda x: 3 * log(exp(x) / (exp(x) + 2)) + 2 * log(2 / (exp(x) + 2)),
        FAR,
    ),
    "-log(1 - sigmoid(x)) - log(1 - (1 - sigmoid(x)))": (lambda x: log(1 + exp(x)) + log(1 + exp(-x)), FAR),
    "log(exp(-x) / (1 + exp(-x))^2)": (lambda x: -x - 2 * log(1 + exp(-x)), FAR),
    "begin p = sigmoid(x); log(p * (1 - p)) + log(p / (1 - p)) end": (lambda x: -2 * log(1 + exp(-x)), FAR),
    "begin a = exp(x); b = exp(-x); Z = a + b; log(Z) + (a - b) / Z end": (lambda x: log(2 * cosh(x)) + tanh(x), FAR),
    "log(sigmoid(2 - x) - sigmoid(1 - x))": (lambda x: log(1 / (1 + exp(x - 2)) - 1 / (1 + exp(x - 1))), FAR),
    "3 / (1 + 2 * exp(-x / 2))": (lambda x: 3 / (1 + 2 * exp(-x / 2)), FAR),
    "1 / (exp(x) - 1)": (lambda x: 1 / (exp(x) - 1), (1e-5, *RIGHT)),
    "x^2 * exp(x) / (exp(x) - 1)^2": (lambda x: x**2 * exp(x) / (exp(x) - 1) ** 2, RIGHT),
    "log(1 - exp(-x))": (lambda x: log(1 - exp(-x)), (1e-10, 0.7, 3.0)),
    "exp(-exp(x))": (lambda x: exp(-exp(x)), FAR),
    "exp(-x - exp(-x))": (lambda x: exp(-x - exp(-x)), FAR),
    "begin h = 3 * exp(x / 2); h * exp(-h) end": (lambda x: 3 * exp(x / 2) * exp(-3 * exp(x / 2)), FAR),
    "log(1 - exp(-exp(x)))": (lambda x: log(1 - exp(-exp(x))), RIGHT),
    "log(x^2) + log(x^-4) - log(2 * x^2)": (lambda x: -4 * log(abs(x)) - log(2), (1e-200, -1e-200, 1e200, -3.0)),
}


def _derivatives(f: Function, x: float) -> tuple[float, float, float]:
    """f, f′ and f″ by differences in as many digits as cancel."""
    with mpmath.workdps(3000):
        at, h = mpmath.mpf(x), mpmath.mpf(10) ** -450
        above, value, below = (f(at + s * h) for s in (1, 0, -1))
        return float(value), float((above - below) / (2 * h)), float((above - 2 * value + below) / h**2)


@pytest.mark.slow
@pytest.mark.parametrize("objective", NAIVE)
@pytest.mark.filterwarnings("ignore")
def test_the_naive_text_is_right_far_from_zero(objective: str) -> None:
    f, points = NAIVE[objective]
    text = f"(x::R) -> {objective}"
    both, second, along = cd.grad(text).compile(value=True), cd.hvp(text).compile(), cd.jvp(text).compile()
    for x in points:
        expected = _derivatives(f, x)
        found = np.array([*both(x), second(x, 1.0), along(x, 1.0)])
        # 1 − tanh² as it is written is 0 where tanh is 1 to all digits
        digits = {"rtol": 1e-12, "atol": 1e-15 if abs(x) < 1e3 else 1e-290}
        np.testing.assert_allclose(found, [*expected, expected[1]], **digits)


@pytest.mark.sampled
@pytest.mark.parametrize("objective", NAIVE)
@pytest.mark.filterwarnings("ignore")
def test_the_naive_text_is_right_in_every_library(objective: str, library: Numbers) -> None:
    f, points = NAIVE[objective]
    both = cd.grad(f"(x::R) -> {objective}").compile(library.name, value=True)
    for x in (points[0], points[-1]):
        found = np.array([float(library.back(v)) for v in both(x)])
        np.testing.assert_allclose(found, _derivatives(f, x)[:2], rtol=1e-12, atol=1e-290)


SEVERAL: dict[str, Callable[[list[Any]], Any]] = {
    "exp(x(0))^2 / sum(i, exp(x(i))^2)": lambda x: exp(2 * x[0]) / sum(exp(2 * a) for a in x),
    "log(sum(i, sqrt(exp(x(i)))))": lambda x: log(sum(exp(a / 2) for a in x)),
    "log(sum(i, exp(x(i)) + 2 * exp(-x(i))))": lambda x: log(sum(exp(a) + 2 * exp(-a) for a in x)),
    "log(softmax(i, 1 <= i, x(i))(1))": lambda x: log(exp(x[1]) / sum(map(exp, x[1:]))),
    "log(softmax(i, (i + 1)^2, x(i))(0))": lambda x: log(
        exp(x[0]) / sum((n + 1) ** 2 * exp(a) for n, a in enumerate(x))
    ),
    "log(softmax(i, 2 * i - 5, x(i))(0))": lambda x: log(
        -5 * exp(x[0]) / sum((2 * n - 5) * exp(a) for n, a in enumerate(x))
    ),
    "log(1 - softmax(i, x(i))(0))": lambda x: log(sum(map(exp, x[1:])) / sum(map(exp, x))),
    "exp(x(0)) / (exp(x(0)) + exp(x(1)) + exp(x(2)))": lambda x: exp(x[0]) / sum(map(exp, x)),
    "(3 * exp(x(0)) + exp(x(1))) / (exp(x(0)) + exp(x(1)) + exp(x(2)))": lambda x: (
        (3 * exp(x[0]) + exp(x[1])) / sum(map(exp, x))
    ),
    "sum((i, j), log(exp(x(i)) / (exp(x(i)) + exp(x(j)))))": lambda x: sum(
        log(exp(a) / (exp(a) + exp(b))) for a in x for b in x
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("objective", SEVERAL)
@pytest.mark.filterwarnings("ignore")
def test_exponentials_of_several_numbers_are_right_far_from_zero(objective: str, library: Numbers) -> None:
    f, text = SEVERAL[objective], f"(x::RV{{n}}) -> {objective}"
    for numbers in (library,):
        both, second = cd.grad(text).compile(numbers.name, value=True), cd.hvp(text).compile(numbers.name)
        for x in ([1000.0, -1000.0, 3.0], [-1000.0, -999.0, -1001.0], [0.3, -0.2, 1.5]):
            with mpmath.workdps(3000):
                h = mpmath.mpf(10) ** -900
                steps = [[mpmath.mpf(v) + s * h * (n == m) for n, v in enumerate(x)] for m in range(3) for s in (1, -1)]
                values = [f(s) for s in steps]
                slopes = [float((values[2 * m] - values[2 * m + 1]) / (2 * h)) for m in range(3)]
                value = float(f([mpmath.mpf(v) for v in x]))
            found, gradient = (numbers.back(v) for v in both(numbers.to(np.array(x))))
            np.testing.assert_allclose(float(found), value, rtol=1e-12)
            np.testing.assert_allclose(gradient, slopes, rtol=1e-11, atol=1e-15)
            assert np.all(np.isfinite(numbers.back(second(numbers.to(np.array(x)), numbers.to(np.ones(3))))))


def test_what_is_computed_in_another_form_reads_as_it_is_written() -> None:
    d = cd.grad("(x::R) -> log(cosh(x)) + log(x^2)")
    assert str(d) == "(x::R) -> tanh(x) + 2 / x"
    code = cd.simplified("(x::R) -> log(cosh(x)) + log(x^2)")
    assert str(code) == "(x::R) -> log(cosh(x)) + log(x^2)" and "cosh" not in code.source().split('"""')[2]


def test_a_tangent_counts_beside_a_kink_where_the_slope_of_what_follows_is_infinite(library: Numbers) -> None:
    d = cd.jvp("(x::RV) -> sqrt(sum(i, relu(x(i))))")
    assert d.check()
    for numbers in (Numbers("numpy"), library):
        f = d.compile(numbers.name)
        for x, expected in (([-1.0, -2.0], 0), ([-1.0, 4.0], 0.75)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = f(numbers.to(np.array(x)), numbers.to(np.array([2.0, 3.0])))
            assert float(numbers.back(found)) == expected


MIXTURE = """
(y::RV) -> (p::R, m::R, l::R) -> begin
  q = 1 / (1 + exp(-p))
  s = exp(l)
  f = i -> q * exp(-(y(i) - m)^2 / (2 * s^2)) / (sqrt(2 * pi) * s) + (1 - q) * exp(-y(i)^2 / 2) / sqrt(2 * pi)
  sum(i, log(f(i)))
end"""


@pytest.mark.filterwarnings("error")
def test_a_mixture_of_two_normal_densities_is_right_far_away() -> None:
    y, m, scale = 500.0, -400.0, 0.1

    def value(p: Any) -> Any:
        q, s = 1 / (1 + exp(-p)), exp(mpmath.mpf(scale))
        return (
            log(q * exp(-((y - m) ** 2) / (2 * s**2)) / s + (1 - q) * exp(-(mpmath.mpf(y) ** 2) / 2))
            - log(2 * mpmath.pi) / 2
        )

    found, *gradient = cd.grad(MIXTURE).compile(value=True)(np.array([y]), 0.3, m, scale)
    with mpmath.workdps(50):
        assert float(found) == pytest.approx(float(value(mpmath.mpf(0.3))), rel=1e-12)
        assert float(gradient[0]) == pytest.approx(float(mpmath.diff(value, mpmath.mpf(0.3))), rel=1e-12)
