"""Inverses that a call is given: they take the place of Newton's method, and are held against the equation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.optimize import brentq
from scipy.special import lambertw

import combdiff as cd
from combdiff.errors import ArrayError, LanguageError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from tests.reading_back import assert_reads_back

LINES = (
    "@domain Line begin base = R; lower = 0; upper = 1 end\n@domain Wide begin base = R; lower = 0; upper = 3 end\n"
    "@space Up begin type = (R) -> R; increasing = true end\n"
)
OF_G = LINES + "(h::RF, g::Up) -> (f::RF) -> sum(x::R, h(x) * f(g(x))^2)"


def g(x):
    return np.sinh(x) + 2 * x


def slope(x):
    return np.cosh(x) + 2


@np.vectorize
def inverse(y):
    return brentq(lambda x: g(x) - y, -30, 30, xtol=1e-15)


def cubic(y):
    """The real root of x³ + x = y, by Cardano's formula."""
    s = np.sqrt(y * y / 4 + 1 / 27)
    return np.cbrt(y / 2 + s) + np.cbrt(y / 2 - s)


@pytest.mark.slow
def test_a_function_that_increases_has_an_inverse() -> None:
    """∫ h(x) f(g(x))² dx: the derivative by f at y is 2 h(x) f(y) / g′(x) where g(x) = y."""
    d = cd.grad(OF_G)
    assert_reads_back(d.term, values=False)
    f = d.compile()
    given = {"h": np.cos, "f": np.exp, "g": g, "grad_g": slope}
    for y in (-2.0, 0.0, 0.7, 12.0):
        x = float(inverse(y))
        expected = 2 * np.cos(x) * np.exp(y) / slope(x)
        assert f(d=y, **given) == pytest.approx(expected, rel=1e-12)
        assert f(d=y, inverse_g=inverse, **given) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_an_inverse_is_used_where_newton_s_method_finds_nothing() -> None:
    f = cd.grad(OF_G).compile()
    # its slope at 0, where the method starts, is 0
    given = {"h": np.cos, "f": np.exp, "g": lambda x: x**3, "grad_g": lambda x: 3 * x**2}
    with pytest.raises(ArrayError, match="no unique solution"):
        f(d=0.5, **given)
    x = np.cbrt(0.5)
    assert f(d=0.5, inverse_g=np.cbrt, **given) == pytest.approx(2 * np.cos(x) * np.exp(0.5) / (3 * x**2), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [np.arcsinh, lambda y: inverse(y) + 1e-6, lambda y: y * np.nan])
def test_a_wrong_inverse_is_noticed(wrong) -> None:
    f = cd.grad(OF_G).compile()
    with pytest.raises(ArrayError, match=r"inverse_g gives .* for 0.7, which is no solution") as error:
        f(h=np.cos, f=np.exp, g=g, grad_g=slope, d=0.7, inverse_g=wrong)
    assert "leave it out" in str(error.value.remedy)


@pytest.mark.slow
def test_a_definition_is_undone_at_all_nodes_at_once() -> None:
    program = "(h::RF) -> (f::(Wide) -> R) -> begin g = (x::R) -> x^3 + x; sum(x::Line, h(x) * f(g(x))^2) end"
    f = cd.grad(LINES + program).compile()
    calls: list[np.ndarray] = []

    def solution(y):
        calls.append(y)
        return cubic(y)

    given = {"h": np.cos, "f": np.exp, "Wide": cd.quadrature.gauss(9)}
    found = f(inverse_x=solution, **given)
    assert [y.shape for y in calls] == [(9,)]
    np.testing.assert_allclose(found, f(**given), rtol=1e-12)
    assert "the solution of x^3 + x = y" in f.source
    with pytest.raises(ArrayError, match=r"inverse_x gives .* which is no solution"):
        f(inverse_x=np.cbrt, **given)


@pytest.mark.slow
def test_the_sign_of_an_equation_is_that_of_the_unknown() -> None:
    """y − 2x − tanh x = a: the inverse is that of 2x + tanh x, at y − a."""
    f = cd.grad("(f::RF, y::R) -> (a::R) -> sum(x::R, delta(y - 2 * x - tanh(x), a, f(x)))").compile()
    assert "the solution of 2 * x + tanh(x) = y" in f.source
    given = {"f": np.sin, "grad_f": np.cos, "y": 3.0, "a": 1.2}

    @np.vectorize
    def solution(y):
        return brentq(lambda x: 2 * x + np.tanh(x) - y, -9, 9, xtol=1e-15)

    assert f(inverse_x=solution, **given) == pytest.approx(f(**given), rel=1e-12)


