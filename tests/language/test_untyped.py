"""Definitions whose parameters have no types: tensors of indices, and functions of what else they are called with."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.errors import LanguageError

ALIKE = {
    "a number": ("(x::RV) -> begin {}; sum(i, f(x(i))) end", "f = t -> t^2 + sin(t)", "f = (t::R) -> t^2 + sin(t)"),
    "entries in turn": ("(x::RV) -> begin {}; sum(f.(x)) end", "f = t -> t^2", "f = (t::R) -> t^2"),
    "a vector": (
        "(A::RM) -> (x::RV) -> begin {}; f(x) end",
        "f = v -> v' * A * v",
        "f = (v::RV) -> v' * A * v",
    ),
    "a map": (
        "(x::RV{n}) -> begin {}; f(i -> x(i) - 1) end",
        "f = v -> norm(v)^2",
        "f = (v::RV{n}) -> norm(v)^2",
    ),
    "a matrix and a vector": (
        "(A::RM{n, n}) -> (x::RV{n}) -> begin {}; sum(f(A, f(A, x))) end",
        "f = (M, v) -> M * v",
        "f = (M::RM{n, n}, v::RV{n}) -> M * v",
    ),
    "two points": (
        "(x::RV{n}, y::RV{n}) -> begin {}; f(x, y) end",
        "f = (a, b) -> sum((a - b) .^ 4)",
        "f = (a::RV{n}, b::RV{n}) -> sum((a - b) .^ 4)",
    ),
    "an exponent": ("(x::RV) -> begin {}; sum(i, f(x(i), 3)) end", "f = (b, n) -> b^n", "f = (b::R, n::R) -> b^n"),
    "numbers that are written": (
        "(x::R) -> begin {}; f(x) * f(3) - f(0) end",
        "f = t -> t^2 - 2 * t + 1",
        "f = (t::R) -> t^2 - 2 * t + 1",
    ),
    "a complex number": ("(z::CV) -> begin {}; sum(f.(z)) end", "f = w -> abs2(w - 1)", "f = (w::C) -> abs2(w - 1)"),
    "a vector field and a step of it": (
        "(h::R) -> (x::RV{2}) -> begin {}; sum(iterate(step, x, 3)) end",
        "f = y -> [y[1], -sin(y[0])]; step = (y, t) -> y + h * f(y + h / 2 * f(y))",
        "f = (y::RV{2}) -> [y[1], -sin(y[0])]; step = (y::RV{2}, t) -> y + h * f(y + h / 2 * f(y))",
    ),
    "a step that is a tensor, too": (
        "(x::RV{n}) -> begin {}; iterate(step, 1, n)^2 end",
        "step = (y, t) -> y / 2 + x(t)",
        "step = (y::R, t) -> y / 2 + x(t)",
    ),
    "a step of two states": (
        "(x::RV{n}) -> begin {}; (u, v) = iterate(step, (0, 1), n); u * v end",
        "step = ((a, b), t) -> (b, a * b + x(t))",
        "step = ((a::R, b::R), t) -> (b, a * b + x(t))",
    ),
    "a definition that another one calls": (
        "(x::RV) -> begin {}; sum(i, g(x(i))) end",
        "f = t -> t^3; g = t -> f(t) - f(2 * t)",
        "f = (t::R) -> t^3; g = (t::R) -> f(t) - f(2 * t)",
    ),
    "a function of functions": (
        "(F::(RF) -> R) -> (x::R) -> begin {}; F(f) end",
        "f = t -> x * t^2",
        "f = (t::R) -> x * t^2",
    ),
    "an applied map": ("(x::RV) -> begin {}; sum(i, g(x(i))) end", "g = u -> (t -> t^2)(u)", "g = (u::R) -> u^2"),
}


@pytest.mark.parametrize("name", ALIKE)
def test_a_function_takes_what_it_is_called_with(name: str) -> None:
    """It is the function with the types of its arguments."""
    text, untyped, typed = ALIKE[name]
    found, expected = (str(cd.grad(text.replace("{}", f))) for f in (untyped, typed))
    assert found == expected


def test_what_is_called_with_indices_is_a_tensor() -> None:
    """Which keeps its name, also where it is a function elsewhere."""
    text = "(y::RV{n}) -> (x::RV{n}) -> begin f = t -> t^2 * x(0); sum(i, f(x(i)) * f(i) * y(i)) end"
    assert "f = t -> t^2 * x(0)" in str(cd.grad(text))
    same = "(y::RV{n}) -> (x::RV{n}) -> begin f = t -> t^2 * x(0); sum(i, x(i)^2 * x(0) * f(i) * y(i)) end"
    assert str(cd.grad(text)) == str(cd.grad(same))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(x::RV) -> begin f = i -> x(i) + q; sum(f) end", "unknown name q"),
        ("(x::RV) -> begin f = y -> y(0) + q; f(x) end", "unknown name q"),
        ("(x::RV) -> begin f = y -> y(0); sum(i, x(i) * f(i)) end", "y is an index and cannot be applied"),
        ("(x::RV) -> begin f = y -> y(0); sum(f) end", "y is an index and cannot be applied"),
        ("(x::RV) -> begin f = y -> y(0); sum(x) end", "y is an index and cannot be applied"),
        ("(x::RV) -> begin f = y -> x(y); f(x(0)) end", "an index is expected here, found a real number"),
        ("(x::RV) -> begin f = y -> x(y); f(1 / 2) end", "an index is an integer, and this number is none"),
        ("(x::RV) -> begin f = (a, b) -> a(0) * b; f(x) end", "f takes 2 arguments, and 1 is given"),
        ("(x::RV) -> begin f = y -> x(y); f(x, x) end", "f takes 1 index, and 2 are given"),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(text: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        cd.grad(text)
