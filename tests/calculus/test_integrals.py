"""Derivatives of integrals whose integrands jump, or hold a δ, at places that move: against differences of quadrature.

`error` compares with numbers that know nothing of the calculus; `quadrature.py` says how these are found.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.derivation import Derivation
from combdiff.explanation import combinator_form, explanation
from combdiff.language.printing.printer import expression_text
from combdiff.meaning.sizes import default_sizes
from tests.promises import differences

from .integrals import below, error

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RING = "@domain P begin base = I; periodic = true end\n"
DERIVATIVE = "@space Der begin type = (RF) -> RF; linear = true end\n"
TIGHT = 1e-6


def formula(d: Derivation) -> str:
    """The result below its parameters, on one line."""
    return re.sub(r"\s+", " ", expression_text(below(d.term, d.objective.params)))


# --- the formulas ---------------------------------------------------------------------------------------------------

FORMULAS = {
    "(f::RF) -> (a::R) -> sum(x::R, delta(x, a, f(x)))": ("grad(f)(a)", "k * grad(grad(f))(a)"),
    "(f::RF) -> (a::R) -> sum(x::R, where(x <= a, f(x)))": ("f(a)", "k * grad(f)(a)"),
    "(f::RF) -> (a::R) -> sum(x::R, where(0 <= x - a, f(x)))": ("-f(a)", "-k * grad(f)(a)"),
    "(f::RF) -> (a::R) -> sum(x::R, angle(x - a) * f(x))": ("f(a) * pi", "k * grad(f)(a) * pi"),
    "(f::RF) -> (a::R) -> sum(x::R, atan2(0, a - x) * f(x))": ("-f(a) * pi", None),
    "(a::R) -> sum(x::R, delta(x, a, x^2))": ("2 * a", "2 * k"),
    "(f::RF) -> (a::R) -> sum(x::R, delta(2 * x, a, f(x)))": ("1/4 * grad(f)(1/2 * a)", None),
    "(f::RF, g::RF) -> (a::R) -> sum(x::R, delta(x, g(a), f(x)))": ("grad(g)(a) * grad(f)(g(a))", None),
    "(f::RF) -> (a::RV) -> sum((x::R, i), where(x <= a(i), f(x)))": ("i -> f(a(i))", "i -> k(i) * grad(f)(a(i))"),
    "(f::RF) -> (a::R) -> sum(x::R, where(a <= x, (x - a) * f(x)))": (
        "-sum(x::R, where(a <= x, f(x)))",
        "k * f(a)",
    ),
    "(f::RF) -> (a::R) -> sum(x::R, where(x <= a, f(x)) * where(2 * x <= 2 * a, f(x)))": (
        "f(a)^2",
        "2 * k * f(a) * grad(f)(a)",
    ),
    "(f::RF) -> (a::R) -> sum((x::R, y::R), delta(x, y + a, f(x) * f(y)))": (
        "-sum(x::R, f(x) * grad(f)(x - a))",
        "k * sum(x::R, f(x) * grad(grad(f))(x - a))",
    ),
    "(f::RF) -> (a::R) -> sum((x::R, y::R), delta(x, y, where(x <= a, 1) * where(y <= a, f(y))))": (
        "f(a)",
        "k * grad(f)(a)",
    ),
    "(f::RF, g::RF) -> (a::R) -> sum((x::R, y::R), delta(x, y + a, f(x)) * delta(y, a, g(y)))": (
        "2 * g(a) * grad(f)(2 * a) + f(2 * a) * grad(g)(a)",
        None,
    ),
    "(f::CF) -> (a::R) -> sum(x::R, delta(x, a, f(x)))": ("pullback(f)(a, 1)", None),
    "(a::R) -> sum(b::R, delta(b, 1, sum(c::R, delta(c, b, a * c))))": ("1", "0"),
    "(a::R) -> sum(b::R, delta(b, a^2, root((c::R) -> c - 3 * b)))": ("6 * a", "6 * k"),
    "(a::R) -> (f::RF) -> sum(x::R, delta(x, a, f(x)))": ("(x::R) -> delta(x, a, 1)", "(x::R) -> 0"),
    "(a::R) -> (f::RF) -> sum(x::R, where(x <= a, f(x)^2))": (
        "(x::R) -> 2 * where(x <= a, f(x))",
        "(x::R) -> 2 * where(x <= a, k(x))",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", FORMULAS)
def test_the_derivative_by_a_compared_number(text: str) -> None:
    gradient, product = FORMULAS[text]
    assert formula(cd.grad(text)) == gradient
    if product is not None:
        assert formula(cd.hvp(text)) == product


def test_the_second_derivative_of_a_distance_is_twice_the_density() -> None:
    d = cd.hvp("(f::RF) -> (a::R) -> sum(x::R, abs(x - a) * f(x))")
    assert formula(d) == "2 * k * f(a)"
    assert error(d) < TIGHT


# --- against quadrature ---------------------------------------------------------------------------------------------

PROGRAMS = {
    "a product of conditions": "(f::RF) -> (a::R, b::R) -> sum(x::R, where(a <= x, 1) * where(x <= b, 1) * f(x))",
    "a condition under another": """(f::RF) -> (a::R, b::R) ->
        sum(x::R, where(sin(a) <= x <= 1 + b^2, f(x)))""",
    "equal conditions": "(f::RF) -> (a::R) -> sum(x::R, f(x) * where(x <= a, 1)^3 * where(-a <= -x, f(x)))",
    "opposite conditions": "(f::RF) -> (a::R) -> sum(x::R, f(x) * where(x <= a, 2) * sign(x - a))",
    "a power of a sign": "(f::RF) -> (a::R) -> sum(x::R, f(x) * sign(x - a)^3 * (1 + sign(a - x))^2)",
    "a sign written out": "(f::RF) -> (a::R) -> sum(x::R, f(x) * (x - a) / abs(x - a))",
    "inside of a function": "(f::RF) -> (a::R) -> sum(x::R, exp(where(x <= a, f(x))) * f(x))",
    "continuous inside of a function": "(f::RF) -> (a::R) -> sum(x::R, f(x) * exp(-where(a <= x, x - a)))",
    "a slope": "(f::RF) -> (a::R, b::R) -> sum(x::R, where(a * x <= b, f(x)))",
    "a slope of a δ": "(f::RF) -> (a::R, b::R) -> sum(x::R, delta(a * x, b, f(x)))",
    "one place, written twice": """(f::RF) -> (a::R, b::R) ->
        sum(x::R, where(a * x - a * b + x - b <= 0, f(x)) * where(x <= b, 1) * sign(a * (x - b)))""",
    "one place by definition": """(f::RF) -> (a::R, b::R) -> begin
        c = a * b
        d = a * b
        sum(x::R, f(x) * where(x <= c, 1) * where(x <= d, 1))
    end""",
    "a definition in the integral": """(f::RF) -> (a::R) -> sum(x::R, begin
        g = where(x <= a, f(x))
        g * (g + f(x))
    end)""",
    "a map of one's own": """(f::RF) -> (a::R) -> begin
        g = (y::R, b::R) -> where(y <= b, f(y) * b)
        h = (y::R) -> g(y, a)^2
        sum(x::R, h(x) * g(x, 2 * a))
    end""",
    "a place that is an integral": """(f::RF) -> (a::R) -> begin
        c = sum(x::R, where(x <= a, f(x)))
        sum(x::R, where(x <= c, f(x) * a))
    end""",
    "a δ and a condition": """(f::RF) -> (a::R) ->
        sum(x::R, f(x) * where(a - 1 <= x, f(x - a)) * delta(x, 2 * a + 2, 1))""",
    "δ's in a sum": "(f::RF) -> (a::RV) -> sum(x::R, f(x) * (1 + sum(i, delta((i + 1) * x, a(i), i * f(x)))) * f(x))",
    "a sum in a square": "(f::RF) -> (a::RV) -> sum(x::R, f(x) * sum(i, where(x <= a(i), 1))^2)",
    "a product of sums": """(f::RF) -> (a::RV) ->
        sum(x::R, f(x) * sum(i, where(x <= a(i), 1)) * sum(j, sign(x - a(j)) * j))""",
    "a double sum": """(f::RF, W::RM) -> (a::RV) ->
        sum((x::R, i, j), W(i, j) * f(x) * where(x <= a(i), 1) * sign(x - a(j)))""",
    "one entry of a sum": """(f::RF) -> (a::RV) ->
        sum(x::R, f(x) * where(x <= a(0), 1) * sum(i, where(x <= a(i), 1)))""",
    "a sum inside of a function": """(f::RF, w::RV) -> (a::RV) ->
        sum(x::R, f(x) * exp(sum(i, where(x <= a(i), w(i)))))""",
    "a sum in a denominator": "(f::RF) -> (a::RV) -> sum(x::R, f(x) / (2 + sum(i, where(x <= a(i), 1))))",
    "places that are products": "(f::RF) -> (a::RV, b::RV) -> sum(x::R, f(x) * sum(i, where(x <= a(i) * b(i), i))^2)",
    "neighbours on a ring": RING
    + """(f::RF) -> (a::(P) -> R) ->
        sum(x::R, f(x) * sum(i::P, where(x <= a(i), 1) * sign(x - a(i + 1)))^2)""",
    "several places of sums": "(f::RF) -> (a::RV) -> sum(x::R, f(x) * sum((i, j), where(x <= a(i) + a(j), 1)))",
    "a complex weight": "(f::CF) -> (a::R) -> abs2(sum(x::R, f(x) * where(x <= a, 1) * exp(im * x * a)))",
    "a place on the complex plane": "(f::CF) -> (z::CV) -> sum((x::R, i), where(x <= abs2(z(i)), f(x) * z(i)))",
    "an unknown function of a condition": "(f::RF, g::RF) -> (a::R) -> sum(x::R, g(where(x <= a, f(x))) * f(x))",
    "a place of an unknown function": "(b::R, g::RF) -> (f::RF, a::R) -> sum(x::R, where(x <= a * f(b), g(x)))",
    "a δ at the place of a function": "(a::R) -> (f::RF) -> sum(x::R, delta(x, f(a), exp(-x^2)))",
    "a nested derivative": """(f::RF) -> (a::R) ->
        a * grad((b::R) -> sum(x::R, where(x <= a * b, f(x))))(a)""",
    "a nested derivative by a function": """(f::RF, g::RF) -> (a::R) ->
        sum(t::R, g(t) * grad((h::RF) -> sum(x::R, delta(x, a, h(x)^2)))(f)(t))""",
    "a strict condition": "(f::RF) -> (a::R, b::R) -> sum(x::R, a < x < b, f(x) * a)",
    "a strict condition, and else": "(f::RF) -> (a::R, b::R) -> sum(x::R, where(a < x and x < b, f(x) * a, b * f(x)))",
    "a strict condition in a power": "(f::RF) -> (a::R) -> sum(x::R, where(x < a, 1, 2)^3 * f(x))",
    "a strict condition in a strict one": """(f::RF) -> (a::R) ->
        sum(x::R, where(x < a, where(a - 1 < x, f(x), 3 * f(x)), f(x)^2))""",
    "one of several conditions": """(f::RF) -> (a::R, b::R) ->
        sum(x::R, where(x < a or not (x <= b or x > 2 + a^2), f(x) * (a + b)))""",
    "neighbouring entries": """(f::RF) -> (y::RV{n}) ->
        sum(x::R, sum(i, i < n - 1, where(y(i) <= x < y(i + 1), f(x) * y(i))))""",
    "not at a place": "(f::RF) -> (a::R) -> sum(x::R, x != a, f(x) * a^2)",
    "under an equation": "(f::RF) -> (a::R) -> sum(x::R, where(x <= a, exp(-x^2)))^2 + where(0 <= a, a^2)",
}
WITHOUT_HVP = {name for name, text in PROGRAMS.items() if "sign(" in text or "abs(" in text}
"""Gradients with sign(u) hold (1 − sign(u)²)/|u|, which is 0 but where u is, and has no finite value there."""
COUPLED = {
    "two variables": "(f::RF) -> (a::R) -> sum((x::R, y::R), where(x <= y + a, f(x) * f(y)) * where(x <= a, 1))",
    "an integral in a function": "(f::RF) -> (a::R) -> sum(x::R, f(x) * exp(sum(y::R, where(x <= y + a, f(y)))))",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gradient_agrees_with_quadrature(name: str) -> None:
    d = cd.grad(PROGRAMS[name])
    assert error(d) < TIGHT and error(d, seed=4) < TIGHT


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - WITHOUT_HVP))
def test_a_product_with_the_hessian_agrees_with_quadrature(name: str) -> None:
    assert error(cd.hvp(PROGRAMS[name])) < TIGHT


@pytest.mark.slow
@pytest.mark.parametrize("name", COUPLED)
def test_a_condition_on_two_variables_of_integrals_agrees_with_quadrature(name: str) -> None:
    assert error(cd.grad(COUPLED[name])) < TIGHT


TERMS = (
    "f(x)",
    "where(x <= {p}, 1)",
    "where({p} <= x, 2)",
    "sign(x - {p})",
    "abs(x - {p})",
    "exp(where(x <= {p}, f(x)))",
    "(1 + where(2 * x <= 2 * {p}, x))",
    "sin(where({p} <= x, x - {p}))",
    "sum(i, where(x <= a(i), i))",
    "tanh(sum(i, sign(x - a(i)) * c))",
)
PLACES = ("b", "(b + c)", "(c - b)", "a(0)", "a(1)", "(b * c)")


@st.composite
def integrands(draw: st.DrawFn) -> str:
    """A sum of products of conditions on x and functions of them; places are drawn from a few, so that some are one."""
    products = []
    for _ in range(draw(st.integers(1, 2))):
        factors = draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=4))
        products.append(" * ".join(t.format(p=draw(st.sampled_from(PLACES))) for t in factors))
    return f"(f::RF) -> (a::RV, b::R, c::R) -> sum(x::R, f(x) * ({' + '.join(products)}))"


ENTRIES = np.array([-0.71, 0.33, 1.17, -1.43, 0.02, 0.58, -0.21])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(integrands())
def test_random_integrands_agree_with_quadrature(text: str) -> None:
    d = cd.grad(text)
    sizes = default_sizes(d.term)
    entries = ENTRIES[: next(iter(sizes.values()), 0)]
    assert error(d, a=entries, b=0.47, c=0.91) < TIGHT


# --- maps of real numbers -------------------------------------------------------------------------------------------

MAPS = {
    "(f::RF) -> pullback((a::R) -> (t::R) -> where(t <= a, f(t)))": "f(a) * k(a)",
    "(f::RF) -> pullback((a::R) -> (t::R) -> delta(t, a, f(t)))": "f(a) * grad(k)(a) + k(a) * grad(f)(a)",
    "(f::RF) -> pullback((a::RV) -> (i, t::R) -> where(t <= a(i), f(t)))": "i -> f(a(i)) * k(i, a(i))",
    "(f::RF) -> pullback((a::RV) -> (t::R) -> i -> where(t <= a(i), f(t)))": "i -> f(a(i)) * k(a(i))(i)",
    "(f::RF) -> pullback((a::R) -> (t::R) -> sum(x::R, delta(x, t - a, f(x))))": "-sum(t::R, k(t) * grad(f)(t - a))",
    "(g::(RF) -> R) -> grad((a::R) -> g((t::R) -> where(t <= a, exp(-t^2))))": (
        "grad(g)((t::R) -> where(t <= a, exp(-t^2)))(a) * exp(-a^2)"
    ),
    DERIVATIVE + "(D::Der, f::RF) -> grad((a::R) -> sum(s::R, f(s) * D((t::R) -> where(t <= a, f(t)))(s)))": (
        "f(a) * adjoint(D)(f)(a)"
    ),
}


@pytest.mark.parametrize("text", MAPS)
def test_the_pullback_of_a_map_that_jumps_is_an_integral(text: str) -> None:
    assert formula(cd.pullback(text) if "pullback" in text else cd.grad(text)) == MAPS[text]


UNDER_AN_INTEGRAL = {
    "(f::RF) -> (a::R) -> sum(x::R, f(x) * grad((y::R) -> where(a <= y, 1))(x))": "grad(f)(a)",
    "(f::RF) -> (a::R) -> sum(x::R, f(x) * grad(grad((y::R) -> where(a <= y, y - a)))(x))": "grad(f)(a)",
    "(f::RF) -> (a::R) -> sum(x::R, f(x) * pullback((y::R) -> where(a <= y, 1))(x, f(x)))": "2 * f(a) * grad(f)(a)",
    "(f::RF) -> (a::R) -> sum(x::R, f(x) * grad((y::R) -> where(a <= y, 1))(2 * x))": "1/4 * grad(f)(1/2 * a)",
}


@pytest.mark.sampled
@pytest.mark.parametrize("text", UNDER_AN_INTEGRAL)
def test_a_derivative_at_the_variable_of_an_integral_has_a_peak_where_the_map_jumps(text: str) -> None:
    assert formula(cd.grad(text)) == UNDER_AN_INTEGRAL[text]
    assert error(cd.grad(text)) < TIGHT


def test_a_derivative_at_another_place_has_none() -> None:
    text = "(f::RF) -> (a::R) -> sum(x::R, f(x) * grad((y::R) -> where(a <= y, 1))(a^2))"
    assert formula(cd.grad(text)) == "0"


# --- outside of integrals, and what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("(x::RV) -> (a::R) -> sum(i, where(0 <= x(i) - a, x(i) - a))", "-sum(i, where(0 <= x(i) - a, 1))"),
        ("(b::R) -> (a::R) -> where(b <= a, a^2)", "2 * where(b <= a, a)"),
        ("(b::R) -> (a::R) -> where(b <= a, b)", "0"),
        (
            "(f::RF) -> (a::R, b::R) -> sum(x::R, where(a <= b, f(x) * a))",
            "(sum(x::R, where(a <= b, f(x))), 0)",
        ),
        ("(f::RF, b::R) -> (a::R) -> sum(x::R, where(x <= b, f(x) * a))", "sum(x::R, where(x <= b, f(x)))"),
        (
            "(f::RF) -> (a::R) -> sum(x::R, where(x - a <= x^2 - a, f(x) * a))",
            "sum(x::R, where(x - a <= x^2 - a, f(x)))",
        ),
        (
            "(f::RF) -> (a::R) -> sum(x::R, where(x - 2 * a <= x - a, f(x) * a))",
            "sum(x::R, where(x - 2 * a <= x - a, f(x)))",
        ),
    ],
)
def test_a_condition_that_compares_no_variable_of_an_integral_is_constant(text: str, gradient: str) -> None:
    assert formula(cd.grad(text)) == gradient


REFUSED = {
    "(f::RF) -> (a::R) -> sum(x::R, delta(x^2, a, f(x)))": "delta.* depends on a, and no integral",
    "(f::RF) -> (a::R) -> sum(x::R, exp(delta(x, a, f(x))))": "delta.* depends on a, and no integral",
    "(f::RF) -> (a::R) -> sum(x::R, where(x^2 <= a, f(x)))": r"a - x\^2 changes its sign moves .* not known",
    "(f::RF) -> (a::RV) -> sum((x::R, i), where(i * x <= a(i), f(x)))": "changes its sign moves .* not known",
    "(f::RF) -> (a::R) -> sum(x::R, where(f(x) <= a, 1))": "changes its sign moves .* not known",
    "(f::RF) -> (a::R) -> sum(x::R, where(x <= a, log(a - x) * f(x)))": "not finite where a - x is zero",
    "(f::RF) -> (a::R) -> sum(x::R, log(abs(x - a)) * f(x))": "not finite where x - a is zero",
    "(f::RF) -> (a::RV) -> sum(x::R, f(x) * sum((i, j), where(x <= a(i) + a(j), 1))^2)": "not known beforehand",
    "(f::RF) -> (a::Sym) -> sum(x::R, f(x) * sum((i, j), where(x <= a(i, j), 1))^2)": "not known beforehand",
    RING + "(f::RF) -> (a::(P) -> R) -> sum(x::R, f(x) * sum(i::P, where(x <= a(2 * i), 1))^2)": (
        "not known beforehand"
    ),
    "(f::RF) -> (a::R, b::R) -> sum(x::R, atan2(x - a, b) * f(x))": "may jump at places that move with a",
    "(f::RF) -> (a::R) -> sum(x::R, angle(im * (x - a) - 1) * f(x))": "may jump at places that move with a",
    "(f::RF) -> (a::R) -> sum(x::R, imag(log(complex(x - a))) * f(x))": "may jump at places that move with a",
    "(f::RF) -> (y::RV) -> sum(x::R, ties(i, x * y(i) + i)(0) * f(x))": "may jump at places that move with y",
    "(f::RF) -> (a::R) -> sum(x::R, floor(x - a) * f(x))": "jumps at places that move with a",
    "(g::(RF) -> R) -> (a::R) -> g((t::R) -> delta(t, a, exp(-t^2)))": "delta.* depends on a, and no integral",
    "(f::RF) -> (a::R) -> sum(x::R, f(x) * grad(grad((y::R) -> where(a <= y, 1)))(x))": "depends on y, and no integral",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_place_that_cannot_be_found_is_refused_in_words(text: str) -> None:
    with pytest.raises(cd.CombDiffError, match=REFUSED[text]) as caught:
        cd.grad(text)
    assert caught.value.remedy


FIXED = {
    "sum(x::R, delta(x, b, imag(asin(complex(a * x)))))": lambda a, b: np.arcsin(a * b + 0j).imag,
    "sum(x::R, delta(x, b, floor(a * x) * a^2))": lambda a, b: np.floor(a * b) * a.real**2,
    "sum(x::R, delta(x, b, 1) * x^2 * ceil(a * x) * a)": lambda a, b: b**2 * np.ceil(a * b) * a,
    "sum((x::R, y::R), delta(x, b, delta(y, x * a, atan2(y - x, x) * x)))": lambda a, b: np.arctan2(a * b - b, b) * b,
}


@pytest.mark.sampled
@pytest.mark.parametrize("text", FIXED)
def test_what_jumps_where_a_delta_fixes_its_argument_is_no_integral(text: str) -> None:
    """The value at one point has the derivative that the function has there."""
    d = cd.grad(f"(a::R, b::R) -> {text}")
    assert d.check()
    f = d.compile(value=True)
    for a, b in ((0.7, 2.3), (-1.3, 1.1), (2.1, -0.4)):
        value, *gradient = f(a, b)
        np.testing.assert_allclose(value, FIXED[text](np.float64(a), np.float64(b)), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(gradient, differences(FIXED[text], [np.float64(a), np.float64(b)]), atol=1e-8)


def test_a_delta_of_two_variables_fixes_none_of_them() -> None:
    with pytest.raises(cd.CombDiffError, match="jumps at places that move with a"):
        cd.grad("(f::RF) -> (a::R) -> sum((x::R, y::R), delta(x, y, floor(a * x)) * f(x))")


@pytest.mark.parametrize("text", ["where(0 <= f(x), f(x))", "abs(f(x) - g(x))", "abs(f(x)^2 - 1)"])
def test_a_function_that_is_continuous_at_an_unknown_place_has_a_gradient_and_no_more(text: str) -> None:
    program = f"(g::RF) -> (f::RF) -> sum(x::R, {text})"
    assert "where" in str(cd.grad(program)) or "sign" in str(cd.grad(program))
    with pytest.raises(cd.CombDiffError, match="not known"):
        cd.hvp(program)


# --- other ways to the same derivative ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", ["a product of conditions", "a slope of a δ", "a sum in a square", "two places"])
def test_a_derivative_is_told_and_found_without_laws_too(name: str) -> None:
    text = PROGRAMS.get(name, "(f::RF) -> (a::R) -> sum((x::R, y::R), delta(x, a, f(x)) * delta(y, a + x, f(y)))")
    assert explanation(cd.grad(text)).endswith(f"the result\n{cd.grad(text)}")
    assert "grad(" not in combinator_form(cd.grad(text))
    hurried = cd.grad(text, seconds=1e-9)
    assert any(step.spent for step in hurried.steps) and error(hurried) < TIGHT


def test_the_combinators_show_where_an_integrand_jumps() -> None:
    d = cd.grad("(f::RF) -> (a::R) -> sum(x::R, where(x <= a, f(x)))")
    jump = "Jump (B indicator (K f(x)))"
    assert combinator_form(d) == f"a ↦ result = B Σ (C (x ↦ {jump} (f(x) at x = a by B (add -x) I)))"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(x::R) -> grad((y::R) -> grad((z::R) -> z * exp(x * z) * sin(z))(y) * y)(x)",
        "(x::R) -> grad(grad(grad((y::R) -> y * exp(y) * sin(x * y))))",
        "(b::R) -> (a::R) -> sum(x::R, delta(2 * x, a * b, exp(-x^2) * x)) * a",
    ],
)
def test_programs_whose_derivatives_hold_a_δ_are_checked(text: str) -> None:
    """The objective's own derivatives are taken without laws there, and their δ's are differentiated."""
    assert cd.grad(text).check()


# --- what follows such a derivative ---------------------------------------------------------------------------------


def test_the_value_of_a_map_of_real_numbers_is_left_out_of_code_in_words() -> None:
    d = cd.pullback("(f::RF) -> pullback((a::R) -> (t::R) -> where(t <= a, f(t)))")
    assert "f(a)" in d.source()
    with pytest.raises(cd.CombDiffError, match="a function of real numbers") as caught:
        d.source(value=True)
    assert caught.value.remedy == "leave value out"


def test_a_functional_of_functions_is_not_checked_and_says_so() -> None:
    with pytest.raises(cd.CombDiffError, match="no random value"):
        cd.grad("(g::(RF) -> R) -> (a::R) -> g((t::R) -> where(t <= a, exp(-t^2)))").check()


def test_a_map_of_numbers_and_indices_at_once_has_no_derivative_and_a_remedy() -> None:
    with pytest.raises(cd.CombDiffError, match="the derivative of L, a map of numbers and of indices") as caught:
        cd.grad("(L::(R, N) -> R) -> (a::RV) -> sum(i, L(a(i), i))")
    assert "L(i)(x)" in str(caught.value.remedy)
    assert formula(cd.grad("(L::(N) -> RF) -> (a::RV) -> sum(i, L(i)(a(i)))")) == "i -> grad(L(i))(a(i))"


def test_a_gradient_without_integrals_left_is_compiled() -> None:
    d = cd.grad("(f::RF) -> (a::RV) -> sum((x::R, i), where(x <= a(i), f(x)^2))")
    np.testing.assert_allclose(d.compile()(np.array([0.5, 1.0, -2.0]), f=np.sin), np.sin([0.5, 1.0, -2.0]) ** 2)
