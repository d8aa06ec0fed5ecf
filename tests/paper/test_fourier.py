"""Eq. 2–5: a Fourier transform of an inverse one is the identity, up to the 2π that the paper leaves out."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

TRANSFORMS = """F = (f::CF) -> (ω::R) -> sum(r::R, exp(-im * ω * r) * f(r))
G = (f::CF) -> (r::R) -> sum(ω::R, exp(im * ω * r) * f(ω))"""
COMPOSED = "(g::CF) -> (ω::R) -> sum(r::R, exp(-im * ω * r) * sum(v::R, exp(im * v * r) * g(v)))"
CONVOLVED = """(g::CF, h::CF) -> (t::R) -> sum(ω::R, exp(im * ω * t) *
    sum(r::R, exp(-im * ω * r) * g(r)) * sum(r::R, exp(-im * ω * r) * h(r)))"""
MIXED = """(g::CF, h::CF) -> (t::R) ->
    sum(ω::R, exp(im * ω * t) * (exp(-ω^2) * h(ω) + 3 * sum(r::R, exp(-im * ω * r) * g(r))))"""
POWER = "(g::CF) -> sum(ω::R, abs2(sum(r::R, exp(-2 * pi * im * ω * r) * g(r))))"
simplified, gradient = cache(cd.simplified), cache(cd.grad)

LINE = np.linspace(-12, 12, 401)
"""The trapezoidal rule on it is exact, up to rounding, for functions such as g and h."""
STEP = LINE[1] - LINE[0]


def g(x):
    return np.exp(-(x**2) + 0.7j * x)


def h(x):
    return (1 + 0.3j * x) * np.exp(-((x - 0.4) ** 2) / 2)


def transform(values, phase, at=LINE):
    """∫ exp(phase x r) f(r) dr at each x, from the values of f on the line."""
    return np.exp(phase * np.outer(at, LINE)) @ values * STEP


def with_transforms(body):
    return f"(g::CF) -> begin\n{TRANSFORMS}\n{body}\nend"


def test_eq_5_the_transform_of_the_inverse_transform_is_the_function():
    assert str(simplified(COMPOSED)) == "(g::CF) -> (ω::R) -> 2 * g(ω) * pi"
    oracle.close(transform(transform(g(LINE), 1j), -1j), 2 * np.pi * g(LINE))


@pytest.mark.parametrize("body", ["F(G(g))", "G(F(g))"])
def test_eq_3_with_the_transforms_as_functions_of_functions(body):
    d = simplified(with_transforms(f"v = {body}; (x::R) -> v(x) / (2 * pi)"))
    assert str(d) == "(g::CF) -> (x::R) -> g(x)"


def test_two_transforms_are_a_reflection_and_four_are_the_identity():
    assert str(simplified(with_transforms("F(F(g))"))) == "(g::CF) -> (ω::R) -> 2 * g(-ω) * pi"
    assert str(simplified(with_transforms("F(F(F(F(g))))"))) == "(g::CF) -> (ω::R) -> 4 * g(ω) * pi^2"
    oracle.close(transform(transform(g(LINE), -1j), -1j), 2 * np.pi * g(-LINE))


def test_a_product_of_transforms_is_a_convolution():
    d = simplified(CONVOLVED)
    assert str(d) == "(g::CF, h::CF) -> (t::R) -> 2 * pi * sum(r::R, g(t - r) * h(r))"
    found = transform(transform(g(LINE), -1j) * transform(h(LINE), -1j), 1j)
    oracle.close(found, 2 * np.pi * (g(LINE[:, None] - LINE) @ h(LINE)) * STEP)


def test_of_a_sum_of_terms_the_one_with_a_transform_is_inverted():
    assert str(simplified(MIXED)) == (
        "(g::CF, h::CF) -> (t::R) -> sum(ω::R, h(ω) * exp(im * t * ω) * exp(-ω^2)) + 6 * g(t) * pi"
    )
    inner = np.exp(-(LINE**2)) * h(LINE)
    found = transform(inner + 3 * transform(g(LINE), -1j), 1j)
    oracle.close(found, transform(inner, 1j) + 6 * np.pi * g(LINE))


def test_the_gradient_of_the_power_of_a_spectrum_is_plancherel():
    """∫ |∫ exp(−2πiωr) g(r) dr|² dω is ∫ |g|²."""
    d = gradient(POWER)
    assert str(d) == "(g::CF) -> (r::R) -> 2 * g(r)"
    spectrum = transform(g(LINE), -2j * np.pi)
    oracle.close(2 * transform(spectrum, 2j * np.pi), 2 * g(LINE))
    oracle.close(d.compile()(0.3, g), 2 * g(0.3))


@pytest.mark.parametrize(
    ("integrand", "expected"),
    [
        ("abs2(sum(r::R, exp(-im * ω * r) * g(r)))", "2 * pi * sum(r::R, abs2(g(r)))"),
        ("3 * abs2(sum(r::R, exp(-2 * pi * im * ω * r) * g(r) * r))", "3 * sum(r::R, r^2 * abs2(g(r)))"),
        (
            "sum(r::R, exp(-im * ω * r) * g(r)) * sum(r::R, exp(-im * ω * r) * h(r))'",
            "2 * pi * sum(r::R, g(r) * h(r)')",
        ),
    ],
)
def test_the_power_of_a_spectrum_is_plancherel(integrand, expected):
    d = simplified(f"(g::CF, h::CF) -> sum(ω::R, {integrand})")
    assert str(d).split(" -> ", 1)[1] == expected


@pytest.mark.parametrize(
    "integrand",
    [
        "ω^2 * abs2(sum(r::R, exp(-im * ω * r) * g(r)))",
        "abs2(sum(r::R, exp(-im * ω * r) * g(r)) - h(ω))",
        "abs2(sum(r::R, exp(-ω^2 * r^2) * g(r)))",
        "real(h(ω) * sum(r::R, exp(-im * ω * r) * g(r)))",
    ],
)
def test_other_powers_stay(integrand):
    d = simplified(f"(g::CF, h::CF) -> sum(ω::R, {integrand})")
    assert str(d).count("exp(") == 1 and str(d).count("g(") == 1


@pytest.mark.parametrize("scale", ["1", "3", "-3/2", "2 * pi", "pi^2 / 4"])
def test_the_measure_is_that_of_the_phase(scale):
    d = simplified(f"(g::CF) -> (u::R) -> sum((r::R, w::R), exp(im * ({scale}) * r * (w - u)) * g(w))")
    front = {"1": "2 * pi", "3": "2/3 * pi", "-3/2": "4/3 * pi", "2 * pi": "1", "pi^2 / 4": "8 / pi"}[scale]
    value = eval(front, {"pi": np.pi})
    found = d.compile()(0.4, g)
    number = eval(scale.replace("^", "**"), {"pi": np.pi})
    inner = transform(g(LINE), 1j * number)
    oracle.close(found, value * g(0.4))
    oracle.close(transform(inner, -1j * number, np.array([0.4]))[0], value * g(0.4), 1e-6)


@pytest.mark.parametrize(
    "text",
    [
        # the phase is no phase, its slope is given, r stands elsewhere, or an integral ends
        "(g::CF) -> (u::R) -> sum((r::R, w::R), exp(r * (w - u)) * g(w))",
        "(g::CF, a::R) -> (u::R) -> sum((r::R, w::R), exp(im * a * r * (w - u)) * g(w))",
        "(g::CF, a::C) -> (u::R) -> sum((r::R, w::R), exp(im * r * (w - a)) * g(w))",
        "(g::CF) -> (u::R) -> sum((r::R, w::R), exp(im * r * (w - u)) * g(w) / (1 + r^2))",
        "(g::CF) -> (u::R) -> sum((r::R, w::R), exp(im * r * w^2) * g(w))",
        "@domain L begin base = R; lower = 0; upper = 1 end\n"
        "(g::CF) -> (u::R) -> sum((r::L, w::R), exp(im * r * (w - u)) * g(w))",
    ],
)
def test_other_integrals_stay(text):
    assert str(simplified(text)).count("sum(") == 1 and "exp(" in str(simplified(text))


def test_the_step_tells_that_integrals_met_in_a_phase():
    step = next(step for step in simplified(COMPOSED).steps if step.name == "contract")
    assert "fourier" in step.heading
    assert any("meet in a phase" in line for line in step.words)
    assert "not checked on numbers" in step.note


# --- finite transforms ----------------------------------------------------------------------------------------------

RING = "@domain Z begin base = I; periodic = true end\n"
FINITE = """F = (f::(Z) -> C) -> (n::Z) -> sum(k::Z, exp(-2 * pi * im * k * n / size(Z)) * f(k))
G = (f::(Z) -> C) -> (n::Z) -> sum(k::Z, exp(2 * pi * im * k * n / size(Z)) * f(k)) / size(Z)"""


def on_a_ring(unknowns, body):
    return f"{RING}{unknowns} -> begin\n{FINITE}\n{body}\nend"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("G(F(f))", "f(n)"),
        ("F(G(f))", "f(n)"),
        ("F(F(f))", "size(Z) * f(-n)"),
        ("G((k::Z) -> F(f)(k) * F(g)(k))", "sum(k::Z, g(n - k) * f(k))"),
    ],
)
def test_finite_transforms_undo_one_another(body, expected):
    d = simplified(on_a_ring("(f::(Z) -> C, g::(Z) -> C)", body))
    assert str(d).endswith(f"-> (n::Z) -> {expected}")
    assert all("not checked" not in step.note for step in d.steps)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_finite_transforms_as_numbers(seed, n):
    rng = np.random.default_rng(seed)
    f, g = rng.normal(size=(2, n)) + 1j * rng.normal(size=(2, n))
    convolved = simplified(on_a_ring("(f::(Z) -> C, g::(Z) -> C)", "G((k::Z) -> F(f)(k) * F(g)(k))"))
    oracle.close(convolved.compile()(f, g), np.fft.ifft(np.fft.fft(f) * np.fft.fft(g)))
    turned = simplified(on_a_ring("(f::(Z) -> C)", "F(F(f))"))
    oracle.close(turned.compile()(f), np.fft.fft(np.fft.fft(f)))


@pytest.mark.parametrize("kind", ["CV", "RV"])
def test_the_power_of_a_finite_spectrum_is_plancherel(kind):
    text = f"(f::{kind}{{n}}) -> sum(k::N{{n}}, abs2(sum(m::N{{n}}, exp(-2 * pi * im * k * m / n) * f(m))))"
    d = gradient(text)
    assert str(d) == f"(f::{kind}{{n}}) -> m -> 2 * n * f(m)"
    assert d.check()
    f = np.random.default_rng(1).normal(size=5)
    oracle.close(simplified(text).compile()(f), np.sum(np.abs(np.fft.fft(f)) ** 2))
    assert "exp(" not in str(simplified(text))


@pytest.mark.parametrize(
    "phase",
    [
        # of another size, of half a turn, twice, of a sum that wraps round no ring, below a condition
        "sum(k::N{m}, w(k)^0 * exp(2 * pi * im * k * (i - j) / n))",
        "sum(k::N{n}, exp(pi * im * k * (i - j) / n))",
        "sum(k::N{n}, exp(4 * pi * im * k * (i - j) / n))",
        "sum(k::N{n}, exp(2 * pi * im * k * (i + j) / n))",
        "sum(k::N{n}, k < i, exp(2 * pi * im * k * (i - j) / n))",
        "sum(k::N{n}, k * exp(2 * pi * im * k * (i - j) / n))",
    ],
)
def test_other_sums_of_phases_stay(phase):
    d = simplified(f"(f::CV{{n}}, w::RV{{m}}) -> (i::N{{n}}) -> sum(j::N{{n}}, f(j) * {phase})")
    assert "exp(" in str(d)
