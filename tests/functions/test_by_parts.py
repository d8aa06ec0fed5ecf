"""Derivatives with respect to functions under d/dx, held against difference quotients along polynomials."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import combdiff as cd
from combdiff.terms.types import Interval

LINE = "@domain Line begin base = R; lower = -1; upper = 2 end\n"
CLAMPED = "@space V begin type = (Line) -> R; fixed = true end\n"
PINNED = "@space P begin type = (Line) -> R; fixed = (0,) end\n"
RULE = cd.quadrature.gauss(40)
Y = Polynomial([1.1, 0.3, -0.2, 0.05, 0.1])
V = Polynomial([0.4, -0.7, 0.3, 0.2])
BUMP = Polynomial.fromroots([-1, -1, 2, 2]) * Polynomial([0.5, 0.2])

FUNCTIONALS = {
    "of the slope": "sum(x::Line, grad(y)(x)^2)",
    "an action": "sum(x::Line, grad(y)(x)^2 / 2 - cos(y(x)))",
    "a length": "sum(x::Line, sqrt(1 + grad(y)(x)^2))",
    "a surface of revolution": "sum(x::Line, (2 + y(x)) * sqrt(1 + grad(y)(x)^2))",
    "that names the place": "sum(x::Line, exp(x) * grad(y)(x) * y(x)^2)",
    "a plate": "sum(x::Line, grad(grad(y))(x)^2 / 2 - x^2 * y(x))",
    "of three derivatives": "sum(x::Line, grad(y)(x) * grad(grad(y))(x)^2 + grad(grad(grad(y)))(x)^2 / 7)",
    "with a value at an end": "y(2)^3 + sum(x::Line, grad(y)(x)^2)",
    "with a slope at an end": "sin(grad(y)(-1)) + sum(x::Line, y(x)^2)",
    "values at both ends and no slope": "y(2) * y(-1) + sum(x::Line, y(x)^2)",
    "a product of integrals": "sum(x::Line, grad(y)(x)^2) * sum(x::Line, y(x)^2)",
    "a derivative of a product": "sum(x::Line, grad((s::R) -> y(s)^2 * s)(x)^2)",
    "a double integral": "sum((x::Line, z::Line), grad(y)(x) * exp(-(x - z)^2) * y(z))",
}


def slope(functional: Any, y: Polynomial, v: Polynomial, name: str = "y") -> float:
    """dF(y + ε v)/dε by differences of the fourth order."""
    e = 1e-3
    values = [functional(Line=RULE, **{name: y + k * e * v}) for k in (-2, -1, 1, 2)]
    return float((values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * e))


def along(found: Any, v: Polynomial, fixed: tuple[int, ...] = ()) -> float:
    """What a derivative says of the variation v: under the integral, and at the ends, half of the items each."""
    nodes, weights = RULE.on(Interval("Line", Fraction(-1), Fraction(2)))
    bulk, *ends = found if isinstance(found, tuple) else (found,)
    total = float(np.sum(weights * bulk * v(nodes)))
    free = [n for n in range(9) if n not in fixed]
    for place, own in ((-1.0, ends[: len(ends) // 2]), (2.0, ends[len(ends) // 2 :])):
        for n, coefficient in zip(free, own, strict=False):
            total += float(coefficient) * float(v.deriv(n)(place) if n else v(place))
    return total


@pytest.mark.sampled
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_the_derivative_by_a_free_function_has_ends(name: str) -> None:
    d = cd.grad(f"{LINE}(y::(Line) -> R) -> {FUNCTIONALS[name]}")
    value = cd.simplified(f"{LINE}(y::(Line) -> R) -> {FUNCTIONALS[name]}").compile()
    found = along(d.compile()(Line=RULE, y=Y), V)
    assert found == pytest.approx(slope(value, Y, V), rel=1e-8, abs=1e-9)


@pytest.mark.sampled
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_where_the_ends_are_clamped_only_the_integral_is_left(name: str) -> None:
    d = cd.grad(f"{LINE}{CLAMPED}(y::V) -> {FUNCTIONALS[name]}")
    value = cd.simplified(f"{LINE}(y::(Line) -> R) -> {FUNCTIONALS[name]}").compile()
    found = d.compile()(Line=RULE, y=Y)
    assert not isinstance(found, tuple)
    if "three" not in name:
        assert along(found, BUMP) == pytest.approx(slope(value, Y, BUMP), rel=1e-8, abs=1e-9)


def test_where_values_are_pinned_the_slopes_stay_free() -> None:
    d = cd.grad(f"{LINE}{PINNED}(y::P) -> {FUNCTIONALS['a plate']}")
    value = cd.simplified(f"{LINE}(y::(Line) -> R) -> {FUNCTIONALS['a plate']}").compile()
    pinned = Polynomial.fromroots([-1, 2]) * V
    found = d.compile()(Line=RULE, y=Y)
    assert len(found) == 3
    assert along(found, pinned, fixed=(0,)) == pytest.approx(slope(value, Y, pinned), rel=1e-8)


@pytest.mark.sampled
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_tangents_and_gradients_agree(name: str) -> None:
    text = f"{LINE}(y::(Line) -> R) -> {FUNCTIONALS[name]}"
    value = cd.simplified(text).compile()
    assert cd.jvp(text).compile()(Line=RULE, y=Y, k=V) == pytest.approx(slope(value, Y, V), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("name", ["k", "v", "y1"])
def test_a_tangent_has_a_name_that_no_parameter_has(name: str) -> None:
    text = f"{LINE}({name}::RF) -> (y::(Line) -> R) -> sum(x::Line, {name}(x)) + sum(x::Line, grad(y)(x)^2)"
    for d in (cd.jvp(text), cd.hvp(text)):
        names = [p.name for p in (*d.term.params, *d.term.body.params)]  # type: ignore[attr-defined]  # two maps
        assert len(set(names)) == len(names) == 3
        assert d.compile()


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["of the slope", "an action", "a length", "a plate", "with a value at an end"])
def test_the_hessian_product_is_the_slope_of_the_gradient(name: str) -> None:
    text = f"{LINE}(y::(Line) -> R) -> {FUNCTIONALS[name]}"
    f, products = cd.grad(text).compile(), cd.hvp(text).compile()
    found = products(Line=RULE, y=Y, k=V)
    e = 1e-4
    ahead, behind = (f(Line=RULE, y=Y + sign * e * V) for sign in (1, -1))
    for a, b, product in zip(ahead, behind, found, strict=True):
        np.testing.assert_allclose(product, (a - b) / (2 * e), rtol=1e-5, atol=1e-6)


WRITTEN_OUT = {
    "of a square": "sum(x::Line, x * grad((r::Line) -> y(r)^2)(x))",
    "of a definition": "begin\n u = (r::R) -> sin(y(r))\n sum(x::Line, grad(u)(x)^2)^2 end",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_the_hessian_product_of_a_derivative_that_is_still_to_be_taken(name: str) -> None:
    text = f"{LINE}(y::(Line) -> R) -> {WRITTEN_OUT[name]}"
    f = cd.grad(text).compile()
    e = 1e-4
    found = cd.hvp(text).compile()(Line=RULE, y=Y, k=V)
    ahead, behind = (f(Line=RULE, y=Y + sign * e * V) for sign in (1, -1))
    for a, b, product in zip(ahead, behind, found, strict=True):
        np.testing.assert_allclose(product, (np.asarray(a) - b) / (2 * e) + 0 * product, rtol=1e-5, atol=1e-6)


def test_a_tangent_is_of_the_space_of_its_function() -> None:
    d = cd.hvp(f"{LINE}{CLAMPED}(y::V) -> sum(x::Line, y(x)^4)")
    assert (
        str(d)
        == f"""{LINE}@space V begin
  type = (Line) -> R
  fixed = true
