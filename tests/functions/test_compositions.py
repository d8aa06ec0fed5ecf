"""Chains of definitions, of numbers and of functions under integrals: the cost is linear in their length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.terms.terms import Call, Let, subterms
from tests.promises import differences

LINE = "@domain Line begin base = R; lower = 0; upper = 1 end\n@space F begin type = (Line) -> R end\n"
RULE = cd.quadrature.gauss(30)
F = Polynomial([0.3, -0.5, 0.7])
V = Polynomial([0.1, 0.4, -0.3])


def chain(depth: int, of: str, point: str) -> str:
    """h₁, …, each of which uses the one before twice."""
    links = [of, *(f"h{k}(x)" for k in range(1, depth))]
    return "\n".join(f"h{k} = (x::{point}) -> exp(-{u}) + tanh({u})" for k, u in enumerate(links, start=1))


def of_numbers(depth: int) -> str:
    return f"(z::R) -> begin\n{chain(depth, 'x', 'R')}\nh{depth}(z)^2\nend"


def of_functions(depth: int) -> str:
    return f"{LINE}(f::F) -> begin\n{chain(depth, 'f(x)', 'Line')}\nsum(x::Line, h{depth}(x)^2)\nend"


def last(depth: int, u: Any) -> Any:
    for _ in range(depth):
        u = np.exp(-u) + np.tanh(u)
    return u


@pytest.mark.slow
@pytest.mark.parametrize("program", [of_numbers, of_functions])
@pytest.mark.parametrize("mode", ["grad", "jvp"])
def test_a_result_grows_with_the_length_of_a_chain(program, mode: str) -> None:
    lengths = [len(str(getattr(cd, mode)(program(depth)))) for depth in (5, 10, 20)]
    assert lengths[2] - lengths[1] < 2.5 * (lengths[1] - lengths[0])
    assert lengths[2] < 2_500


@pytest.mark.slow
def test_a_definition_keeps_its_name_for_the_value_of_its_calls() -> None:
    text = str(cd.grad(of_numbers(5)))
    assert [line.split(" = ")[0].strip() for line in text.splitlines()[1:5]] == ["h1", "h2", "h3", "h4"]
    text = str(cd.grad(of_functions(3)))
    assert "h2 = exp(-h1) + tanh(h1)" in text


RATES = """
  a = {v} -> (1/10) * ({x} + 40) / (1 - exp(-({x} + 40) / 10))
  b = {v} -> 4 * exp(-({x} + 65) / 18)
  m = {v} -> a({u}) / (a({u}) + b({u}))
