"""Absolute values and signs: derivatives that are finite and right at 0, Hessian products among them."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest

import combdiff as cd

POINTS = np.array([-1.7, -0.4, 0.0, 0.3, 2.1])
DIRECTION = np.array([0.7, -1.1, 0.9, 0.2, -0.5])
PLANE = np.array([1 - 2j, 0, -0.3 + 0.1j])
TURNED = np.array([0.5 + 0.1j, 1 - 0.7j, -0.2j])

ENTRIES = {
    # the term of a sum over i, its derivative by x(i), and the second one: what is constant is constant at 0 too
    "abs(x(i))": (np.sign, np.zeros_like),
    "sign(x(i))": (np.zeros_like, np.zeros_like),
    "sign(x(i)) * x(i)^2": (lambda x: 2 * abs(x), lambda x: 2 * np.sign(x)),
    "x(i) * abs(x(i))": (lambda x: 2 * abs(x), lambda x: 2 * np.sign(x)),
    "x(i) * sign(x(i))": (np.sign, np.zeros_like),
    "abs(x(i))^2": (lambda x: 2 * x, lambda x: 2 + 0 * x),
    "abs(x(i)) * abs(x(i)) + abs(x(i))": (lambda x: 2 * x + np.sign(x), lambda x: 2 + 0 * x),
    "abs(x(i)) * (abs(x(i)) + 1)": (lambda x: 2 * x + np.sign(x), lambda x: 2 + 0 * x),
    "abs(x(i))^3": (lambda x: 3 * x * abs(x), lambda x: 6 * abs(x)),
    "abs(x(i))^4": (lambda x: 4 * x**3, lambda x: 12 * x**2),
    "abs(x(i))^(5/2)": (lambda x: 2.5 * np.sign(x) * abs(x) ** 1.5, lambda x: 3.75 * abs(x) ** 0.5),
    "(x(i)^2)^(3/2)": (lambda x: 3 * x * abs(x), lambda x: 6 * abs(x)),
    "sqrt(x(i)^4)": (lambda x: 2 * x, lambda x: 2 + 0 * x),
    "sqrt(x(i)^2)": (np.sign, np.zeros_like),
    "exp(abs(x(i))^2)": (lambda x: 2 * x * np.exp(x**2), lambda x: (2 + 4 * x**2) * np.exp(x**2)),
}
DEFINED = {
    "begin r = i -> abs(x(i)); sum(i, r(i)^2) end": ENTRIES["abs(x(i))^2"],
    "begin r = i -> abs(x(i)); sum(i, 3 * r(i)^2 + r(i)) end": (
        lambda x: 6 * x + np.sign(x),
        lambda x: 6 + 0 * x,
    ),
    "begin r = i -> abs(x(i)); sum(i, r(i)^3) end": ENTRIES["abs(x(i))^3"],
    "begin r = i -> abs(x(i)); sum(i, x(i) * r(i)) end": ENTRIES["x(i) * abs(x(i))"],
}
PROGRAMS = {f"sum(i, {text})": found for text, found in ENTRIES.items()} | DEFINED


@pytest.mark.slow
@pytest.mark.parametrize("text", PROGRAMS)
def test_derivatives_of_real_sizes_and_signs_are_finite_and_right_at_zero(text: str) -> None:
    slope, curvature = PROGRAMS[text]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cd.grad(f"(x::RV) -> {text}").compile()(POINTS)
        product = cd.hvp(f"(x::RV) -> {text}").compile()(POINTS, DIRECTION)
        both = cd.grad(f"(x::RV) -> {text}").compile(hvp=True)(POINTS)
    np.testing.assert_allclose(found, slope(POINTS), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(product, curvature(POINTS) * DIRECTION, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(both[1](DIRECTION), curvature(POINTS) * DIRECTION, rtol=1e-12, atol=1e-14)


@pytest.mark.sampled
@pytest.mark.parametrize("text", PROGRAMS)
def test_checks_of_sizes_and_signs_pass(text: str) -> None:
    assert cd.grad(f"(x::RV) -> {text}").check()
    assert cd.hvp(f"(x::RV) -> {text}").check()


def along(z: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Re(z' k) entry by entry."""
    return (np.conj(z) * k).real


def turned(z: np.ndarray) -> np.ndarray:
    return np.divide(z, abs(z), out=np.zeros_like(z), where=z != 0)


COMPLEX = {
    "abs(z(i))^2": (lambda z: 2 * z, lambda z, k: 2 * k),
    "abs(z(i))^3": (lambda z: 3 * abs(z) * z, lambda z, k: 3 * abs(z) * k + 3 * along(turned(z), k) * z),
    "abs(z(i))^4": (lambda z: 4 * abs(z) ** 2 * z, lambda z, k: 4 * abs(z) ** 2 * k + 8 * along(z, k) * z),
    "abs(z(i)) * abs2(z(i))": (
        lambda z: 3 * abs(z) * z,
        lambda z, k: 3 * abs(z) * k + 3 * along(turned(z), k) * z,
    ),
}
COMPLEX |= {f"begin r = i -> abs(z(i)); sum(i, r(i)^{n}) end": COMPLEX[f"abs(z(i))^{n}"] for n in (2, 3, 4)}


