"""Functional derivatives of Lin, *Automatic functional differentiation in JAX* (2024): its figure, its operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import combdiff as cd
from combdiff.terms.terms import subterms
from tests.functions.test_compositions import of_functions, of_numbers

LINE = "@domain Line begin base = R; lower = 0; upper = 1 end\n"
CLAMPED = "@space V begin type = (Line) -> R; fixed = true end\n"


@pytest.mark.slow
def test_fig_1_the_brachistochrone_has_the_derivative_of_its_euler_lagrange_expression() -> None:
    """∂L/∂y − d/dx ∂L/∂y′ of L = √((1 + y′²) / y), written by hand, at 1,000 points."""
    d = cd.grad(f"{LINE}{CLAMPED}(y::V) -> sum(x::Line, sqrt((1 + grad(y)(x)^2) / y(x)))")
    curve, x = Polynomial([0.3, 0.9, -0.4, 0.1]), np.linspace(0, 1, 1000)
    found = d.compile()(Line=(x, 0 * x), y=curve)
    y, slope, bend = curve(x), curve.deriv()(x), curve.deriv(2)(x)
    root = np.sqrt(1 + slope**2)
    by_y = -root / (2 * y**1.5)
    by_slope_and_y = -slope / (2 * root * y**1.5)
    by_slope_twice = 1 / (root**3 * np.sqrt(y))
    expected = by_y - by_slope_and_y * slope - by_slope_twice * bend
    assert np.abs(found - expected).max() <= 1e-15 * np.abs(expected).max()


@pytest.mark.slow
def test_fig_1_the_derivative_vanishes_on_a_cycloid() -> None:
    """x = φ − sin φ, y = 1 − cos φ: the equation of Euler and Lagrange holds between the ends."""
    d = cd.grad("@domain Line begin base = R end\n(y::(Line) -> R) -> sum(x::Line, sqrt((1 + grad(y)(x)^2) / y(x)))")
    angle = np.linspace(0.6, 2.4, 50)
    x, y = angle - np.sin(angle), 1 - np.cos(angle)
    # y′ = sin φ / (1 − cos φ) and y″ = −1 / (1 − cos φ)²
    given = (lambda _: y, lambda _: np.sin(angle) / y, lambda _: -1 / y**2)
    found = d.compile()(Line=(x, 0 * x), y=given)
    np.testing.assert_allclose(found, 0, atol=1e-13)


OPERATORS = {
    "the tangent of ∇": ("jvp((y::RF) -> (x::R) -> grad(y)(x))", "(y::RF, k::RF) -> (d1::R) -> grad(k)(d1)"),
    "the transpose of ∇": ("pullback((y::RF) -> (x::R) -> grad(y)(x))", "(y::RF, k::RF) -> (d::R) -> -grad(k)(d)"),
    "the transpose of a composition": (
        "pullback((f::RF) -> (x::R) -> f(2 * x))",
        "(f::RF, k::RF) -> (d::R) -> 1/2 * k(1/2 * d)",
    ),
    "the tangent of a composition": (
        "(f::RF) -> jvp((g::RF) -> (x::R) -> f(g(x)))",
        "(f::RF) -> (g::RF, k::RF) -> (x::R) -> k(x) * grad(f)(g(x))",
    ),
    "the transpose of a semilocal operator": (
        LINE + CLAMPED + "pullback((y::V) -> (x::Line) -> grad(y)(x)^2)",
        "(y::V, k::(Line) -> R) -> (x::Line) -> -2 * k(x) * grad(grad(y))(x) - 2 * grad(k)(x) * grad(y)(x)",
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_appendix_a_operators(name: str) -> None:
    program, expected = OPERATORS[name]
    derive = cd.jvp if "jvp" in program else cd.pullback
    assert str(derive(program)).splitlines()[-1] == expected


NEURAL_OPERATOR = """@domain X begin base = R; lower = 0; upper = 1 end
@space F begin type = (X) -> R end
@space K begin type = (X, X) -> R end
(f::F, t::F) -> (k::K, b::F) -> begin
  u = (y::X) -> tanh(sum(x::X, k(y, x) * f(x)) + b(y))
  sum(y::X, (u(y) - t(y))^2)
