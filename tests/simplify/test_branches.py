"""Functions with a branch cut of what is real by its symmetry alone, on either side of zero."""

from __future__ import annotations

import cmath
from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd
from combdiff.gate.gate import Gate
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify.branches import taken_for_real
from combdiff.terms.branches import at_least_zero
from combdiff.terms.terms import Call, add, call, conj, fresh, mul, number, power
from combdiff.terms.types import COMPLEX, REAL
from tests.emit.array_libraries import Numbers

FORM = "sum((i::N{n}, j::N{n}), x(i)' * x(j) * A(i, j))"
OBJECTIVES: dict[str, Callable[[complex], complex]] = {
    "abs2(log(@))": lambda u: abs(np.log(u)) ** 2,
    "abs2(log(@ - 2))": lambda u: abs(np.log(u - 2)) ** 2,
    "real(log(@) * log(2 * @))": lambda u: (np.log(u) * np.log(2 * u)).real,
    "real((@)^(1/3))": lambda u: (u ** (1 / 3)).real,
    "abs2((@)^(1/3))": lambda u: abs(u ** (1 / 3)) ** 2,
    "real(sqrt(@) * (1 + im))": lambda u: (np.sqrt(u) * (1 + 1j)).real,
    "abs2(sqrt(@) + im)": lambda u: abs(np.sqrt(u) + 1j) ** 2,
    "real(exp(im * log(@)))": lambda u: np.exp(1j * np.log(u)).real,
}


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5))])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_function_of_a_hermitian_form_has_its_gradient_on_either_side_of_zero(objective: str, n: int) -> None:
    gradient = cd.grad(f"(A::Her{{n}}) -> (x::CV{{n}}) -> {objective.replace('@', FORM)}").compile()
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    A, identity = (A + A.conj().T) / 20, np.eye(n)
    x, v = (rng.normal(size=n) + 1j * rng.normal(size=n) for _ in range(2))
    for sign in (1, -1):
        form = A + sign * identity

        def value(h: float, side: float, form: np.ndarray = form) -> float:
            y = x + h * v
            return float(OBJECTIVES[objective](complex((y.conj() @ form @ y).real, side)).real)

        # where the value differs on both sides of the cut, rounding decides which one is met
        slopes = [(value(1e-6, side) - value(-1e-6, side)) / 2e-6 for side in (0.0, -0.0)]
        found = (gradient(form, x).conj() @ v).real
        assert any(np.isclose(found, slope, rtol=1e-6) for slope in slopes)


def test_a_logarithm_of_what_is_real_is_not_its_own_conjugate_to_the_gate() -> None:
    z = fresh("z", COMPLEX)
    for f in (call("log", add(z, conj(z))), power(add(z, conj(z)), number(0.5))):
        assert not Gate().agree(f, conj(f))
    for f in (call("exp", add(z, conj(z))), call("log", mul(z, conj(z)))):
        assert Gate().agree(f, conj(f))


def test_what_is_not_negative_may_go_into_a_root() -> None:
    u, z, r = fresh("u", COMPLEX), fresh("z", COMPLEX), fresh("r", REAL)
    assert taken_for_real(call("sqrt", add(mul(z, conj(z)), u)), {u: r}, ()) == call("sqrt", add(mul(z, conj(z)), u))
    assert taken_for_real(call("sqrt", add(mul(z, conj(z)), u)), {u: r}, {r}) == call("sqrt", add(mul(z, conj(z)), r))
    assert taken_for_real(power(u, number(3)), {u: r}, ()) == power(r, number(3))


@pytest.mark.parametrize("negative", [False, True])
def test_what_may_be_negative_is_not_said_not_to_be(negative: bool) -> None:
    z, r = fresh("z", COMPLEX), fresh("r", REAL)
    other = number(-1) if negative else number(1)
    for t in (
        mul(other, z, conj(z)),
        mul(other, call("abs2", z)),
        mul(other, power(r, number(2))),
        mul(other, Call("exp", (r,))),
        mul(other, power(mul(z, conj(z)), number(-0.5))),
    ):
        assert at_least_zero(t) != negative
    for t in (r, z, mul(z, z), power(r, number(3)), power(z, number(2)), Call("exp", (z,)), mul(z, conj(z), r)):
        assert not at_least_zero(t)


NESTED: dict[str, Callable[[float], complex]] = {
    "log(complex(abs(x)))": lambda x: cmath.log(abs(x)),
    "sin(complex(3 * abs(x)))": lambda x: cmath.sin(3 * abs(x)),
    "2 * log(complex(x^2)) + 1": lambda x: 2 * cmath.log(x * x) + 1,
    "x - sqrt(complex(x^2 + 1))": lambda x: x - cmath.sqrt(x * x + 1),
    "x - 3 * exp(complex(x))": lambda x: x - 3 * cmath.exp(x),
    "cos(complex(x^2 + 1))^3 - 1/10": lambda x: cmath.cos(x * x + 1) ** 3 - 0.1,
}


