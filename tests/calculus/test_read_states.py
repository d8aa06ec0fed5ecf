"""States of loops that nothing reads are left out, and a state that several loops go through is computed by one."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.explanation import explanation

REGULATOR = """(A::RM{n, n}, B::RM{n, m}, Q::RM{n, n}, R::RM{m, m}, x0::RV{n}) -> (u::RM{T, m}) -> begin
  (x, J) = iterate(((x, J), t) -> (
      i -> sum(j, A(i, j) * x(j)) + sum(k, B(i, k) * u(t, k)),
      J + sum((i, j), x(i) * Q(i, j) * x(j)) + sum((k, l), u(t, k) * R(k, l) * u(t, l))), (x0, 0), T)
  J + sum((i, j), x(i) * Q(i, j) * x(j))
end"""

CHAIN = """(w::RV{n}) -> begin
  (a, b, c, d) = iterate(((a, b, c, d), t) -> (sin(a) * w(t), a * b + w(t), c + b, d * c), (1/2, 1, 0, 1), n)
  b
end"""

STOPPED = """(T::Int) -> (a::R, b::R) -> begin
  (x, J, k) = iterate(((x, J, k), t) -> (x - a * (x^2 - 2) / (2 * x), J + x^2, k + x), (b, 0, 1), T,
      (x, J, k) -> 1e-9 < abs(x^2 - 2) and J < 100)
  J + x^2
end"""

NESTED = """(W::RM{n, n}, x::RM{T, n}) -> (a::RV{n}) -> begin
  (h, J) = iterate(((h, J), t) -> begin
    (g, K) = iterate(((g, K), s) -> (i -> tanh(g(i) * a(i) + x(t, i)), K + sum(i, g(i)^2)), (h, 0), 3)
    (i -> sum(j, W(i, j) * g(j)), J + K + sum(i, g(i)^4))
  end, (a, 0), T)
  J
end"""

TWICE = """(x::RV{n}) -> begin
  (a, b) = iterate(((a, b), t) -> (sin(a) * x(t), b + a), (1/2, 0), n)
  (c, d, e) = iterate(((c, d, e), t) -> (c * e + d, x(t) * sin(d), e + 1/2), (0, 1/2, 1), n)
  a * b * c * d * e
end"""

APART = """(x::RV{n}) -> begin
  a = iterate((a, t) -> sin(a) * x(t), 1/2, n)
  (b, c) = iterate(((b, c), t) -> (sin(b) * x(t), c * a + b), (1/2, 1), n)
  a * c
end"""

OTHERWISE_BEGUN = """(x::RV{n}) -> begin
  a = iterate((a, t) -> sin(a) * x(t), 1/2, n)
  (b, c) = iterate(((b, c), t) -> (sin(b) * x(t), c + b), (1/3, 1), n)
  a * c
end"""

PROGRAMS = {
    "regulator": REGULATOR,
    "chain": CHAIN,
    "stopped": STOPPED,
    "nested": NESTED,
    "twice": TWICE,
    "apart": APART,
    "otherwise begun": OTHERWISE_BEGUN,
}


SCALED = """(B::RM{T, n}) -> (A::RM{n, n}) -> begin
  (a, l) = iterate(((a, l), t) -> begin
    u = j -> sum(i, a(i) * A(i, j)) * B(t, j)
    c = sum(j, u(j))
    (j -> u(j) / c, l + log(c))
  end, (i -> 1 / n, 0), T)
  l