"""


@pytest.mark.slow
def test_calls_at_entries_read_like_definitions_of_entries() -> None:
    called = RATES.format(v="(v::R)", x="v", u="v")
    indexed = RATES.format(v="i", x="V(i)", u="i")
    ours = cd.grad(f"(V::RV, g::R) -> begin {called} sum(i, g * m(V(i))^3 * V(i)) end")
    theirs = cd.grad(f"(V::RV, g::R) -> begin {indexed} sum(i, g * m(i)^3 * V(i)) end")
    assert "a = i -> " in str(ours)
    assert len(str(ours)) < 1.2 * len(str(theirs))
    rng = np.random.default_rng(1)
    for n in (1, 2, 3):
        x = rng.normal(size=n)
        for a, b in zip(ours.compile()(x, 0.7), theirs.compile()(x, 0.7), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)


@pytest.mark.parametrize("calls", ["f(exp(x))", "f(exp(x)) * f(exp(x))^2"])
def test_what_a_call_is_given_is_written_once(calls: str) -> None:
    term = infer(parse(f"(x::R) -> begin f = (v::R) -> v * sin(v); {calls} end"))
    assert len([u for u in subterms(term) if isinstance(u, Call) and u.primitive == "exp"]) == 1
    assert len({u.bindings for u in subterms(term) if isinstance(u, Let)}) == 1


CALLS = {
    "at what a sum binds, in a sum that binds more": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); sum(i, x(i) + sum(j, f(x(i) * y) * f(x(i) * y)^2 * x(j))) end",
        lambda x, y, f: np.sum(x + f(x * y) ** 3 * np.sum(x)),
    ),
    "at sums": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); f(sum(i, x(i) * y)) * f(sum(i, x(i) * y))^2 end",
        lambda x, y, f: f(np.sum(x) * y) ** 3,
    ),
    "at an index that is another one later": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); g = i -> f(x(i)) * y + f(x(i))^2; sum((i, j), g(i) * g(j)) end",
        lambda x, y, f: np.sum(f(x) * y + f(x) ** 2) ** 2,
    ),
    "of a function that reads what is bound around it": (
        "sum(i, begin f = (v::R) -> exp(-v) + 3 * v * x(i)^0 + sin(v); f(y) * f(y)^2 * x(i) + f(x(i)) end)",
        lambda x, y, f: np.sum(f(y) ** 3 * x + f(x)),
    ),
    "of calls": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); g = (v::R) -> f(v) * f(v)^2; sum(i, g(f(x(i)) * y)) + g(y) end",
        lambda x, y, f: np.sum(f(f(x) * y) ** 3) + f(y) ** 3,
    ),
    "in a maximum": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); maximum(i, f(x(i)) * y + f(x(i))^2) end",
        lambda x, y, f: np.max(f(x) * y + f(x) ** 2),
    ),
    "under a condition": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); sum(i, where(x(i) < y, f(x(i)) + f(x(i))^2, f(y))) end",
        lambda x, y, f: np.sum(np.where(x < y, f(x) + f(x) ** 2, f(y))),
    ),
    "of another name for a function, and at a constant": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); g = (v::R) -> f(v); sum(i, g(x(i)) * f(x(i)) + f(2) * y^2) end",
        lambda x, y, f: np.sum(f(x) ** 2 + f(2.0) * y**2),
    ),
    "in an equation": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); root((u::R) -> f(u * 0) * u + f(u * 0) - f(y)) * x(0) end",
        lambda x, y, f: (f(y) - f(0.0)) / f(0.0) * x[0],
    ),
    "in a loop": (
        "begin f = (v::R) -> exp(-v) + 3 * v + sin(v); iterate((s, t) -> f(s * y) / 9 + f(s * y)^2 / 99, x(0), 3) end",
        lambda x, y, f: step(step(step(x[0], y, f), y, f), y, f),
    ),
}


def step(s: Any, y: Any, f: Any) -> Any:
    return f(s * y) / 9 + f(s * y) ** 2 / 99


@pytest.mark.sampled
@pytest.mark.parametrize("name", CALLS)
def test_calls_mean_what_they_say(name: str) -> None:
    body, objective = CALLS[name]
    d = cd.grad(f"(x::RV, y::R) -> {body}")
    assert d.check()
    for n in (1, 2, 3, 5):
        x, y = np.linspace(0.2, 0.9, n), 0.6
        given = [x, np.array(y)]
        value, *slopes = d.compile(value=True)(x, y)
        objective_of = lambda x, y: objective(x, y, lambda v: np.exp(-v) + 3 * v + np.sin(v))  # noqa: E731
        np.testing.assert_allclose(value, objective_of(*given), rtol=1e-12)
        for found, expected in zip(slopes, differences(objective_of, given), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.sampled
@pytest.mark.parametrize("depth", [1, 2, 3, 5, 7])
def test_a_chain_of_numbers_against_differences(depth: int) -> None:
    found = cd.grad(of_numbers(depth)).compile()(0.3)
    expected = (last(depth, 0.3 + 1e-5) ** 2 - last(depth, 0.3 - 1e-5) ** 2) / 2e-5
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_a_chain_of_functions_against_differences(depth: int) -> None:
    x, w = np.polynomial.legendre.leggauss(30)
    x, w = (x + 1) / 2, w / 2

    def value(e: float) -> float:
        return float(w @ last(depth, F(x) + e * V(x)) ** 2)

    total, bulk = cd.grad(of_functions(depth)).compile(value=True)(f=F, Line=RULE)
    assert total == pytest.approx(value(0), rel=1e-13)
    slope = (value(1e-4) - value(-1e-4)) / 2e-4
    assert w @ (bulk * V(x)) == pytest.approx(slope, rel=1e-6, abs=1e-9)
    assert cd.jvp(of_functions(depth)).compile()(f=F, k=V, Line=RULE) == pytest.approx(slope, rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3])
def test_second_variations_of_a_chain_against_differences(depth: int) -> None:
    x, w = np.polynomial.legendre.leggauss(30)
    x, w = (x + 1) / 2, w / 2
    gradient = cd.grad(of_functions(depth)).compile()
    found = cd.hvp(of_functions(depth)).compile()(f=F, k=V, Line=RULE)
    steps = [np.asarray(gradient(f=F + e * V, Line=RULE)) for e in (1e-4, -1e-4)]
    np.testing.assert_allclose(found, (steps[0] - steps[1]) / 2e-4, rtol=1e-6, atol=1e-8)


TWO = "(f::F, g::F) -> begin s = (x::Line) -> tanh(f(x) * g(x)); sum(x::Line, exp(s(x)) * s(x) + s(x)^2 * x) end"


@pytest.mark.slow
def test_two_functions_and_the_place_itself() -> None:
    x, w = np.polynomial.legendre.leggauss(30)
    x, w = (x + 1) / 2, w / 2
    slopes = cd.grad(LINE + TWO).compile()(f=F, g=V, Line=RULE)
    s = np.tanh(F(x) * V(x))
    outer = (np.exp(s) * (1 + s) + 2 * s * x) * (1 - s**2)
    np.testing.assert_allclose(slopes[0], outer * V(x), rtol=1e-12)
    np.testing.assert_allclose(slopes[1], outer * F(x), rtol=1e-12)


@pytest.mark.slow
def test_a_kernel_between_points() -> None:
    program = (
        "(f::F) -> begin g = (s::Line) -> tanh(f(s)); sum((x::Line, y::Line), exp(-(x - y)^2) * g(x) * g(y)^2) end"
    )
    x, w = np.polynomial.legendre.leggauss(30)
    x, w = (x + 1) / 2, w / 2
    found = cd.grad(LINE + program).compile()(f=F, Line=RULE)
    k, g = np.exp(-((x[:, None] - x) ** 2)) * w, np.tanh(F(x))
    np.testing.assert_allclose(found, (k @ g**2 + 2 * g * (k @ g)) * (1 - g**2), rtol=1e-12)


def test_a_function_at_a_moving_place_is_not_read_as_an_array() -> None:
    program = LINE + "(f::F, a::R) -> sum(x::Line, exp(f(x)) * a) + f(0)"
    assert "f(0)" not in str(cd.grad(program))
    bulk, lower, upper, by_a = cd.grad(program).compile()(f=F, a=1.5, Line=RULE)
    x = (np.polynomial.legendre.leggauss(30)[0] + 1) / 2
    np.testing.assert_allclose(bulk, 1.5 * np.exp(F(x)), rtol=1e-12)
    assert (lower, upper) == pytest.approx((1, 0))
    assert by_a == pytest.approx(float(np.polynomial.legendre.leggauss(30)[1] @ np.exp(F(x))) / 2)


JUMPING = [
    "(c::RV) -> (f::F) -> sum(x::Line, maximum(i, c(i) * f(x)))",
    "(f::F) -> sum(x::Line, abs(f(x) - x))",
    "(f::F, g::F) -> sum(x::Line, atan2(f(x), g(x)))",
]


@pytest.mark.parametrize("program", JUMPING)
def test_the_second_variation_of_what_has_kinks_is_refused(program: str) -> None:
    """The slope jumps at a place that moves with f, which leaves a δ; as arrays it would be 0 on either side."""
    with pytest.raises(cd.UnsupportedError, match=r"jump|changes its sign"):
        cd.hvp(LINE + program)


@pytest.mark.parametrize("call", ["h30(2, z)", "h30(z, 1)", "h30(2, 3) + z"])
def test_a_chain_at_constants_is_no_longer_than_at_numbers(call: str) -> None:
    before = ["v", *(f"h{k}(a, v)" for k in range(1, 30))]
    links = [f"h{k} = (a::R, v::R) -> exp(-{u}) + tanh({u}) + a" for k, u in enumerate(before, start=1)]
    assert len(str(cd.grad("(z::R) -> begin\n" + "\n".join(links) + f"\n{call}\nend"))) < 3_500
