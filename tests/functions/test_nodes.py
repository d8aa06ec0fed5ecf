"""Functions as vectors of their values at nodes: the discrete functional, its derivatives, the matrix of d/dx."""

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import combdiff as cd
from combdiff.errors import ArrayError, UnsupportedError
from tests.reading_back import assert_reads_back

LINE = "@domain Line begin base = R; lower = 0; upper = 1 end\n@domain Far begin base = R; upper = 3; lower = 2 end\n"
PROGRAMS = {
    "a slope": "(y::(Line) -> R) -> sum(x::Line, grad(y)(x)^2 / 2 + x * y(x)^4)",
    "a second derivative, a given function": "(V::RF, q::(Line) -> R) -> (y::(Line) -> R, a::R) -> "
    "sum(x::Line, a * grad(grad(y))(x)^2 + V(x) * q(x) * y(x)^2)",
    "a complex function and a kernel": "(k::RO) -> (y::(Line) -> C) -> "
    "sum((x::Line, t::Line), abs2(grad(y)(x) * y(t)) * k(x, t))",
    "definitions": "(f::(Line) -> R) -> begin g = (x::Line) -> exp(-f(x)); sum(x::Line, g(x)^2 + g(x)) end",
    "two domains": "(y::(Line) -> R, z::(Far) -> R) -> sum((x::Line, t::Far), exp(grad(y)(x) * z(t)))",
    "names that are taken": "(n::RV, D_Line::R) -> (y::(Line) -> R) -> "
    "sum(x::Line, grad(y)(x)^2) * sum(i, n(i)) * D_Line",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["grad", "hvp"])
def test_derivatives_of_the_discrete_functional(name: str, mode: str) -> None:
    d = getattr(cd, mode)(LINE + PROGRAMS[name]).at_nodes()
    assert d.check(), d.check()
    assert_reads_back(d.term)


def test_the_discrete_gradient_pairs_as_the_continuous_one() -> None:
    """Σ_j g(j) v(x_j) is ∫ bulk·v and what stands at the ends, for polynomials that the rule integrates exactly."""
    d = cd.grad(LINE + "(y::(Line) -> R) -> sum(x::Line, grad(y)(x)^2 * y(x) + grad(grad(y))(x)^2)")
    x, w = rule = cd.quadrature.gauss(16).on(cd.quadrature.Interval("Line", 0, 1))
    y, v = Polynomial([1.0, -0.5, 2.0, 0.3, -1.0]), Polynomial([0.2, 1.0, -3.0, 0.7])
    bulk, *ends = d.compile()(y=y, Line=rule)
    slopes = [v, v.deriv()] * 2
    continuous = w @ (bulk * v(x)) + sum(e * f(end) for e, f, end in zip(ends, slopes, (0, 0, 1, 1), strict=True))
    discrete = d.at_nodes().compile()(w_Line=w, D_Line=cd.quadrature.differentiation(x), y=y(x)) @ v(x)
    assert discrete == pytest.approx(continuous, rel=1e-11)


def test_descent_on_values_finds_the_solution_of_the_differential_equation() -> None:
    """∫ y′²/2 − y with y(0) = 0 and a free end: y = x − x²/2."""
    d = cd.grad(LINE + "(y::(Line) -> R) -> sum(x::Line, grad(y)(x)^2 / 2 - y(x))").at_nodes()
    x, w = cd.quadrature.chebyshev(9).on(cd.quadrature.Interval("Line", 0, 1))
    given = {"w_Line": w, "D_Line": cd.quadrature.differentiation(x)}
    gradient = d.compile()
    at_0 = gradient(y=np.zeros(9), **given)
    columns = np.stack([gradient(y=e, **given) - at_0 for e in np.eye(9)], axis=1)
    y = np.zeros(9)
    y[1:] = np.linalg.solve(columns[1:, 1:], -at_0[1:])
    assert np.allclose(y, x - x**2 / 2, atol=1e-13)


@pytest.mark.parametrize("rule", [cd.quadrature.gauss(60), cd.quadrature.chebyshev(60), cd.quadrature.trapezoid(8)])
def test_the_matrix_differentiates_polynomials(rule: cd.quadrature.Rule) -> None:
    x = rule.on(cd.quadrature.Interval("Line", -1, 2))[0]
    D = cd.quadrature.differentiation(x)
    for degree in range(6):
        p = Polynomial(np.arange(degree + 1) - 2.0)
        assert np.allclose(D @ p(x), p.deriv()(x), rtol=1e-9, atol=1e-9)
    assert np.allclose(D @ np.exp(x), np.exp(x), rtol=1e-9 if len(x) > 20 else 1e-2)


@pytest.mark.parametrize("nodes", [[0.0, 1.0, 0.0], [[0.0, 1.0]]])
def test_equal_nodes_are_refused(nodes: object) -> None:
    with pytest.raises(ArrayError, match="no vector of different numbers"):
        cd.quadrature.differentiation(nodes)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("(y::(Line) -> R) -> sum(x::Line, y(x)^2) + y(1)", "at other places"),
        ("(y::(Line) -> R) -> sum(x::Line, y(x / 2)^2)", "at other places"),
        ("(y::RF) -> sum(x::R, y(x)^2)", "has no values at nodes"),
    ],
)
def test_what_has_no_discrete_reading_is_refused(program: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        cd.grad(LINE + program).at_nodes()
