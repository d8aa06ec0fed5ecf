"""Loops in formulas: a recursion with its start, forwards and backwards, and text that reads back."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

NETWORK = """(x::RM{T, n}) -> (W::RM{n, n}) -> begin
  h = iterate((h, t) -> i -> tanh(sum(j, W(i, j) * h(j)) + x(t, i)), i -> 0, T)
  sum(i, h(i)^2)
end"""
PAIR = "(w::RV{n}) -> begin (a, b) = iterate(((a, b), t) -> (b, a + w(t) * b), (0, 1), n); a * b end"


@pytest.mark.slow
def test_a_recursion_has_its_start_and_its_adjoint_the_last_state() -> None:
    text = cd.grad(NETWORK).latex(style="paper")
    assert r"h_{0i} = 0" in text and r"h_{t+1,i} = \tanh" in text
    assert r"\bar{h}_{Tj} = 2 h_{Tj}" in text and r"\bar{h}_{tj} = \sum_{i} W_{ij}\, \bar{h}_{t+1,i}" in text
    assert "scan" not in text


@pytest.mark.slow
def test_plain_text_writes_the_same_recursion() -> None:
    lines = cd.grad(NETWORK).unicode_text().splitlines()
    assert any(line.strip() == "where h(0,i) = 0" for line in lines)
    assert any(line.strip().startswith("where h(t + 1,i) = tanh(") for line in lines)


def test_every_state_of_a_tuple_has_its_equations() -> None:
    text = cd.grad(PAIR).latex(style="paper")
    for equation in ("a_{0} = 0", "b_{0} = 1", "a_{t+1} = b_{t}", r"\bar{b}_{n} = a_{n}"):
        assert equation in text


@pytest.mark.slow
def test_text_has_one_loop_a_recurrence_and_reads_back() -> None:
    for program in (NETWORK, PAIR):
        d = cd.grad(program)
        assert str(d).count("scan(") + str(d).count("iterate(") == 2
        assert d.check()


@pytest.mark.slow
def test_a_loop_in_a_step_is_written_in_line() -> None:
    d = cd.grad("(x::R) -> iterate((s, t) -> iterate((u, r) -> u * x + s, s, 2), x, 3)")
    assert r"\operatorname{iterate}" in d.latex() and "iterate(" in d.unicode_text()
    assert cd.simplified(str(d)).check()


READ = """(x::RV{T}, y::RV{T}) -> (W::RM{n, n}, c::RV{n}) -> begin
  h = scan((h, t) -> i -> tanh(sum(j, W(i, j) * h(j)) + x(t)), i -> 0, T)
  sum(t, (sum(i, c(i) * h(t + 1, i)) - y(t))^2) / T
end"""


@pytest.mark.slow
def test_all_states_are_read_under_one_name() -> None:
    d = cd.grad(READ)
    text = d.latex(style="paper")
    assert r"E(W, c) &= \frac{1}{T} \sum_{t} \left(\sum_{i} c_{i}\, h_{t+1,i} - y_{t}\right)^{2}" in text
    assert r"\frac{\partial E}{\partial c_{i}} &= \frac{2}{T} \sum_{t} h_{t+1,i}\, r_{t}" in text
    assert "sum(i, c(i) * h(t + 1, i)) - y(t)" in str(d) and "h(t+1,i)" in d.unicode_text().replace(" ", "")
    assert d.check()


@pytest.mark.slow
def test_all_states_are_a_result() -> None:
    for body, shown in (("t -> h(t)^2", "t -> h(t)^2"), ("h", "h"), ("t -> h(t) + h(n)", "t -> h(t) + h(n)")):
        d = cd.simplified(f"(x::RV{{n}}) -> begin h = scan((s, t) -> s / 2 + x(t), 0, n); {body} end")
        assert str(d).splitlines()[-2].strip() == shown
        assert d.check()
        np.testing.assert_allclose(cd.simplified(str(d)).compile()(np.arange(3.0)), d.compile()(np.arange(3.0)))


PIECES = {
    "an index that may leave the range": "(t::N{n}) -> where(2 * t < n, h(2 * t), h(n))",
    "a condition for fewer": "(t::N{n}) -> where(t + 1 < n, h(t + 1)) + where(n <= t + 2, h(n))",
    "other factors": "(t::N{n}) -> where(t + 1 < n, 2 * h(t + 1)) + where(n <= t + 1, h(n))",
    "under a function": "(t::N{n}) -> exp(where(t + 1 < n, h(t + 1))) + exp(where(n <= t + 1, h(n)))",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", PIECES)
def test_pieces_that_are_no_read_of_all_states_stay_apart(name: str) -> None:
    d = cd.simplified(f"(x::RV{{n}}) -> begin h = scan((s, t) -> s / 2 + x(t), 0, n); {PIECES[name]} end")
    assert "where(" in str(d)
    assert d.check()


@pytest.mark.slow
def test_fewer_steps_are_counted_in_formulas() -> None:
    d = cd.grad("(x::RV{n}) -> begin h = scan((s, t) -> sin(s) * x(t), 1, n - 1); sum(t::N{n}, h(t)^2) end")
    text = d.latex(style="paper")
    assert "_{n-1} =" in text and r"\sum_{i} 1" not in text


@pytest.mark.slow
def test_what_has_no_notation_is_said() -> None:
    d = cd.grad(NETWORK)
    assert d.matrix_text().startswith("begin")
    assert "h(t + 1)" in str(__import__("combdiff.explanation").explanation.combinator_form(d))
    try:
        d.sympy()
    except cd.CombDiffError as error:
        assert "SymPy" in str(error)


DIFFERENCES = """(x::RV{n}) -> begin
  h = scan((s, t) -> s / 2 + x(t), 0, n)
  sum(t::N{n}, (h(t + 1) - h(t))^2)
end"""


@pytest.mark.slow
def test_an_entry_of_all_states_is_read_as_itself() -> None:
    d = cd.grad(DIFFERENCES)
    assert "h(t + 1) - h(t)" in str(d) and "where(t" not in str(d)
    assert r"\sum_{t<n} (h_{t+1} - h_{t})^{2}" in d.latex(style="paper")
    assert d.check()


def test_an_entry_beyond_the_steps_stays_a_choice() -> None:
    """x(i + 1) does not exist at the last index, and x(0) there is another value."""
    d = cd.simplified("(x::RV{n}) -> (i::N{n}) -> where(i + 1 < n, x(i + 1), x(0))")
    assert "where(i + 2 <= n, x(i + 1), x(0))" in str(d)


@pytest.mark.slow
def test_cotangents_of_one_recurrence_have_different_names() -> None:
    text = str(cd.grad(DIFFERENCES))
    assert "s_bar₁" not in text and r"\bar{s}_{1}" not in cd.grad(DIFFERENCES).latex()
    assert "(a_bar, b_bar)" in str(cd.grad(PAIR))


def test_what_only_begins_a_loop_has_no_name() -> None:
    program = """(y::RV{n}) -> (w::R, x::RV{n}) -> begin
      h = iterate((h, t) -> i -> w * h(i), x, 5)
      sum(i, (h(i) - y(i))^2)
    end"""
    assert "i -> 2 * (h(5, i) - y(i))" in str(cd.grad(program))
