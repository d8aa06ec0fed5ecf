"""Loops in programs: what they mean, how far their indices range, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import LanguageError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate


def value(text: str, *given: Any) -> Any:
    f = infer(parse(text))
    return evaluate(f.body, dict(zip(f.params, given, strict=True)))  # type: ignore[attr-defined]


def test_the_number_of_a_step_counts_from_zero() -> None:
    assert value("(x::R) -> iterate((s, t) -> 10 * s + t, x, 4)", 0.0) == 123.0


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_scan_gives_all_states(count: int) -> None:
    x = np.arange(1.0, count + 1)
    states = np.concatenate([[0.0], np.cumsum(x)])
    assert value("(x::RV{n}) -> begin h = scan((s, t) -> s + x(t), 0, n); sum(t, h(t)^2) end", x) == (states**2).sum()
    assert value("(x::RV{n}) -> begin h = scan((s, t) -> s + x(t), 0, n); h(0) + h(n) end", x) == states[-1]
    found = value("(x::RV{n}) -> begin h = scan((s, t) -> s + x(t), 0, n); sum(t, h(n - 1 - t) * x(t)) end", x)
    np.testing.assert_allclose(found, states[:-1][::-1] @ x)


def test_no_step_leaves_the_first_state() -> None:
    assert value("(x::R) -> iterate((s, t) -> s + 1, x, 0)", 5.0) == 5.0


def test_fewer_steps_than_a_size() -> None:
    text = "(x::RV{n}) -> iterate((s, t) -> s + x(t) * x(t + 1), 0, n - 1)"
    assert value(text, np.array([1.0, 2.0, 3.0])) == 8.0


def test_a_step_may_be_defined_before() -> None:
    assert value("(x::R) -> begin f = (s::R, t) -> s * x + t; iterate(f, 1, 3) end", 2.0) == 12.0


def test_a_real_state_becomes_complex() -> None:
    assert value("(x::R) -> iterate((s, t) -> s * x * im, 1, 3)", 2.0) == -8j


def test_the_steps_end_where_the_condition_is_false() -> None:
    assert value("(x::R) -> iterate((s, t) -> 2 * s, x, 100, s -> s < 50)", 1.0) == 64.0
    assert value("(x::R) -> iterate((s, t) -> 2 * s, x, 3, s -> s < 50)", 1.0) == 8.0


@pytest.mark.slow
def test_a_condition_that_is_false_at_the_start_leaves_the_first_state() -> None:
    d = cd.grad("(x::R) -> iterate((s, t) -> 1 / (s - x), x, 5, s -> s < 0)").compile(value=True)
    assert d(2.0) == (2.0, 1.0)


WRONG = {
    "the number of states": ("(x::R) -> iterate(((a, b), t) -> (b, a), x, 3)", "the step names 2 states"),
    "another type": ("(x::RV{n}) -> iterate((s, t) -> sum(i, x(i)), x, 3)", "a step makes a real number of a state"),
    "another count": ("(x::R) -> iterate((s, t) -> (s, s), x, 3)", "a step makes a tuple of 2 of a state"),
    "no step": ("(x::R) -> iterate(x, x, 3)", "the first argument of iterate is a map of a state"),
    "a negative number of steps": ("(x::R) -> iterate((s, t) -> s, x, -3)", "the number of steps is a number"),
    "a real number of steps": ("(x::R) -> iterate((s, t) -> s, x, x)", "the number of steps is a number"),
    "two arguments": ("(x::R) -> iterate((s, t) -> s, x)", "and 2 arguments are given"),
    "no condition": ("(x::R) -> iterate((s, t) -> s, x, 3, s -> s)", "a map from the state to a condition"),
    "a tuple elsewhere": (
        "(x::RV) -> sum(i, x(i)) + (((a, b), t) -> a)(1, 2)",
        "only the step of a loop has a tuple of parameters",
    ),
    "an index beyond the states": (
        "(x::RV{n}) -> begin h = scan((s, t) -> s + x(t), 0, n); sum(t::N{n}, h(t + 2)) end",
        "t + 2 may leave the range of slot 1 of scan",
    ),
    "an index of all states elsewhere": (
        "(x::RV{n}) -> begin h = scan((s, t) -> s + x(t), 0, n); sum(t, h(t) * x(t)) end",
        "t may leave the range of slot 1 of x",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_loops_are_answered_with_a_place_and_a_remedy(name: str) -> None:
    program, said = WRONG[name]
    with pytest.raises(LanguageError, match=said.replace("+", r"\+")) as caught:
        cd.grad(program)
    assert "remedy:" in str(caught.value) and "^" in str(caught.value)


def test_what_the_condition_of_a_loop_of_no_steps_reads_says_how_far_an_index_ranges() -> None:
    loop = "iterate((v, t) -> j -> v(j) / 2, (j::N) -> w(j), 0, v -> norm(v) <= z(k))"
    d = cd.grad(f"(z::RV) -> (w::RV) -> sum(k::N, sum(i, {loop}(i)))")
    np.testing.assert_allclose(d.compile()(np.ones(3), np.ones(2)), [3, 3])


STEPS_LESS = """(y::RM{T, K}) -> (A::RM{K, K}) -> begin
  h = iterate((h, t) -> j -> sum(i, h(i) * A(i, j)) + y(t + 1, j), j -> y(0, j), T - 1)
  sum(j, h(j)^2)
end"""


def test_a_result_with_a_loop_of_fewer_steps_reads_back_as_what_it_is() -> None:
    """Its text may order factors otherwise than the result: the number of steps comes from T all the same."""
    d = cd.grad(STEPS_LESS)
    assert d.check(), d.check()
    assert "j -> y(0, j), T - 1)" in d.matrix_text()
    assert "sum(t, where(t < T - 1, h(t, i) * h_bar(T - 2 - t, j)))" in d.matrix_text()


def test_the_states_of_a_loop_that_begins_with_those_of_another_have_one_range() -> None:
    """The outer loop has one step fewer than a size, its states backwards are the first ones of the inner loop's."""
    d = cd.grad(
        "(a::RV{k}) -> (n::R) -> "
        "iterate((t, m) -> t^2 / 2 + iterate((e, s) -> sigmoid(e + n * a(m)), a(m), k), n, k - 1)"
    )
    assert d.check(), d.check()
    assert "where(m < k - 1, t_bar(k - 2 - m))" in str(d.result)