end"""


def loops(text: str) -> int:
    """How many loops a program has, those in steps among them."""
    return text.count("scan(") + text.count("iterate(")


def test_a_cost_that_adds_up_is_no_state_of_the_gradient() -> None:
    d = cd.grad(REGULATOR)
    assert "J" not in str(d) and loops(str(d)) == 2
    assert "  x = scan((x, t) -> i -> sum(j, A(i, j) * x(j)) + sum(k, B(i, k) * u(t, k)), x0, T)\n" in str(d)


def test_a_state_is_read_by_the_step_of_one_that_is_read() -> None:
    assert "(a, b) = iterate(((a, b), t) -> (w(t) * sin(a), a * b + w(t)), (1/2, 1), n)" in str(cd.simplified(CHAIN))


@pytest.mark.slow
@pytest.mark.parametrize("program", [REGULATOR, STOPPED])
def test_value_and_gradient_run_one_loop_forwards(program: str) -> None:
    assert cd.grad(program).source(value=True).count("range(") == 2


@pytest.mark.slow
def test_a_value_that_only_another_state_reads_twice_does_not_keep_loops_apart() -> None:
    """The scale c is read by a and by l; the gradient's loop, which has no l, reads it once."""
    assert cd.grad(SCALED).source(value=True).count("range(") == 2


@pytest.mark.slow
def test_a_pushforward_and_its_value_run_one_loop() -> None:
    d = cd.jvp(REGULATOR)
    assert loops(str(d)) == 1 and d.source(value=True).count("range(") == 1


@pytest.mark.slow
def test_the_states_of_a_loop_that_may_stop_early_keep_what_tells_it_to() -> None:
    text = str(cd.grad(STOPPED))
    assert "(x, J, going) = scan(" in text and "k" not in text.split("begin")[1].split("still")[0]
    assert "J_bar" not in text  # it only adds up, until the loop stops


@pytest.mark.slow
def test_loops_in_steps_lose_states_too() -> None:
    text = str(cd.grad(NESTED))
    assert "J" not in text and "K" not in text


def test_loops_of_one_state_under_other_names_are_one() -> None:
    assert loops(str(cd.simplified(TWICE))) == 1
    assert "(a, b, c, e) =\n" in str(cd.simplified(TWICE))  # d is a
    assert cd.simplified(TWICE).source().count("range(") == 1


@pytest.mark.parametrize("name", ["apart", "otherwise begun"])
def test_loops_of_other_states_are_not_joined(name: str) -> None:
    assert loops(str(cd.simplified(PROGRAMS[name]))) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PROGRAMS])
@pytest.mark.parametrize("mode", [cd.grad, cd.jvp, cd.hvp], ids=["grad", "jvp", "hvp"])
def test_derivatives_are_right(name: str, mode: object) -> None:
    assert callable(mode)
    assert mode(PROGRAMS[name]).check()


def test_the_value_of_joined_loops_is_that_of_loops_of_python() -> None:
    x = np.linspace(0.3, 1.2, 4)
    a, b, c, d, e = 0.5, 0.0, 0.0, 0.5, 1.0
    for xt in x:
        a, b = np.sin(a) * xt, b + a
        c, d, e = c * e + d, xt * np.sin(d), e + 0.5
    np.testing.assert_allclose(cd.simplified(TWICE).compile()(x), a * b * c * d * e, rtol=1e-14)


@pytest.mark.slow
def test_the_explanation_tells_both_laws() -> None:
    assert "nothing reads the state J: its loop goes on without it" in explanation(cd.grad(REGULATOR))
    assert "go through a common state: they are one" in explanation(cd.simplified(TWICE))


def test_where_a_condition_holds_and_where_it_does_not_are_everywhere() -> None:
    d = cd.grad("(c::RV) -> (a::R, b::R) -> sum(i, where(c(i) < 1, a * b, a * b + a))")
    assert str(d) == "(c::RV{n}) -> (a::R, b::R) -> (n * b + sum(i, where(1 <= c(i), 1)), n * a)"
    index = "(x::RM) -> sum((i, j), where(i < j, x(i, j)^2, x(i, j) + x(i, j)^2))"
    assert str(cd.grad(index)) == "(x::RM) -> (i, j) -> 2 * x(i, j) + where(j <= i, 1)"
    twice = "(c::RV) -> (x::RV) -> sum(i, where(c(i) < 1, x(i)^2, x(i) + 2 * x(i)^2))"
    assert str(cd.grad(twice)) == "(c::RV) -> (x::RV) -> i -> where(c(i) < 1, 2 * x(i), 1 + 4 * x(i))"