@pytest.mark.sampled
@pytest.mark.parametrize("text", COMPLEX)
def test_derivatives_of_complex_sizes_are_finite_and_right_at_zero(text: str) -> None:
    slope, curvature = COMPLEX[text]
    text = text if text.startswith("begin") else f"sum(i, {text})"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cd.grad(f"(z::CV) -> {text}").compile()(PLANE)
        product = cd.hvp(f"(z::CV) -> {text}").compile()(PLANE, TURNED)
    np.testing.assert_allclose(found, slope(PLANE), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(product, curvature(PLANE, TURNED), rtol=1e-12, atol=1e-14)


def test_what_is_printed_has_no_quotient_by_a_size() -> None:
    assert str(cd.grad("(x::RV) -> sum(i, abs(x(i))^2)")) == "(x::RV) -> i -> 2 * x(i)"
    assert str(cd.grad("(z::CV) -> sum(i, abs(z(i))^2)")) == "(z::CV) -> i -> 2 * z(i)"
    assert str(cd.hvp("(x::RV) -> sum(i, abs(x(i)))")).endswith("-> 0")
    assert str(cd.grad("(x::R) -> log(abs(x))")) == "(x::R) -> 1 / x"


@pytest.mark.slow
def test_an_absolute_residual_is_right_where_a_residual_is_zero() -> None:
    program = """(A::RM, b::RV) -> (x::RV) -> begin
      r = i -> abs(sum(j, A(i, j) * x(j)) - b(i))
      sum(i, r(i)^2 / 2 + r(i))
    end"""
    A, x, k = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([0.5, 0.25]), np.array([1.0, -2.0])
    residual = np.array([0.0, 1.5])
    b = A @ x - residual
    np.testing.assert_allclose(cd.grad(program).compile()(A, b, x), A.T @ (residual + np.sign(residual)))
    np.testing.assert_allclose(cd.hvp(program).compile()(A, b, x, k), A.T @ A @ k)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "seed"), list(product((1, 2, 3, 5, 7), (0, 1))))
def test_sizes_of_residuals_agree_with_differences(size: int, seed: int) -> None:
    rng = np.random.default_rng([size, seed])
    A, b, x, k = rng.normal(size=(size, size)), *rng.normal(size=(3, size))
    text = "(A::RM, b::RV) -> (x::RV) -> begin r = i -> abs(sum(j, A(i, j) * x(j)) - b(i)); sum(i, r(i)^3 + r(i)) end"

    def slope(at: np.ndarray) -> np.ndarray:
        r = A @ at - b
        return A.T @ (3 * r * abs(r) + np.sign(r))

    np.testing.assert_allclose(cd.grad(text).compile()(A, b, x), slope(x), rtol=1e-11)
    h = 1e-6
    np.testing.assert_allclose(
        cd.hvp(text).compile()(A, b, x, k), (slope(x + h * k) - slope(x - h * k)) / (2 * h), rtol=1e-5, atol=1e-6
    )


# --- kinks and steps under an integral ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gradient", "second"),
    [
        ("f(x) * relu(x - a)", "-sum(x::R, f(x) * sign(relu(x - a)))", "k * f(a)"),
        ("f(x) * relu(a - 2 * x)", "sum(x::R, f(x) * sign(relu(a - 2 * x)))", "1/2 * k * f(1/2 * a)"),
        ("f(x) * max(x, a)", "1/2 * sum(x::R, f(x) * (1 + sign(a - x)))", "k * f(a)"),
        ("f(x) * min(x, a)", "1/2 * sum(x::R, f(x) * (1 + sign(x - a)))", "-k * f(a)"),
    ],
)
def test_a_kink_whose_place_moves_has_a_second_derivative(text: str, gradient: str, second: str) -> None:
    program = f"(f::RF) -> (a::R) -> sum(x::R, {text})"
    assert str(cd.grad(program)) == f"(f::RF) -> (a::R) -> {gradient}"
    assert str(cd.hvp(program)) == f"(f::RF) -> (a::R, k::R) -> {second}"


@pytest.mark.parametrize("name", ["floor", "ceil", "round"])
def test_steps_are_refused_where_their_places_move(name: str) -> None:
    with pytest.raises(cd.CombDiffError, match=f"{name}.x - a. jumps at places that move with a") as caught:
        cd.grad(f"(f::RF) -> (a::R) -> sum(x::R, f(x) * {name}(x - a))")
    assert caught.value.remedy
    assert str(cd.grad(f"(f::RF) -> (a::R) -> a * sum(x::R, f(x) * {name}(x))")).endswith(
        f"sum(x::R, f(x) * {name}(x))"
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("(x::RV) -> sum(i, abs(2 * x(i)) * x(i))", "4 * abs(x(i))"),
        ("(x::RV) -> sum(i, min(0, -2 * x(i))^2)", "-4 * min(0, -2 * x(i))"),
        ("(x::RV) -> sum(i, exp(max(x(i), x(i) / 5)))", "1/5 * exp(max(x(i), 1/5 * x(i))) * (3 + 2 * sign(x(i)))"),
    ],
)
def test_a_positive_number_is_taken_out_of_sizes_and_signs(program: str, expected: str) -> None:
    assert str(cd.grad(program)) == f"(x::RV) -> i -> {expected}"
