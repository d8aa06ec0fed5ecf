"""Functions that a call gives by their values at nodes, and the matrix of d/dx: `D_Line=` at the ordinary call."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, UnsupportedError

LINE = "@domain Line begin base = R; lower = 0; upper = 1 end\n@domain Far begin base = R; lower = 2; upper = 3 end\n"
SLOPE = LINE + "(y::(Line) -> R) -> sum(x::Line, grad(y)(x)^2 / 2 - y(x))"
RULE = cd.quadrature.chebyshev(9)
x, w = RULE.on(cd.quadrature.Interval("Line", 0, 1))
D = cd.quadrature.differentiation(x)
GRID: dict[str, Any] = {"Line": (x, w), "D_Line": D}


def energy(y: Any) -> Any:
    return w @ ((D @ y) ** 2 / 2 - y)


@pytest.mark.slow
def test_the_result_is_the_derivative_of_the_discrete_functional_divided_by_weights() -> None:
    value, gradient = cd.grad(SLOPE).compile(value=True)(y=x**2, **GRID)
    assert value == pytest.approx(energy(x**2), rel=1e-13)
    for v in np.eye(9):
        slope = (energy(x**2 + 1e-3 * v) - energy(x**2 - 1e-3 * v)) / 2e-3
        assert (w * gradient) @ v == pytest.approx(slope, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(gradient, D.T @ (w * (D @ x**2)) / w - 1, rtol=1e-12)


@pytest.mark.slow
def test_inside_it_is_the_functional_derivative_and_an_end_has_its_own_divided_by_its_weight() -> None:
    """−y″ − 1 inside; at the ends ∓y′ is added, over the weight, which is what vanishes at a free end."""
    grid = {"Line": RULE, "D_Line": cd.quadrature.differentiation}
    found = cd.grad(SLOPE).compile()(y=x**2, **grid)
    np.testing.assert_allclose(found[1:-1], -3, rtol=1e-10)
    assert found[-1] == pytest.approx(-3 + 2 / w[-1], rel=1e-10)
    assert found[0] == pytest.approx(-3, rel=1e-9)


@pytest.mark.slow
def test_a_function_and_its_values_give_the_same() -> None:
    f = cd.grad(SLOPE).compile()
    by_values = f(y=np.sin(x), **GRID)
    for given in (np.sin, (np.sin, np.cos)):
        np.testing.assert_array_equal(f(y=given, **GRID), by_values)
    # the rule integrates y′ v′ exactly for all v of nine nodes
    parabola = np.polynomial.Polynomial([0.3, -1, 2])
    bulk, *_ = f(y=parabola, Line=(x, w))
    np.testing.assert_allclose(bulk[1:-1], f(y=parabola(x), **GRID)[1:-1], rtol=1e-10)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(y=np.sin(x), **GRID), by_values)


SECOND = LINE + (
    "(V::RF, q::(Line) -> R) -> (y::(Line) -> R, a::R) -> sum(x::Line, a * V(y(x)) * grad(y)(x)^2 / 2 - q(x) * y(x))"
)


@pytest.mark.slow
def test_the_second_variation_with_given_functions_and_a_number() -> None:
    run = cd.hvp(SECOND).compile()
    v, u = np.cos(3 * x), x**2
    given = {"V": np.sin, "grad_V": np.cos, "grad_grad_V": lambda t: -np.sin(t), "q": np.exp}
    by_y, by_a = run(y=x**3, a=2.0, k1=v, k2=0.3, **given, **GRID)

    def value(y: Any, a: float) -> Any:
        return w @ (a * np.sin(y) * (D @ y) ** 2 / 2 - np.exp(x) * y)

    e, b = 1e-4, 0.7
    steps = [(s, t, value(x**3 + e * (s * v + t * u), 2 + e * (s * 0.3 + t * b))) for s in (1, -1) for t in (1, -1)]
    mixed = sum(s * t * found for s, t, found in steps) / (4 * e * e)
    assert w @ (by_y * u) + by_a * b == pytest.approx(mixed, rel=1e-6)


@pytest.mark.slow
def test_functions_of_two_points_on_two_intervals() -> None:
    t, weights = cd.quadrature.gauss(5).on(cd.quadrature.Interval("Far", 2, 3))
    f = cd.grad(LINE + "(k::(Line, Far) -> R) -> (g::(Far) -> R) -> sum((x::Line, t::Far), k(x, t) * g(t)^3)").compile()
    k = np.multiply.outer(x, t) + 1
    found = f(k=k, g=t**2, Line=(x, w), Far=(t, weights))
    np.testing.assert_allclose(found, 3 * (w @ k) * t**4, rtol=1e-12)
    np.testing.assert_allclose(f(k=lambda x, t: x * t + 1, g=t**2, Line=(x, w), Far=(t, weights)), found, rtol=1e-13)
    by_k = cd.grad(LINE + "(k::(Line, Far) -> R) -> sum((x::Line, t::Far), k(x, t)^3)").compile()
    np.testing.assert_allclose(by_k(k=k, Line=(x, w), Far=(t, weights)), 3 * k**2, rtol=1e-13)


@pytest.mark.slow
def test_a_complex_function_and_a_tangent() -> None:
    """The tangent of ∫ |ψ′|² along φ is 2 Re ∫ ψ′* φ′, and has no weight to be divided by."""
    f = cd.jvp(LINE + "(psi::(Line) -> C) -> sum(x::Line, abs2(grad(psi)(x)))").compile()
    psi, phi = x**2 + 1j * x, np.exp(1j * x)
    expected = 2 * (w @ ((D @ psi).conj() * (D @ phi))).real
    assert f(psi=psi, k=phi, **GRID) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_jax_takes_values() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    found = cd.grad(SLOPE).compile("jax")(y=jax.numpy.asarray(x**2), **GRID)
    assert isinstance(found, jax.Array)
    np.testing.assert_allclose(np.asarray(found), cd.grad(SLOPE).compile()(y=x**2, **GRID), rtol=1e-12)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no matrix": ({"y": x, "Line": (x, w)}, "holds derivatives along Line, and functions are given by their values"),
    "no rule": ({"y": x, "D_Line": D}, "is not given Line, at whose nodes functions have values"),
    "fewer values": ({"y": x[:4], **GRID}, "slot 1 of y has 4"),
    "a smaller matrix": ({"y": x, "Line": (x, w), "D_Line": D[:3]}, "slot 1 of D_Line has 3"),
    "another word": ({"y": x, "foo": 3, **GRID}, "no argument called foo"),
    "complex values": ({"y": x + 0j, **GRID}, "y is declared real"),
    "arrays to fill": ({"y": x, "out": np.zeros(9), **GRID}, "out= is not for functions"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_missing_is_named(name: str) -> None:
    given, message = REFUSED[name]
    with pytest.raises(ArrayError, match=message):
        cd.grad(SLOPE).compile()(**given)


@pytest.mark.slow
def test_what_has_no_discrete_reading_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="at other places"):
        cd.grad(LINE + "(y::(Line) -> R) -> sum(x::Line, y(x / 2)^2)").compile()(y=x, **GRID)


@pytest.mark.slow
def test_an_argument_of_the_program_keeps_its_name() -> None:
    f = cd.grad(LINE + "(D_Line::R) -> (y::(Line) -> R) -> sum(x::Line, D_Line * y(x)^2)").compile()
    np.testing.assert_allclose(f(y=np.sin, D_Line=3.0, Line=(x, w)), 6 * np.sin(x), rtol=1e-13)
    np.testing.assert_allclose(f(y=np.sin(x), D_Line=3.0, Line=(x, w)), 6 * np.sin(x), rtol=1e-13)
