"""Integrals over intervals: what they mean, how they are printed, and the code that computes them by a rule."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.integrate import quad
from scipy.optimize import minimize

import combdiff as cd
from combdiff.gate.gate import Gate
from combdiff.terms.terms import ONE, Sum, fresh, number, power, total
from combdiff.terms.types import Interval, Number
from tests.emit.array_libraries import Numbers, library
from tests.promises import assert_libraries_agree

__all__ = ["library"]

LINE = "@domain Line begin base = R; lower = 0; upper = 1 end\n"
ALL = "@domain All begin base = R end\n"
HALF = "@domain Half begin base = R; lower = 1 end\n"
LEFT = "@domain Left begin base = R; upper = 0 end\n"

PROGRAMS = {
    "of a number": LINE + "(a::R) -> sum(x::Line, x * exp(-a * x^2))",
    "of coefficients": LINE + "(f::RF) -> (c::RV) -> sum(x::Line, (sum(k, c(k) * x^k) - f(x))^2)",
    "of complex coefficients": LINE + "(c::CV) -> abs2(sum(x::Line, sum(k, c(k) * exp(im * k * x))))",
    "on the whole line": ALL + "(a::R) -> sum(x::All, exp(-a^2 * x^2 - x^2))",
    "on a half line": HALF + "(a::R) -> sum(x::Half, exp(-x * (1 + a^2)))",
    "on the other half": LEFT + "(a::R) -> sum(x::Left, exp(x * (1 + a^2)))",
    "a double integral": LINE + "(a::R, b::R) -> sum((x::Line, y::Line), exp(a * x * y + b))",
    "inside of a function": LINE + "(a::RV) -> log(sum(x::Line, exp(sum(k, a(k) * x^(k + 1)))))",
    "in a sum over an index": LINE + "(a::RV) -> sum(i, sum(x::Line, cos(a(i) * x))^2)",
    "a slope of a function of two places": LINE
    + "(k::RO) -> (a::R) -> sum(x::Line, grad((r::R) -> k(x, r) * a * r)(x))",
    "a slope of a polynomial": LINE + "(c::RV) -> sum(x::Line, grad((r::R) -> sum(n, c(n) * r^n) * r)(x))",
    "a definition": LINE + "(a::R) -> begin Z = sum(x::Line, exp(a * x)); Z^2 + 1 / Z end",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_integrals_pass_their_check(name: str) -> None:
    d = cd.grad(PROGRAMS[name])
    report = d.check()
    assert report, str(report)
    assert "emitted NumPy code" in [finding.what for finding in report.findings]
    assert str(cd.simplified(str(d))) == str(d)


def test_code_agrees_with_adaptive_quadrature() -> None:
    f = cd.grad(PROGRAMS["of a number"]).compile(value=True)
    for a in (0.3, 2.0):
        value, slope = f(a=a, Line=cd.quadrature.gauss(20))
        assert value == pytest.approx(quad(lambda x, a=a: x * np.exp(-a * x * x), 0, 1)[0], rel=1e-13)
        assert slope == pytest.approx(quad(lambda x, a=a: -(x**3) * np.exp(-a * x * x), 0, 1)[0], rel=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_hessian_products_of_integrals(n: int) -> None:
    c, v = np.random.default_rng(n).standard_normal((2, n))
    f = cd.grad(PROGRAMS["of coefficients"]).compile(hvp=True)
    _, product = f(Line=cd.quadrature.gauss(12), c=c, f=np.sin)
    hilbert = 1 / (np.arange(n)[:, None] + np.arange(n) + 1)
    np.testing.assert_allclose(product(v), 2 * hilbert @ v, rtol=1e-12)


@pytest.mark.sampled
def test_libraries_agree_on_integrals(library: Numbers) -> None:
    d = cd.grad(PROGRAMS["inside of a function"])
    rule = cd.quadrature.points(*np.polynomial.legendre.leggauss(8)) * 0.5 + np.array([[0.5], [0.0]])
    assert_libraries_agree(d, library.name, [rule, np.array([0.3, -0.2, 0.7])])


IMAGES = {
    "at half the place": ("x / 2", lambda x: x / 2),
    "at twice the place": ("2 * x", lambda x: 2 * x),
    "shifted": ("x + 1/3", lambda x: x + 1 / 3),
    "mirrored": ("1 - x", lambda x: 1 - x),
}


@pytest.mark.parametrize("name", IMAGES)
def test_a_function_of_another_place_has_its_derivative_on_the_image(name: str) -> None:
    """∫ f(x) y(g(x)) dx: the derivative is f(g⁻¹(t)) / |g′| where g⁻¹(t) lies in the interval, and 0 beyond."""
    text, place = IMAGES[name]
    d = cd.grad(f"{LINE}(f::RF) -> (y::RF) -> sum(x::Line, f(x) * y({text})^2)")
    y, v = Polynomial([1, 0.5, -0.3]), Polynomial([0.2, 1, -0.5, 0.7])
    low, high = sorted((place(0.0), place(1.0)))
    f = d.compile()

    def found(t: float) -> float:
        return float(np.ravel(f(np.array(t), f=np.cos, y=y))[0]) if d.term.body else 0.0

    expected = quad(lambda x: 2 * np.cos(x) * y(place(x)) * v(place(x)), 0, 1)[0]
    assert quad(lambda t: found(t) * v(t), low, high)[0] == pytest.approx(expected, rel=1e-9)
    assert found(low - 0.1) == found(high + 0.1) == 0


def test_a_bound_of_many_digits_reads_back() -> None:
    d = cd.grad(
        "@domain D begin base = R; lower = 0.1234567890123456789012345678901234567891 end\n(a::R) -> sum(x::D, a * x)"
    )
    assert str(cd.simplified(str(d))) == str(d)
    assert "lower = 0.1234567890123456789012345678901234567891 end" in str(d)


KERNEL = "(k::RO, f::RF) -> (y::(Line) -> R) -> "
OVER_THE_LINE = {
    "a kernel times the value": KERNEL + "sum(x::Line, f(y(x) * sum(s::Line, k(x, s) * y(s))))",
    "a kernel times the slope": KERNEL + "sum(x::Line, f(grad(y)(x) * sum(s::Line, k(x, s) * grad(y)(s))))",
    "a slope in a double integral": KERNEL + "sum((x::Line, s::Line), grad((s::R) -> k(s, x) * y(s))(s)^2)",
    "a peak beside other terms": "(f::RF) -> sum(x::Line, f(x) * (f(x) + delta(x, 1/4, 1)))",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OVER_THE_LINE)
def test_an_integral_that_has_met_its_peaks_is_over_the_interval_again(name: str) -> None:
    derive = cd.grad if "->" in OVER_THE_LINE[name].partition("->")[2] else cd.simplified
    d = derive(LINE + OVER_THE_LINE[name])
    assert "::R," not in str(d).splitlines()[-1] and "where" not in str(d)
    assert "Line" in str(d.compile().source)


def test_integrals_print_their_bounds() -> None:
    assert cd.grad(PROGRAMS["of a number"]).latex().endswith(r"-\int_{0}^{1} x^{3} \exp(-a\, x^{2})\, \mathrm{d}x")
    assert r"\int_{1}^{\infty}" in cd.grad(PROGRAMS["on a half line"]).latex()
    assert r"\int_{-\infty}^{0}" in cd.grad(PROGRAMS["on the other half"]).latex()
    assert str(cd.grad(PROGRAMS["on a half line"])).startswith("@domain Half begin base = R; lower = 1 end\n")


# --- rules ----------------------------------------------------------------------------------------------------------

BOUNDED = ["gauss", "chebyshev", "tanh_sinh"]


@pytest.mark.parametrize("name", BOUNDED)
def test_rules_are_exact_to_their_order(name: str) -> None:
    rule = getattr(cd.quadrature, name)(41)
    for a in (0.0, 0.7, -3.0):
        f = cd.simplified(LINE + "(a::R) -> sum(x::Line, exp(a * x))").compile()
        exact = np.expm1(a) / a if a else 1.0
        assert f(Line=rule, a=a) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_gauss_integrates_polynomials_of_twice_its_degree(n: int) -> None:
    f = cd.simplified(LINE + "(c::RV) -> sum(x::Line, sum(k, c(k) * x^k))").compile()
    for k in range(2 * n):
        assert f(Line=cd.quadrature.gauss(n), c=np.eye(2 * n)[k]) == pytest.approx(1 / (k + 1), rel=1e-12)
    for k in range(n):
        assert f(Line=cd.quadrature.chebyshev(n), c=np.eye(n)[k]) == pytest.approx(1 / (k + 1), rel=1e-12)


def test_the_trapezoidal_rule_is_exact_for_lines() -> None:
    f = cd.simplified(LINE + "(a::R, b::R) -> sum(x::Line, a + b * x)").compile()
    for n in (1, 2, 3, 7):
        assert f(Line=cd.quadrature.trapezoid(n), a=2.0, b=3.0) == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("domain", "rule"), [(ALL, "hermite"), (ALL, "tanh_sinh"), (HALF, "laguerre"), (HALF, "tanh_sinh")]
)
def test_rules_of_infinite_intervals(domain: str, rule: str) -> None:
    name = "All" if domain is ALL else "Half"
    f = cd.simplified(domain + f"(a::R) -> sum(x::{name}, exp(-a * x^2 - x))").compile()
    lower = -np.inf if domain is ALL else 1.0
    expected = quad(lambda x: np.exp(-0.9 * x * x - x), lower, np.inf)[0]
    assert f(**{name: getattr(cd.quadrature, rule)(70)}, a=0.9) == pytest.approx(expected, rel=1e-6)


WRONG_RULES = {
    "of another kind of interval": (cd.quadrature.hermite(4), "not for Line, which runs from 0 to 1", "gauss"),
    "with nodes outside": ((np.linspace(0, 2, 5), np.ones(5)), "nodes from 0 to 2", "lie in the interval"),
    "of two lengths": ((np.ones(3), np.ones(4)), "nodes of the shape", "one length"),
    "one row": (np.ones(3), "the array has 1 axis", ""),
}


@pytest.mark.parametrize("name", WRONG_RULES)
def test_a_wrong_rule_is_refused_in_words(name: str) -> None:
    rule, message, remedy = WRONG_RULES[name]
    f = cd.grad(PROGRAMS["of a number"]).compile()
    with pytest.raises(cd.ArrayError, match=message) as refusal:
        f(a=1.0, Line=rule)
    assert remedy in (refusal.value.remedy or "")


@pytest.mark.parametrize("by_name", [True, False])
def test_the_nodes_of_every_call_lie_in_the_interval(by_name: bool) -> None:
    f = cd.grad(PROGRAMS["of a number"]).compile()
    inside, outside = (np.stack([np.linspace(0, end, 5), np.ones(5)]) for end in (1, 2))
    for _ in range(2):
        f(a=1.0, Line=inside) if by_name else f(inside, 1.0)
        with pytest.raises(cd.ArrayError, match="nodes from 0 to 2"):
            f(a=1.0, Line=outside) if by_name else f(outside, 1.0)


def test_a_rule_is_placed_once() -> None:
    interval = Interval("Line", Fraction(0), Fraction(1))
    first, again = (cd.quadrature.gauss(7).on(interval) for _ in range(2))
    assert first is again and not first.flags.writeable


@pytest.mark.slow
def test_a_minimisation_takes_a_rule() -> None:
    d = cd.grad(LINE + "(c::RV{n}) -> sum(x::Line, (sum(k, c(k) * x^k) - exp(x))^2)")
    problem = d.problem(Line=cd.quadrature.gauss(20), c=np.zeros(4))
    slopes = {"jac": problem.jac, "hessp": problem.hessp}
    found = minimize(problem.fun, problem.x0, method="trust-ncg", options={"gtol": 1e-11}, **slopes)
    gram = 1 / (np.arange(4)[:, None] + np.arange(4) + 1)
    moments = [quad(lambda x, k=k: x**k * np.exp(x), 0, 1)[0] for k in range(4)]
    np.testing.assert_allclose(found.x, np.linalg.solve(gram, moments), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hermite", "laguerre"])
def test_weights_beyond_double_precision_are_refused(name: str) -> None:
    interval = Interval("All") if name == "hermite" else Interval("Half", Fraction(0))
    assert np.isfinite(getattr(cd.quadrature, name)(100).on(interval)).all()
    with pytest.raises(cd.ArrayError, match="beyond double precision"):
        getattr(cd.quadrature, name)(1000).on(interval)


def test_bounds_are_written_as_numbers_are() -> None:
    for text, bound in ((".5", "0.5"), ("5e-1", "0.5"), ("5E-1", "0.5"), ("-2", "-2")):
        assert f"lower = {bound}; upper = 3 end" in str(
            cd.grad(f"@domain D begin base = R; lower = {text}; upper = 3 end\n(a::R) -> sum(x::D, a * x)")
        )


def test_a_rule_has_at_least_one_node() -> None:
    with pytest.raises(cd.ArrayError, match="whole number of nodes"):
        cd.quadrature.gauss(0)


@pytest.mark.parametrize(
    "unknowns", ["(y::RF, z::RF) -> sum(x::Line, y(x) * z(x))", "(y::RF, a::R) -> sum(x::Line, a * y(x))"]
)
def test_functions_of_the_real_line_in_a_tuple_have_no_code(unknowns: str) -> None:
    with pytest.raises(cd.UnsupportedError, match="one of its items is a function of real numbers") as refusal:
        cd.grad(LINE + unknowns).compile()
    assert "wrt" in (refusal.value.remedy or "")
    alone = cd.grad(LINE + unknowns, wrt="y").compile()
    assert alone(x=0.5, **({"z": np.cos} if "z" in unknowns else {"a": 2.0}))


def test_a_missing_rule_is_named_with_what_it_takes() -> None:
    with pytest.raises(cd.ArrayError, match="not given Line") as refusal:
        cd.grad(PROGRAMS["of a number"]).compile()(a=1.0)
    assert "quadrature" in (refusal.value.remedy or "")


WRONG_DOMAINS = {
    "bounds that are exchanged": ("base = R; lower = 1; upper = 0", "runs from 1 to 0"),
    "a period": ("base = R; periodic = true", "holds real numbers, and is set periodic"),
    "an infinite bound on the wrong side": ("base = R; lower = inf", "has the bound lower = inf"),
    "a word": ("base = R; upper = high", "no real parameter"),
    "a bound beyond all numbers": ("base = R; upper = 1e999999999", "has the bound upper = 1e999999999"),
    "a bound of too many digits": ("base = R; upper = " + "9" * 5000, "has the bound upper = 9999"),
    "a fraction of integers": ("lower = 0.5; upper = 4", "has the bound lower = 0.5"),
}


@pytest.mark.parametrize("name", WRONG_DOMAINS)
def test_a_wrong_interval_is_refused_where_it_stands(name: str) -> None:
    settings, message = WRONG_DOMAINS[name]
    with pytest.raises(cd.LanguageError, match=message) as refusal:
        cd.grad(f"@domain D begin {settings} end\n(a::R) -> sum(x::D, a * x)")
    assert refusal.value.span is not None and refusal.value.remedy


# --- functions that are given ---------------------------------------------------------------------------------------


def length(**given: Any) -> Any:
    return cd.grad(LINE + "(y::(Line) -> R) -> sum(x::Line, sqrt(1 + grad(y)(x)^2))").compile()(**given)


@pytest.mark.slow
def test_a_polynomial_and_a_tuple_of_functions_bring_their_derivatives() -> None:
    y, rule = Polynomial([1, 2, 3]), cd.quadrature.gauss(6)
    expected = length(Line=rule, grad_y=y.deriv(), grad_grad_y=y.deriv(2))
    for given in (y, (y, y.deriv(), y.deriv(2)), y.convert(kind=np.polynomial.Chebyshev)):
        for a, b in zip(length(Line=rule, y=given), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_too_few_derivatives_are_counted() -> None:
    with pytest.raises(cd.ArrayError, match="given with 1 derivatives, and the code needs 2"):
        length(Line=cd.quadrature.gauss(3), y=(np.sin, np.cos))


def test_a_condition_on_the_place_has_no_code_and_no_check() -> None:
    d = cd.grad(LINE + "(a::R) -> sum(x::Line, where(x < a, x^2))")
    assert str(d).splitlines()[-1] == "(a::R) -> where(0 <= a <= 1, a^2)"
    assert d.compile()(a=0.5) == 0.25
    with pytest.raises(cd.UnsupportedError, match="does not see the jump"):
        d.compile(value=True)
    with pytest.raises(cd.UnsupportedError, match="an integrand jumps"):
        d.check()


def test_gradients_of_kinks_are_those_of_the_sum_over_nodes() -> None:
    f = cd.grad(LINE + "(a::R) -> sum(x::Line, abs(x - a))").compile(value=True)
    rule = cd.quadrature.trapezoid(2001)
    value, slope = f(a=0.3, Line=rule)
    assert value == pytest.approx(0.29, abs=1e-6) and slope == pytest.approx(-0.4, abs=1e-3)


@pytest.mark.parametrize("ends", ["lower = 0; upper = 2", "lower = a; upper = b"])
@pytest.mark.parametrize("integral", ["sum(t::T, 10)", "sum((t::T, s::T), 3)", "sum(t::T, sum(s::T, 2) * t^0)"])
def test_the_integral_of_a_number_is_one_times_the_length_in_every_stage(ends: str, integral: str) -> None:
    """Stages are compared by random rules, whose weights add up to the length."""
    line = f"@domain T begin base = R; {ends} end\n"
    for z, value in (("z::R", "z"), ("z::(T) -> R", "sum(t::T, z(t))")):
        d = cd.grad(line + f"(a::R, b::R, g::RF) -> ({z}) -> 1 / (1 + ({integral} - g({value}))^2)")
        assert "T, 10" not in str(d)


def test_a_random_rule_tells_a_length_from_another_number() -> None:
    x = fresh("x", Number(False, Interval("T", Fraction(0), Fraction(2))))
    assert Gate().agree(Sum((x,), ONE), number(2))
    assert not Gate().agree(Sum((x,), ONE), number(3))
    assert Gate().agree(total([x], power(x, number(3))), Sum((x,), power(x, number(3))))
    assert not Gate().agree(total([x], x), number(2))
