"""Derivatives in programs and in loops: tangents by `jvp`, descent in descent, conditions around what stops early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.calculus.forward import pushforward_of
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.terms.terms import Lam, Loop, subterms
from tests.promises import differences

TANGENTS = {
    "of a number": "(x::R) -> jvp((y::R) -> sin(y) * y)(x, x)",
    "of two numbers": "(x::R, y::R) -> jvp((a::R, b::R) -> a * sin(b))(x, y, 1, x)",
    "of a tensor": "(x::RV, v::RV) -> sum(i, jvp((y::RV) -> j -> y(j)^3)(x, v)(i)^2)",
    "of a complex tensor": (
        "(A::CM) -> (z::CV) -> sum(i, abs2(jvp((w::CV) -> i -> w(i)' * sum(j, A(i, j) * w(j)))(z, z)(i)))"
    ),
    "of an unknown function": "(f::RF) -> (x::RV) -> sum(i, jvp(f)(x(i), x(i)))",
    "along a symmetric matrix": "(A::Sym) -> (x::RV) -> jvp((B::Sym) -> sum((i, j), B(i, j) * x(i)^2 * x(j)))(A, A)",
    "in a loop": "(x::R) -> iterate((s, t) -> s - jvp((y::R) -> y^2 * x)(s, 1) / 10, 1, 5)",
    "of a loop in each direction": (
        "(x::RV{n}) -> begin\n"
        "  f = (y::RV{n}) -> begin w = iterate((s, t) -> (j::N{n}) -> s(j)^2 / 2 + y(j)^2, y, 3); sum(i, w(i)) end\n"
        "  z = iterate((z, t) -> begin\n"
        "    v = (i::N{n}) -> jvp(f)(z, j -> delta(i, j, 1))\n"
        "    i -> z(i) - v(i) / 10\n"
        "  end, x, 2)\n"
        "  sum(i, z(i)^2)\nend"
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", TANGENTS)
def test_a_tangent_in_a_program_is_differentiated_like_any_value(name: str) -> None:
    assert cd.grad(TANGENTS[name]).check()


@pytest.mark.slow
def test_a_tangent_is_the_gradient_along_it() -> None:
    f = "f = (y::RV) -> sum(i, exp(y(i)) * y(i)^2)"
    forward = cd.simplified(f"(x::RV, v::RV) -> begin\n  {f}\n  jvp(f)(x, v)\nend").compile()
    reverse = cd.simplified(f"(x::RV, v::RV) -> begin\n  {f}\n  sum(i, grad(f)(x)(i) * v(i))\nend").compile()
    x, v = np.array([0.3, -0.8, 1.1]), np.array([1.0, 2.0, -0.5])
    np.testing.assert_allclose(forward(x, v), reverse(x, v), rtol=1e-13)


def test_a_program_may_ask_for_its_own_pushforward() -> None:
    d = cd.simplified("(a::R) -> jvp((x::RV) -> sum(i, a * x(i)^2))")
    assert d.mode == "jvp"
    assert str(d) == str(cd.jvp("(a::R) -> (x::RV) -> sum(i, a * x(i)^2)"))


def test_only_maps_of_numbers_and_tensors_have_tangents() -> None:
    with pytest.raises(cd.CombDiffError, match="jvp takes a map, found a real number"):
        cd.grad("(x::R) -> jvp(x)(x, 1)")
    with pytest.raises(cd.CombDiffError, match="which is an integer"):
        cd.grad("(x::RV) -> jvp((i::N) -> x(i))(0, 1)")


def test_tangents_that_stay_zero_are_no_states() -> None:
    f = infer(
        parse("(a::R) -> begin (x, y, z) = iterate(((x, y, z), t) -> (x / 2, y * a, z + x), (1, 1, 0), 5); y + z end")
    )
    assert isinstance(f, Lam)
    states = {len(u.states) for u in subterms(pushforward_of(f)) if isinstance(u, Loop)}
    assert states == {4}


@pytest.mark.slow
def test_a_gradient_by_several_numbers_is_taken_apart_and_differentiated() -> None:
    d = cd.grad("(x::R, y::R) -> begin (a, b) = grad((u::R, v::R) -> sin(u * v) + v^3)(x, y); a^2 * b end")
    assert d.check()


DESCENT = """(a::R) -> begin
  cost = (w::R) -> begin
    (x, v) = iterate(((x, v), t) -> (x + v / 4, v - w * (x - a) / 4), (0, 1), 12, (x, v) -> x < 2)
    (x / v - 1)^2
  end
  (w, c) = iterate(((w, c), t) -> begin
    moved = w - SLOPE / 20
    next = cost(moved)
    (where(next < c, moved, w), where(next < c, next, c))
  end, (1 / 2, cost(1 / 2)), 6, (w, c) -> 1e-3 < c)
  w