end
(y::V, k::V) -> (x::Line) -> 12 * y(x)^2 * k(x)"""
    )


SEVERAL = {
    "two functions": "(y::(Line) -> R, z::(Line) -> R) -> sum(x::Line, grad(y)(x) * grad(z)(x) * y(x))",
    "a function and a number": "(y::(Line) -> R, a::R) -> sum(x::Line, grad(y)(x)^2 * exp(a * x))",
}


@pytest.mark.slow
def test_two_functions_each_have_their_derivative() -> None:
    text = LINE + SEVERAL["two functions"]
    value = cd.simplified(text).compile()
    found = cd.grad(text).compile()(Line=RULE, y=Y, z=V)
    dy, dz = found[:3], found[3:]
    W = Polynomial([0.2, 0.1, -0.4])
    assert along(dy, W) == pytest.approx(slope(lambda **k: value(z=V, **k), Y, W), rel=1e-8)
    assert along(dz, W) == pytest.approx(slope(lambda **k: value(y=Y, **k), V, W, "z"), rel=1e-8)


@pytest.mark.slow
def test_a_number_beside_a_function() -> None:
    text = LINE + SEVERAL["a function and a number"]
    value = cd.simplified(text).compile()
    *dy, da = cd.grad(text).compile()(Line=RULE, y=Y, a=0.3)
    assert along(tuple(dy), V) == pytest.approx(slope(lambda **k: value(a=0.3, **k), Y, V), rel=1e-8)
    ahead, behind = (value(Line=RULE, y=Y, a=0.3 + e) for e in (1e-5, -1e-5))
    assert da == pytest.approx((ahead - behind) / 2e-5, rel=1e-8)


PRINTED = {
    "(V::RF, m::R) -> (r::V) -> sum(t::Line, m * grad(r)(t)^2 / 2 - V(r(t)))": (
        "(V::RF, m::R) -> (r::V) -> (t::Line) -> -grad(V)(r(t)) - m * grad(grad(r))(t)"
    ),
    "(y::V) -> sum(x::Line, grad(grad(y))(x)^2 / 2)": "(y::V) -> (x::Line) -> grad(grad(grad(grad(y))))(x)",
    "(V::RF) -> (psi::V) -> sum(x::Line, grad(psi)(x)^2 + V(x) * psi(x)^2)": (
        "(V::RF) -> (psi::V) -> (x::Line) -> 2 * V(x) * psi(x) - 2 * grad(grad(psi))(x)"
    ),
}


@pytest.mark.parametrize("program", PRINTED)
def test_equations_of_euler_and_lagrange_print_as_in_a_textbook(program: str) -> None:
    d = cd.grad(LINE + CLAMPED + program)
    assert str(d).splitlines()[-1] == PRINTED[program]
    assert str(cd.simplified(str(d))) == str(d)


def test_derivatives_of_functions_of_one_number_have_primes() -> None:
    d = cd.grad(LINE + CLAMPED + "(y::V) -> sum(x::Line, grad(grad(y))(x)^2 / 2 - grad(y)(x)^2)")
    assert d.latex() == r"y \mapsto x \mapsto 2 y''(x) + y^{(4)}(x)"


def test_a_given_value_at_an_end_that_is_written_as_a_difference_does_not_vary() -> None:
    domain = "@domain Line begin base = R; lower = -1; upper = 0.5 end\n"
    fixed = "@space V begin type = (Line) -> R; fixed = (0,) end\n"
    assert str(cd.grad(f"{domain}{fixed}(y::V) -> y(0 - 1)")).endswith("(y::V) -> (d::Line) -> 0")


REFUSED = {
    "of two variables": ("(u::RO) -> sum((x::R, y::R), grad(u, 1)(x, y)^2)", "one real number"),
    "a second derivative with a jump": (
        LINE + "(y::(Line) -> R) -> sum(x::Line, grad(grad(y))(x / 2)^2)",
        "continuous",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_by_parts_is_refused_with_a_remedy(name: str) -> None:
    program, remedy = REFUSED[name]
    with pytest.raises(cd.UnsupportedError) as refusal:
        cd.grad(program)
    assert remedy in (refusal.value.remedy or "")


def test_a_slope_inside_the_interval_is_refused_in_words() -> None:
    with pytest.raises(cd.UnsupportedError, match="variation is δ′"):
        cd.grad(LINE + "(y::(Line) -> R) -> grad(y)(1/2)^2")


@pytest.mark.slow
def test_a_factor_that_jumps_inside_leaves_a_peak() -> None:
    """∫₀¹ y′(x/2)² dx is 2 ∫ y′² over half of the interval, whose upper end lies inside."""
    d = cd.grad(
        "@domain Line begin base = R; lower = 0; upper = 1 end\n" + CLAMPED + "(y::V) -> sum(x::Line, grad(y)(x / 2)^2)"
    )
    expected = "(y::V) -> (d::Line) -> delta(d, 1/2, 4 * grad(y)(d)) - 4 * where(2 * d <= 1, grad(grad(y))(d))"
    assert str(d).splitlines()[-1] == expected
    sign = cd.grad(LINE + CLAMPED + "(y::V) -> sum(x::Line, sign(x - 1/3) * grad(y)(x))")
    assert str(sign).splitlines()[-1] == "(y::V) -> (x::Line) -> delta(x, 1/3, -2)"


def test_a_mirrored_function_stays_inside() -> None:
    unit = "@domain Line begin base = R; lower = 0; upper = 1 end\n"
    d = cd.grad(unit + CLAMPED + "(y::V) -> sum(x::Line, y(1 - x)^2 + grad(y)(1 - x) * y(x))")
    assert str(d).splitlines()[-1] == "(y::V) -> (d::Line) -> 2 * y(d) + 2 * grad(y)(1 - d)"


def test_a_point_that_is_an_argument_is_a_number() -> None:
    d = cd.grad(LINE + CLAMPED + "(y::V) -> (x::Line) -> grad(y)(x)^2")
    found = d.compile()(x=0.4, y=Y)
    assert found == pytest.approx(2 * Y.deriv()(0.4) * Y.deriv(2)(0.4))


@pytest.mark.slow
def test_a_result_that_is_a_function_is_compared_as_a_whole_where_its_parts_differ() -> None:
    """Values at the ends have names, which stand in the place of what they name."""
    text = f"{LINE}(z::(Line) -> R) -> begin\n  E = sum(x::Line, sqrt(1 + (x - grad(z)(x))^2))\n  1 / (1 + E^2)\nend"
    f = cd.grad(text).compile()
    found = cd.hvp(text).compile()(Line=RULE, z=Y, k=V)
    ahead, behind = (f(Line=RULE, z=Y + sign * 1e-4 * V) for sign in (1, -1))
    for a, b, product in zip(ahead, behind, found, strict=True):
        np.testing.assert_allclose(product, (a - b) / 2e-4, rtol=1e-5, atol=1e-6)


SHIFTED = (
    "@domain Line begin base = R; lower = -1; upper = 0.5 end\n(f::RF) -> (y::(Line) -> R) -> "
    "sum(x::Line, f(y({place})))"
)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "slope", "offset"), [("x / 2 - 0.5", 0.5, -0.5), ("(x - 1) / 3", 1 / 3, -1 / 3)])
def test_the_second_variation_at_a_place_with_an_offset_has_no_integral_left(
    place: str, slope: float, offset: float
) -> None:
    """∫ f(y(a x + b)) dx: both variations are at one place, 1/a f″(y(t)) k(t) on the image of the line, 0 beyond."""
    program = SHIFTED.format(place=place)
    d = cd.hvp(program)
    assert "sum" not in str(d) and "delta" not in str(d)
    t = np.linspace(-0.95, 0.45, 9)
    found = d.compile()(f=np.sin, grad_grad_f=lambda x: -np.sin(x), grad_f=np.cos, y=np.exp, k=np.cos, Line=(t, 0 * t))
    x = (t - offset) / slope
    inside = (x >= -1) & (x <= 0.5)
    np.testing.assert_allclose(found, np.where(inside, -np.sin(np.exp(t)) * np.cos(t) / slope, 0), rtol=1e-12)
    assert "y(d)" in str(cd.grad(program))