@pytest.mark.sampled
@pytest.mark.parametrize("outer", ["sqrt", "log", "(3/4)-th power"])
@pytest.mark.parametrize("inner", NESTED)
def test_a_function_of_what_is_meant_as_complex_and_not_negative_is_complex(inner: str, outer: str) -> None:
    """log(complex(|x|)) is real, and negative for |x| < 1: its root is imaginary, not nan. So is x − √(x² + 1)."""
    of = f"({inner})^(3/4)" if outer == "(3/4)-th power" else f"{outer}({inner})"
    f = cd.grad(f"(a::R) -> (x::R) -> real({of}) + a * imag({of})").compile(value=True)
    take = {"sqrt": cmath.sqrt, "log": cmath.log}.get(outer, lambda z: z**0.75)

    def objective(a: float, x: float) -> float:
        z = take(NESTED[inner](x))
        return z.real + a * z.imag

    for x in (-2.3, -0.4, 0.2, 0.7, 1.9):
        value, gradient = f(0.7, x)
        assert np.isclose(value, objective(0.7, x), rtol=1e-12)
        assert np.isclose(gradient, (objective(0.7, x + 1e-6) - objective(0.7, x - 1e-6)) / 2e-6, rtol=1e-5, atol=1e-8)


SIGNED = """@domain Z begin base = I; symmetric = true end
@space T begin type = (Z) -> C; symmetries = (((1,), :inegc),) end
(x::T) -> (y::(Z) -> R) -> (i -> {}(x(i)) * y(-i))"""


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["log", "sqrt", "asin", "acos", "acosh", "atanh"])
def test_what_is_its_own_image_lies_on_the_same_side_of_a_cut_as_its_conjugate(name: str) -> None:
    d = cd.pullback(SIGNED.format(name))
    f = d.compile()
    with np.errstate(invalid="ignore"):
        for real in (-3.0, -0.5, 0.5, 3.0):  # x(0) is real by the symmetry alone
            x = np.array([1 - 2j, real, 1 + 2j])
            y, k = np.ones(3), np.array([1j, 1 + 2j, 2 - 1j])
            values = getattr(np, {"log": "log", "sqrt": "sqrt"}.get(name, name.replace("a", "arc", 1)))(x)
            np.testing.assert_allclose(f(x, y, k), (k * values.conj()).real[::-1], rtol=1e-12)
    assert all(d.check(seed) for seed in range(3))


CROSSED: dict[str, tuple[Callable[[float], float], Callable[[complex], complex]]] = {
    "log(x(i)')": (lambda r: r, np.log),
    "where(a < 1, log(x(i)'))": (lambda r: r, np.log),
    "log(-3 * x(i))": (lambda r: -3 * r, np.log),
    "log(x(i)' * x(i)' - 3)": (lambda r: r * r - 3, np.log),
    "log(2 * exp(x(i)') - 3)": (lambda r: 2 * np.exp(r) - 3, np.log),
    "(x(i)')^(1/2)": (lambda r: r, np.sqrt),
    "where(a < 1, (x(i)')^(a + 1/2))": (lambda r: r, np.sqrt),
    "asin(2 * x(i)')": (lambda r: 2 * r, np.arcsin),
    "angle(x(i)')": (lambda r: r, np.angle),
}
"""Functions with a cut of a number u(x) that is real where x is, and the functions u."""


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch", "dask"])
@pytest.mark.parametrize("value", CROSSED)
def test_on_a_cut_the_value_is_that_from_above(value: str, backend: str) -> None:
    numbers, (argument, function) = Numbers(backend), CROSSED[value]
    d = cd.simplified(f"(x::CV, a::R) -> i -> {value}")
    x = np.array([-2, -0.5, 0.5, 2], complex)
    from_above = [function(complex(argument(z.real), 0.0)) for z in x]
    found = numbers.back(d.compile(backend)(numbers.to(x), numbers.to(0.0)))
    np.testing.assert_allclose(found, from_above, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(evaluate(d.program, {})(x, 0.0), from_above, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", ["asin", "atanh"])
def test_an_odd_function_is_not_odd_on_its_cut(name: str) -> None:
    f = getattr(np, name.replace("a", "arc", 1))
    d = cd.simplified(f"(x::RV) -> i -> {name}(complex(x(i))) + {name}(-complex(x(i)))")
    x = np.array([-2, -0.5, 0.5, 2])
    np.testing.assert_allclose(d.compile()(x), f(x + 0j) + f(-x + 0j), rtol=1e-14, atol=1e-15)
    assert np.abs(d.compile()(x)).max() > 1