@pytest.mark.slow
def test_a_root_that_the_program_asks_for_has_one_too() -> None:
    f = cd.grad("(a::RV) -> sum(i, root((x::R) -> exp(x) + x - a(i))^2)").compile(value=True)
    a = np.array([0.3, 1.0, 4.0])
    x = (a - lambertw(np.exp(a))).real
    value, slopes = f(a, inverse_x=lambda y: (y - lambertw(np.exp(y))).real)
    assert value == pytest.approx((x**2).sum(), rel=1e-13)
    np.testing.assert_allclose(slopes, 2 * x / (np.exp(x) + 1), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("equation", ["x - e * sin(x) - M", "x^3 + x - 2", "x^2 * M + x - 1"])
def test_an_equation_that_is_no_inverse_takes_none(equation: str) -> None:
    """The unknown stands beside another argument, or the equation is the same for all calls."""
    f = cd.grad(f"(e::R) -> (M::R) -> M * root((x::R) -> {equation})").compile(value=True)
    assert "start_x" in f.source and "inverse_x" not in f.source


@pytest.mark.slow
def test_jax_takes_the_inverse_in_traced_code() -> None:
    jax, jnp = pytest.importorskip("jax"), pytest.importorskip("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    f = cd.grad(OF_G).compile("jax")
    given = {"h": jnp.cos, "f": jnp.exp, "g": lambda x: x + x**3, "grad_g": lambda x: 1 + 3 * x**2}

    def solution(y):
        s = jnp.sqrt(y * y / 4 + 1 / 27)
        return jnp.cbrt(y / 2 + s) + jnp.cbrt(y / 2 - s)

    found = jax.jit(lambda d: f(d=d, inverse_g=solution, **given))(0.7)
    x = cubic(0.7)
    assert float(found) == pytest.approx(2 * np.cos(x) * np.exp(0.7) / (1 + 3 * x**2), rel=1e-12)
    assert np.isnan(jax.jit(lambda d: f(d=d, inverse_g=jnp.sin, **given))(0.7))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize("inner", ["g(x)", "2 - g(x) - x", "g(g(x) + x^3)"])
def test_derivatives_agree_with_differences(mode: str, inner: str) -> None:
    d = getattr(cd, mode)(LINES + f"(h::RF, g::Up) -> (a::R) -> sum(x::R, delta({inner}, a, h(x)))")
    assert d.check(), d.check()
    assert_reads_back(d.term, values=False)


@pytest.mark.slow
def test_the_derivative_by_the_function_that_is_undone() -> None:
    """Along v the root r of g(r) = a moves by −v(r) / g′(r)."""
    program = "(h::RF, a::R) -> (g::Up) -> sum(x::Line, x * h(root((x::R) -> g(x) - a)))"
    f = cd.jvp(LINES + program).compile()
    v = Polynomial([0.3, -0.2, 0.5])
    found = f(h=np.sin, grad_h=np.cos, a=1.5, g=g, grad_g=slope, k=v, Line=cd.quadrature.gauss(3), inverse_g=inverse)
    x = float(inverse(1.5))
    assert found == pytest.approx(-np.cos(x) * v(x) / slope(x) / 2, rel=1e-12)


@pytest.mark.slow
def test_the_derivative_by_a_function_that_a_root_is_made_of() -> None:
    """A δ at the root, which pairs with v as the derivative along v does."""
    d = cd.grad("(h::RF, a::R) -> (g::RF) -> h(root((x::R) -> g(x) - a))")
    assert str(d).splitlines()[1:] == [
        "  s = root((x₁::R) -> g(x₁) - a)",
        "  delta(s, x, -grad(h)(s) / grad(g)(s))",
        "end",
    ]
    assert cd.grad("(h::RF, g::RF, a::R) -> (b::R) -> h(b * root((x::R) -> g(x)^3 + x - a))").check()


def test_a_declared_function_is_printed_and_read_back() -> None:
    text = "@space Up begin\n  type = (R) -> R\n  increasing = true\nend\n(g::Up) -> (x::R) -> g(x)"
    term = infer(parse(text))
    assert_reads_back(term, values=False)
    assert str(cd.simplified(text)) == text


def test_a_variation_need_not_increase() -> None:
    along = str(cd.jvp(LINES + "(g::Up) -> sum(x::Line, g(x)^2)"))
    assert along.endswith("(g::Up, k::RF) -> 2 * sum(x::Line, g(x) * k(x))")


@pytest.mark.parametrize("kind", ["(R) -> C", "(R, R) -> R", "(N) -> R", "(Line) -> R"])
def test_only_a_function_of_a_real_number_increases(kind: str) -> None:
    with pytest.raises(LanguageError, match="is increasing, and is not of functions from R to R"):
        cd.grad(LINES + f"@space W begin type = {kind}; increasing = true end\n(g::W) -> (x::R) -> x^2")
