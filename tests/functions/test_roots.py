"""Dirac's δ of a function that is not affine: its root, where the function is seen to be strictly increasing."""

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import UnsupportedError
from tests.reading_back import assert_reads_back

PROGRAMS = {
    "a cube": "(f::RF) -> (a::R) -> sum(x::R, delta(x^3 + x, a, f(x)))",
    "a decreasing function": "(f::RF, y::R) -> (a::R) -> sum(x::R, delta(y - 2 * x - tanh(x), a, f(x)))",
    "a composition": "(f::RF) -> (a::R) -> sum(x::R, delta(sinh(x + x^3 / 3), a, f(x) * a))",
    "a number in front": "(f::RF) -> (a::R) -> a * sum(x::R, 3 * delta(a, x + exp(x), f(x)))^2",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["grad", "hvp"])
def test_derivatives_agree_with_differences(name: str, mode: str) -> None:
    d = getattr(cd, mode)(PROGRAMS[name])
    assert d.check(), d.check()
    assert_reads_back(d.term, values=False)


def test_the_value_is_that_at_the_root() -> None:
    """∫ δ(x³ + x − a) f(x) dx is f(r) / (3 r² + 1); its derivative by a is that of the implicit function."""
    slope = cd.grad(PROGRAMS["a cube"]).compile()
    r = 0.7
    found = slope(f=np.exp, grad_f=np.exp, a=r**3 + r)
    rate = 1 / (3 * r**2 + 1)
    assert found == pytest.approx(rate**2 * np.exp(r) - 6 * r * rate**3 * np.exp(r), rel=1e-12)


@pytest.mark.parametrize("inner", ["a * x^3 + x", "exp(x) - a", "x^2 - a", "x^3 - x - a", "sin(x) - a"])
def test_what_is_not_seen_to_have_one_root_is_refused(inner: str) -> None:
    with pytest.raises(UnsupportedError, match="no integral removes this δ"):
        cd.grad(f"(f::RF) -> (a::R) -> sum(x::R, delta({inner}, 0, f(x)))")


def test_the_derivative_by_a_function_of_an_increasing_function() -> None:
    """∫ h(x) f(x³ + x)² dx: 2 h(r) f(t) / (3 r² + 1) at t = r³ + r, of an interval where r lies in it."""
    d = cd.grad("(h::RF) -> (f::RF) -> sum(x::R, h(x) * f(x^3 + x)^2)")
    assert "delta" not in str(d)
    assert "2 * h(root((x::R) -> x^3 + x - d)) * f(d)" in str(d)
    found = d.compile()(h=np.cos, f=np.exp, d=0.5**3 + 0.5)
    assert found == pytest.approx(2 * np.cos(0.5) * np.exp(0.625) / 1.75, rel=1e-12)
    lines = "@domain Line begin base = R; lower = 0; upper = 1 end\n"
    lines += "@domain Wide begin base = R; lower = 0; upper = 3 end\n"
    f = cd.grad(lines + "(h::RF) -> (f::(Wide) -> R) -> sum(x::Line, h(x) * f(x^3 + x)^2)").compile()
    places = np.array([0.1, 0.625, 1.9, 2.1])
    r = np.array([0.0990, 0.5, 0.97, 1.02])
    for _ in range(50):
        r -= (r**3 + r - places) / (3 * r**2 + 1)
    expected = np.where(r <= 1, 2 * np.cos(r) * np.exp(places) / (3 * r**2 + 1), 0)
    assert np.allclose(f(Wide=(places, 0 * places), h=np.cos, f=np.exp), expected, rtol=1e-12)