end"""


@pytest.mark.slow
def test_appendix_h_a_neural_operator_learns_by_descent_in_a_space_of_functions() -> None:
    """The kernel is a function of two points; a step holds no trace of those before it, as the figure's programs do."""
    d = cd.grad(NEURAL_OPERATOR)
    assert str(d).splitlines()[-5:] == [
        "(f::F, t::F) -> (k::K, b::F) -> begin",
        "  v = (y::X) -> tanh(sum(x::X, f(x) * k(y, x)) + b(y))",
        "  w = (y::X) -> 2 * (1 - v(y)^2) * (v(y) - t(y))",
        "  ((y::X, x::X) -> f(x) * w(y), w)",
        "end",
    ]
    run = d.compile(value=True)
    x, w = np.polynomial.legendre.leggauss(12)
    x, w = (x + 1) / 2, w / 2

    def loss(kernel: np.ndarray, bias: np.ndarray) -> float:
        return float(w @ (np.tanh(kernel @ (w * np.cos(x)) + bias) - x**2) ** 2)

    kernel, bias, losses = 0.3 * np.sin(3 * np.outer(x, x)), 0 * x, []
    for _ in range(4):
        given = {"k": lambda *_, at=kernel: at, "b": lambda _, at=bias: at}
        value, by_kernel, by_bias = run(X=(x, w), f=np.cos, t=np.square, **given)
        assert value == pytest.approx(loss(kernel, bias), rel=1e-13)
        step = 1e-6 * np.cos(np.arange(144.0)).reshape(12, 12)
        slope = (loss(kernel + step, bias) - loss(kernel - step, bias)) / 2
        assert w @ (by_kernel * step) @ w == pytest.approx(slope, rel=1e-6)
        kernel, bias = kernel - 0.3 * by_kernel, bias - 0.3 * by_bias
        losses.append(value)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 10


@pytest.mark.sampled
@pytest.mark.parametrize("depth", [1, 2, 7, 30])
def test_appendix_d_compositions_are_as_long_as_they_are_deep(depth: int) -> None:
    """sin ∘ … ∘ sin and its derivative, by the functions of one program."""
    links = "\n".join(f"f{n} = (x::R) -> sin(f{n - 1}(x))" for n in range(2, depth + 1))
    program = f"(x::R) -> begin\nf1 = (x::R) -> sin(x)\n{links}\nf{depth}(x)\nend"
    d = cd.grad(program)
    expected, at = 1.0, 0.7
    for _ in range(depth):
        expected, at = expected * np.cos(at), np.sin(at)
    assert d.compile()(0.7) == pytest.approx(expected, rel=1e-12)
    assert len(str(d)) <= 100 + 60 * depth


@pytest.mark.slow
@pytest.mark.parametrize("program", [of_numbers, of_functions])
@pytest.mark.parametrize("mode", ["grad", "jvp"])
def test_appendix_d_terms_and_code_are_linear_to_depth_30(program: Callable[[int], str], mode: str) -> None:
    """exp(−h) + tanh(h) of the link before, which occurs twice in it: written out there would be 2³⁰ terms."""
    terms, characters, calls = [], [], []
    for depth in (10, 20, 30):
        d = getattr(cd, mode)(program(depth))
        code = d.source().split('"""')[-1]
        terms.append(len({*subterms(d.term)}))
        characters.append(len(code))
        calls.append(code.count("tanh("))
    for found in (terms, characters):
        first, second = np.diff(found)
        assert 0 < second <= 1.15 * first, found
    assert terms[-1] < 17 * 30 and characters[-1] < 150 * 30
    assert calls == [10, 20, 30], calls


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_autofd_itself_has_the_same_derivatives() -> None:
    """Fig. 1 and a chain of Appendix D by AutoFD 0.0.9, in the same run; `pip install autofd jax==0.5.3 absl-py`."""
    autofd, jaxtyping = pytest.importorskip("autofd"), pytest.importorskip("jaxtyping")
    jax = pytest.importorskip("jax")
    function, operators, jnp = autofd.function, autofd.operators, jax.numpy
    jax.config.update("jax_enable_x64", True)
    scalar = jaxtyping.Float64[jaxtyping.Array, ""]
    curve, x = Polynomial([0.3, 0.9, -0.4, 0.1]), np.linspace(0.01, 0.99, 1000)

    def typed(f: Any, count: int = 1) -> Any:
        f.__annotations__ = dict.fromkeys("xy"[:count], scalar) | {"return": scalar}
        return function(f)

    y = typed(lambda x: 0.3 + 0.9 * x - 0.4 * x**2 + 0.1 * x**3)
    speed = typed(lambda x, y: jnp.sqrt((1 + y**2) / x), 2)
    step = typed(lambda x: jnp.exp(-x) + jnp.tanh(x))

    def descent(f: Any) -> Any:
        slope = operators.nabla(f, method=jax.jacfwd)
        return operators.integrate(operators.compose(speed, f, slope, share_inputs=True))

    def chain(f: Any) -> Any:
        for _ in range(3):
            f = operators.compose(step, f)
        return operators.integrate(f)

    lines = [f"h{n} = (x::Line) -> exp(-h{n - 1}(x)) + tanh(h{n - 1}(x))" for n in range(1, 4)]
    definitions = "\n".join(["h0 = (x::Line) -> y(x)", *lines, "sum(x::Line, h3(x))"])
    programs = {
        "sum(x::Line, sqrt((1 + grad(y)(x)^2) / y(x)))": descent,
        f"begin\n{definitions}\nend": chain,
    }
    for body, functional in programs.items():
        theirs = np.asarray(jax.vmap(jax.grad(functional)(y))(x))
        ours = cd.grad(f"{LINE}{CLAMPED}(y::V) -> {body}").compile()(Line=(x, 0 * x), y=curve)
        assert np.abs(ours - theirs).max() <= 1e-13 * np.abs(theirs).max()
