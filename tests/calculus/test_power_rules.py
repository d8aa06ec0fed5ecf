"""Powers at 0 and left of it: x^0 is 1 and has slope 0, a negative x has a complex logarithm; in every library."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays.lower.signature import result_of
from combdiff.meaning.evaluate import evaluate
from combdiff.run.compiled import Compiled
from combdiff.terms.terms import Lam
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

EXPONENTS: dict[str, Callable[[int], int]] = {
    "i": lambda i: i,
    "i + 1": lambda i: i + 1,
    "2 * i": lambda i: 2 * i,
    "2 * i + 1": lambda i: 2 * i + 1,
    "i^2": lambda i: i * i,
    "abs(i - 2)": lambda i: abs(i - 2),
    "i - 1": lambda i: i - 1,
    "i - 3": lambda i: i - 3,
    "2 - i": lambda i: 2 - i,
    "-i": lambda i: -i,
}
SIZES = (1, 2, 3, 5, 7)


@cache
def derived(mode: str, text: str) -> cd.Derivation:
    return getattr(cd, mode)(text)


def slope(x: Any, e: int, order: int = 1) -> Any:
    """The derivative of x^e, by the rule for whole exponents."""
    factor = int(np.prod([e - n for n in range(order)]))
    return factor * x ** (e - order) if factor else 0 * x


@cache
def compiled(mode: str, text: str) -> Compiled:
    return derived(mode, text).compile()


def run(mode: str, text: str, *args: object) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return compiled(mode, text)(*args)


def points(size: int, e: Callable[[int], int], rng: np.random.Generator, imaginary: complex = 0) -> np.ndarray:
    """Bases for x(i)^e(i): zero wherever the power has a value there."""
    x = rng.normal(size=size) + imaginary * rng.normal(size=size)
    return np.where([e(i) >= 0 for i in range(size)], 0, x)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("size", SIZES)
def test_real_and_complex_powers_of_zero_have_their_derivatives(exponent: str, size: int) -> None:
    e, rng = EXPONENTS[exponent], np.random.default_rng(size)
    real = f"(c::RV) -> (x::RV) -> sum(i, c(i) * x(i)^({exponent}))"
    of_complex = f"(c::CV) -> (x::CV) -> real(sum(i, c(i) * x(i)^({exponent})))"
    for text, unit in ((real, 0), (of_complex, 1j)):
        c, k = (rng.normal(size=size) + unit * rng.normal(size=size) for _ in range(2))
        for x in (points(size, e, rng, unit), rng.normal(size=size) + unit * rng.normal(size=size)):
            if not unit:
                c, k, x = c.real, k.real, x.real
            first = np.array([c[i] * slope(x[i], e(i)) for i in range(size)]).conj()
            second = np.array([c[i] * slope(x[i], e(i), 2) * k[i] for i in range(size)]).conj()
            np.testing.assert_allclose(run("grad", text, c, x), first, rtol=1e-12, atol=1e-300)
            np.testing.assert_allclose(run("hvp", text, c, x, k), second, rtol=1e-12, atol=1e-300)


@pytest.mark.sampled
@pytest.mark.parametrize("exponent", ["i", "i + 1", "2 * i", "i^2", "abs(i - 2)"])
@pytest.mark.parametrize("t", [0.0, -1.5, 0.7])
def test_a_polynomial_has_its_derivatives_by_the_code_and_by_the_oracle(exponent: str, t: float) -> None:
    text = f"(c::RV) -> (t::R) -> sum(i, c(i) * t^({exponent}))"
    for size in SIZES:
        c = np.random.default_rng(size).normal(size=size)
        e = [EXPONENTS[exponent](i) for i in range(size)]
        for mode, order in (("grad", 1), ("hvp", 2)):
            d, directions = derived(mode, text), [1.0] * (order - 1)
            expected = sum(c[i] * slope(t, e[i], order) for i in range(size))
            assert run(mode, text, c, t, *directions) == pytest.approx(expected, rel=1e-12)
            parts = result_of(d.term)
            inner = d.term
            while isinstance(inner, Lam):
                inner = inner.body
            values = dict(zip(parts.params, [c, t, *directions], strict=True))
            sizes = {parts.params[0].kind.params[0].domain: size}
            assert evaluate(inner, values, sizes) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_every_library_gives_value_gradient_and_hessian_product_at_zero(library: Numbers) -> None:
    c, z = np.array([1.0 - 1j, 2.0, 3j, 4.0]), np.array([0j, 0j, 0j, 0j])
    d = derived("grad", "(c::CV) -> (z::CV) -> real(sum((i, j), c(i) * z(j)^i))")
    value, gradient = d.compile(library.name, value=True)(library.to(c), library.to(z))
    assert library.back(value) == pytest.approx(4.0)
    np.testing.assert_allclose(library.back(gradient), [2.0] * 4)
    h = derived("hvp", "(c::CV) -> (z::CV) -> real(sum((i, j), c(i) * z(j)^i))")
    product = h.compile(library.name)(library.to(c), library.to(z), library.to(z + 1))
    np.testing.assert_allclose(library.back(product), [-6j] * 4)


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("sum(i, c(i) * t^i)", "sum(i, i * c(i) * where(1 <= i, t^(i - 1)))"),
        ("sum(i, c(i) * t^(i + 1))", "sum(i, t^i * c(i) * (i + 1))"),
        ("sum(i, c(i) * t^(2 * i))", "2 * sum(i, i * c(i) * where(1 <= i, t^(2 * i - 1)))"),
        ("sum(i, c(i) * t^(2 * i - 1))", "sum(i, t^(2 * i - 2) * c(i) * (2 * i - 1))"),
        ("sum(i, c(i) * t^(i - 3))", "sum(i, c(i) * (i - 3) * where(i != 3, t^(i - 4)))"),
        ("sum(i, c(i) * where(3 <= i, t^(i - 3)))", "sum(i, c(i) * (i - 3) * where(4 <= i, t^(i - 4)))"),
        ("sum(i, i * c(i) * where(1 <= i, t^(i - 1)))", "sum(i, i * c(i) * (i - 1) * where(2 <= i, t^(i - 2)))"),
        ("sum(i, c(i) * t^(sum(j::N{n}, 1)))", "n * t^(n - 1) * sum(i, c(i))"),
        (
            "sum(i, c(i) * t^(sum(j::N{n}, 1) - 1 - i))",
            "where(i + 2 <= n, t^(n - 2 - i)))",
        ),
    ],
)
def test_a_condition_is_written_only_where_an_exponent_may_be_zero(text: str, gradient: str) -> None:
    sized = "(c::RV{n})" if "{n}" in text else "(c::RV)"
    assert "".join(str(derived("grad", f"{sized} -> (t::R) -> {text}")).split()).endswith("".join(gradient.split()))


def test_a_second_derivative_has_one_condition() -> None:
    d = derived("hvp", "(c::RM) -> (t::R) -> sum((i, j), c(i, j) * where(j <= i, t^(i - j)))")
    assert "(i - j - 1) * (i - j) * where(j + 2 <= i, t^(i - j - 2))" in str(d)


def test_a_power_of_a_whole_index_stands_in_front_of_a_guard() -> None:
    d = derived("grad", "(t::R) -> (x::RV) -> sum(i, where(2 <= i, t^i * log(x(i))))")
    assert str(d) == "(t::R) -> (x::RV) -> i -> t^i * where(2 <= i, 1 / x(i))"


def test_under_a_guard_the_exponent_is_safe_where_it_has_the_index_and_the_base_where_it_has_not() -> None:
    code = derived("grad", "(c::RV) -> (t::R) -> sum(i, c(i) * t^i)").source()
    assert "np.power(t, t1 - 1)" in code and "dtype=float)[1:]" in code, "there is no exponent below 0"
    code = derived("grad", "(c::RM) -> (t::R) -> sum((i, j), where(i < j, t^(j - i - 1)) * c(i, j))").source()
    assert "np.where(" in code
    text = "(y::RV) -> (x::RV) -> sum((i, j), where(i <= j, x(i)^y(j)))"
    x, y = np.array([1.0, 2.0, 0.0]), np.array([-1.0, -2.0, 3.0])
    expected = [sum(y[j] * x[i] ** (y[j] - 1) for j in range(i, 3)) for i in range(3)]
    np.testing.assert_allclose(run("grad", text, y, x), expected)


# --- 0^0 of complex numbers -----------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["RV", "CV"])
def test_nothing_to_the_power_of_nothing_is_one_in_every_library(library: Numbers, kind: str) -> None:
    d = derived("grad", f"(p::{kind}, z::CV) -> (x::RV) -> sum(i, x(i) * real((1 + z(i)^p(i))^2))")
    p, z = np.array([0.0, 0.0, 2.0, 1.0, 3.0]), np.array([0, 1j, 0, 0, 2j])
    p = p.astype(complex) if kind == "CV" else p
    gradient = d.compile(library.name)(library.to(p), library.to(z), library.to(np.ones(5)))
    np.testing.assert_allclose(library.back(gradient), [4, 4, 1, 1, -63], rtol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("power", ["z^0", "(z^5)^0", "exp(z)^0", "(z^w)^0", "(z^0)^2"])
def test_a_complex_number_to_the_power_of_zero_is_a_real_number(power: str) -> None:
    d = derived("grad", f"(w::C) -> (x::R, z::C) -> x * max(x, {power}) + sqrt(-{power} * x)")
    assert d.compile(value=True)(0.5j, -4.0, 1 + 1j) == pytest.approx((-2, 0.75, 0))


# --- negative bases -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("x", [-2.0, -0.3, 0.4])
def test_a_real_number_has_powers_with_complex_exponents_and_their_derivatives(x: float) -> None:
    text, z, dx, dz, h = "(x::R, z::C) -> real((1 - im) * x^z)", 0.7 - 0.4j, 0.3, 0.2 + 0.9j, 1e-5
    of_x, of_z = run("grad", text, x, z)
    power = complex(x) ** z
    log = np.log(complex(x))
    assert of_x == pytest.approx(((1 - 1j) * z * power / x).real)
    assert of_z == pytest.approx(np.conj((1 - 1j) * power * log))
    product = run("hvp", text, x, z, dx, dz)
    ahead, behind = (run("grad", text, x + s * dx, z + s * dz) for s in (h, -h))
    np.testing.assert_allclose(product, [(a - b) / (2 * h) for a, b in zip(ahead, behind, strict=True)], rtol=1e-7)


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("(z::C) -> real((-2)^z)", "((-2)^z)' * (log(2) - im * pi)"),
        ("(z::C) -> real(2^z)", "(2^z)' * log(2)"),
        ("(x::R) -> (z::C) -> real((1 + x^2)^z)", "((1 + x^2)^z)' * log(1 + x^2)"),
        ("(x::R) -> (z::C) -> real(x^z)", "(x^z)' * (log(abs(x)) - im * where(x <= 0, pi))"),
        ("(x::R) -> (p::R) -> x^p", "x^p * log(x)"),
    ],
)
def test_the_logarithm_of_a_base_is_complex_only_where_it_may_have_to_be(text: str, gradient: str) -> None:
    d = derived("grad", text)
    assert str(d).endswith(gradient)
    assert d.check()


def test_a_negative_number_has_a_slope_by_its_base_and_none_by_a_real_exponent() -> None:
    with np.errstate(invalid="ignore"):
        of_base, of_exponent = derived("grad", "(x::R, p::R) -> x^p").compile()(-2.0, 3.0)
    assert of_base == 12.0
    assert np.isnan(of_exponent)