end"""


def descent(a: float) -> float:
    def cost(w: Any) -> Any:
        x, v = 0.0, 1.0
        for _ in range(12):
            if not complex(x).real < 2:
                break
            x, v = x + v / 4, v - w * (x - a) / 4
        return (x / v - 1) ** 2

    w, c = 0.5, cost(0.5)
    for _ in range(6):
        if not c > 1e-3:
            break
        moved = w - cost(w + 1e-30j).imag / 1e-30 / 20
        if cost(moved) < c:
            w, c = moved, cost(moved)
    return w


@pytest.mark.slow
@pytest.mark.parametrize("slope", ["grad(cost)(w)", "jvp(cost)(w, 1)"])
def test_descent_over_a_loop_that_stops_early_is_that_of_python(slope: str) -> None:
    f = cd.simplified(DESCENT.replace("SLOPE", slope)).compile()
    for a in (0.2, 0.7, 1.5):
        np.testing.assert_allclose(f(a), descent(a), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_derivative_that_a_condition_leaves_out_never_matters() -> None:
    text = """(x::RV{n}) -> iterate((s, t) -> begin
      f = (y::R) -> begin q = iterate((q, r) -> q / y, 1, 2); 1 / q end
      where(0 < x(t), s + grad(f)(x(t)), s)
    end, 1, n)"""
    f = cd.simplified(text).compile()
    x = np.array([0.7, 0.0, 1.3])
    np.testing.assert_allclose(f(x), 1 + 2 * 0.7 + 2 * 1.3, rtol=1e-12)


@pytest.mark.slow
def test_code_leaves_a_loop_that_stops_and_stores_the_states_of_later_steps() -> None:
    d = cd.grad(
        "(x::RV) -> begin y = iterate((y, t) -> i -> y(i) / 2 + x(i), x, 40, y -> norm(y) < 3); sum(i, y(i)^3) end"
    )
    assert "break" in d.source(value=True)

    def objective(x: Any) -> Any:
        y = x
        for _ in range(40):
            if not np.sqrt((np.real(y) ** 2).sum()) < 3:
                break
            y = y / 2 + x
        return (y**3).sum()

    for x in (np.array([0.4]), np.array([0.9, 1.3, 0.2]), np.array([4.0, 1.0])):
        value, slope = d.compile(value=True)(x)
        np.testing.assert_allclose(value, objective(x), rtol=1e-12)
        np.testing.assert_allclose(slope, differences(objective, [x])[0], rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_the_time_for_code_does_not_grow_with_uses_of_a_definition() -> None:
    uses = "\n".join(f"a{n + 1} = a{n} * a{n} / (1 + a{n})" for n in range(40))
    text = f"(x::R) -> iterate((a0, t) -> begin\n{uses}\na40 + x\nend, x, 3)"
    assert cd.simplified(text).source().count("for ") == 1


@pytest.mark.slow
def test_rows_that_an_inner_loop_reads_are_taken_at_the_step_around_it() -> None:
    text = "(A::(N{n}, N{m}) -> R) -> (x::R) -> iterate((s, t) -> iterate((u, r) -> sin(u) * x + A(t, r), s, m), 1, n)"
    d = cd.grad(text)
    assert "sum(axis" not in d.source().partition("for ")[2].rpartition("for ")[0]
    assert d.check()
