"""A complex argument of a function with a branch cut stays complex, though arithmetic finds that it is real."""

import cmath

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.terms.branches import leaves_the_real_numbers
from combdiff.terms.terms import Call, subterms

X = -0.7

SPELLINGS = (
    "(x::R) -> {}(log((im * x)^2))",
    "(x::R) -> {}(log((im * x) * (im * x)))",
    "(x::R) -> {}(log(complex(-x^2)))",
    "(x::R) -> begin; z = im * x; {}(log(z^2)); end",
    "(x::R) -> begin; f = (z::C) -> {}(log(z)); f((im * x)^2); end",
    "(x::R) -> begin; f = (z::C) -> {}(log(z^2)); f(im * x); end",
    "(x::R) -> begin; f = (z::C) -> {}(log(-z)); y = x^2; f(y); end",
)


@pytest.mark.sampled
@pytest.mark.parametrize("program", SPELLINGS)
@pytest.mark.parametrize("part", ("real", "imag", "abs2"))
def test_the_logarithm_of_a_negative_square_is_that_of_a_complex_number(program: str, part: str) -> None:
    d = cd.grad(program.format(part))
    value, gradient = d.compile(value=True)(X)
    z = cmath.log(-(X**2) + 0j)
    expected = {"real": z.real, "imag": z.imag, "abs2": abs(z) ** 2}[part]
    slope = {"real": 2 / X, "imag": 0.0, "abs2": 2 * z.real * 2 / X}[part]
    assert np.isclose(value, expected) and np.isclose(gradient, slope)
    assert d.check()


@pytest.mark.parametrize(
    ("function", "value"), [("sqrt", 1j), ("log", cmath.pi * 1j), ("acosh", cmath.pi * 1j), ("atan", -cmath.pi / 4)]
)
@pytest.mark.parametrize("minus_one", ["z - z - 1", "0 * z - 1", "(z - 1) - z"])
def test_complex_numbers_that_cancel_leave_a_complex_number(function: str, value: complex, minus_one: str) -> None:
    d = cd.grad(f"(z::C) -> (a::R) -> a^2 * abs2({function}({minus_one}) + 1)")
    assert d.compile()(0.3 - 2j, 1.5) == pytest.approx(3 * abs(value + 1) ** 2)
    assert d.check()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("sqrt", lambda z: abs(cmath.sqrt(z) + 1) ** 2),
        ("log", lambda z: abs(cmath.log(z) + 1) ** 2),
        ("(t -> t^(1/3))", lambda z: abs(z ** (1 / 3) + 1) ** 2),
        ("(t -> t^(2*im))", lambda z: abs(z**2j + 1) ** 2),
    ],
)
@pytest.mark.parametrize("x", (-0.7, 0.4))
def test_functions_of_complex_arguments_that_are_real_numbers(function, value, x) -> None:
    function = function.replace("t ->", "(t::C) ->")
    text = (
        f"(x::R) -> begin; g = {function}; abs2(g(x) + 1); end"
        if "::" in function
        else (f"(x::R) -> begin; g = (z::C) -> {function}(z); abs2(g(x) + 1); end")
    )
    d = cd.grad(text)
    found, slope = d.compile(value=True)(x)
    assert np.isclose(found, value(x + 0j))
    assert np.isclose(slope, (value(x + 1e-6 + 0j) - value(x - 1e-6 + 0j)) / 2e-6, rtol=1e-6)
    assert d.check()


def test_a_definition_on_entries_of_real_tensors() -> None:
    d = cd.grad("(x::RV) -> begin; f = (z::CV) -> sum(i, abs2(log(z(i)))); f(x); end")
    x = np.array([-0.3, 0.7, -1.2])
    value, gradient = d.compile(value=True)(x)
    z = np.log(x + 0j)
    assert np.isclose(value, (abs(z) ** 2).sum())
    np.testing.assert_allclose(gradient, 2 * z.real / x)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(x::R) -> real(exp(complex(x)))", 0),
        ("(x::R) -> abs2(log(complex(x^2)))", 0),
        ("(x::R) -> abs2(log(complex(exp(x) + 1)))", 0),
        ("(x::R) -> abs2(log(complex(x)))", 1),
        ("(z::C) -> abs2(log(complex(z)))", 0),
        ("(x::R) -> abs2(complex(x) * im)", 0),
    ],
)
def test_it_is_written_only_where_something_depends_on_it(text: str, said: int) -> None:
    calls = [t for t in subterms(infer(parse(text))) if isinstance(t, Call) and t.primitive == "complex"]
    assert len(calls) == said


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ("numpy", "jax", "torch", "dask"))
def test_in_every_library(backend: str) -> None:
    module = {"numpy": "numpy", "jax": "jax.numpy", "torch": "torch", "dask": "dask.array"}[backend]
    library = pytest.importorskip(module)
    d = cd.grad("(x::RV) -> sum(i, imag(sqrt(complex(x(i)))) + abs2(log((im * x(i))^2)))")
    x = np.array([-0.3, 0.7, -1.2])
    expected = d.compile()(x)
    array = {"torch": lambda: library.tensor(x), "dask": lambda: library.from_array(x)}.get(backend, lambda: x)()
    if backend == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    np.testing.assert_allclose(np.asarray(d.compile(backend=backend)(array)), expected, rtol=1e-12)
    h = 1e-6
    f = lambda x: np.sqrt(x + 0j).imag + abs(np.log((1j * x) ** 2 + 0j)) ** 2  # noqa: E731
    np.testing.assert_allclose(expected, (f(x + h) - f(x - h)) / (2 * h), rtol=1e-6)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["asin", "acos", "acosh", "atanh", "log1p", "log2", "log10"])
def test_the_functions_of_a_complex_number_that_is_found_to_be_real(name: str) -> None:
    d = cd.grad(f"(z::C) -> abs2({name}(z' * z))")
    f = lambda z: abs(getattr(np, {"log1p": name, "log2": name, "log10": name}.get(name, f"arc{name[1:]}"))(z)) ** 2  # noqa: E731
    z, h = 1.1 + 0.7j, 1e-6
    along = [(f(abs(z + h * u) ** 2 + 0j) - f(abs(z - h * u) ** 2 + 0j)) / (2 * h) for u in (1, 1j)]
    assert d.compile()(z) == pytest.approx(complex(*along), rel=1e-6)


def test_powers_that_are_integers_have_no_cut() -> None:
    (power,) = (t for t in subterms(infer(parse("(z::C) -> z^3"))) if hasattr(t, "exponent"))
    assert not leaves_the_real_numbers(power)
