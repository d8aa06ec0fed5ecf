"""What a loop computes before it begins, and how its steps contract: the code, and that it computes the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

import combdiff as cd

GATES = """(x::RM{T, n}, y::RV{n}) -> (W::(N{n}, N{n}, N{g}) -> R, U::(N{n}, N{n}, N{g}) -> R) -> begin
  (h, c) = iterate(((h, c), t) -> begin
    z = (i, g) -> sum(j, W(i, j, g) * h(j)) + sum(j, U(i, j, g) * x(t, j))
    d = i -> sigmoid(z(i, 0)) * c(i) + sigmoid(z(i, 1)) * tanh(z(i, 2))
    (i -> sigmoid(z(i, 3)) * tanh(d(i)), d)
  end, (i -> 0, i -> 0), T)
  sum(i, (h(i) - y(i))^2)
end"""
SEQUENCES = """(a::RM{T, n}, b::RM{T, n}, W::RM{n, n}) -> (h0::RV{n}) -> begin
  h = iterate((h, t) -> i -> sum(j, W(i, j) * h(j) * a(t, j) * exp(b(t, j))), h0, T)
  sum(i, h(i)^2)
end"""
PULSE = """(H::RM{n, n}, K::RM{n, n}, p::RV{n}) -> (u::RV{T}) -> begin
  z = iterate((z, t) -> begin
    w = i -> sum(j, (H(i, j) + u(t) * K(i, j)) * z(j))
    v = i -> sum(j, (H(i, j) + u(t) * K(i, j)) * w(j))
    i -> z(i) - w(i) / 50 - v(i) / 5000
  end, p, T)
  sum(i, z(i))^2
end"""


def _body(source: str) -> str:
    """The code behind the docstring."""
    return source.split('"""')[2]


def _loops(source: str) -> list[str]:
    """The statements in loops, a text for each loop."""
    return re.findall(r"    for \w+ in .*\n((?:        .*\n)+)", _body(source))


@pytest.mark.slow
def test_factors_of_one_index_set_are_multiplied_before_the_loop() -> None:
    d = cd.simplified(SEQUENCES)
    source = d.compile().source
    (step,) = _loops(source)
    assert "exp" not in step
    assert step.count("[t]") == 1, step
    assert d.check()


@pytest.mark.slow
def test_matrices_in_a_step_are_contracted_one_by_one() -> None:
    """Σ_i f(i) (A(i, j) u(i) + B(i, j) v(i)) makes no matrix in a step."""
    program = (
        "(A::RM{n, n}, B::RM{n, n}, a::RM{T, n}, b::RM{T, n}) -> (h0::RV{n}) -> sum(i, "
        "iterate((h, t) -> j -> sum(i, h(i) * (A(i, j) * a(t, i) + B(i, j) * b(t, i))), h0, T)(i)^2)"
    )
    d = cd.simplified(program)
    (step,) = _loops(d.compile().source)
    assert step.count("@") == 2
    assert "[:, None]" not in step
    assert ".T" not in step
    rng = np.random.default_rng(0)
    A, B, a, b, h = (rng.normal(size=s) / 2 for s in ((4, 4), (4, 4), (3, 4), (3, 4), (4,)))
    expected = h
    for t in range(3):
        expected = expected @ (A * a[t][:, None] + B * b[t][:, None])
    assert d.compile()(A, B, a, b, h) == pytest.approx(expected @ expected, rel=1e-12)


@pytest.mark.slow
def test_a_sum_of_matrices_that_is_read_twice_is_made_once() -> None:
    (step,) = _loops(cd.simplified(PULSE).compile().source)
    assert step.count("K") == 1, step


@pytest.mark.slow
def test_contractions_are_made_ahead_where_they_take_little_memory() -> None:
    """U(i, j, g) x(t, j) has four times as many values as x for four gates, and many more for many."""
    d = cd.grad(GATES)
    rng = np.random.default_rng(1)
    texts = {}
    for gates in (4, 40):
        given = [rng.normal(size=s) / 8 for s in ((6, 5), (5,), (5, 5, gates), (5, 5, gates))]
        f = d.compile(value=True)
        found = f(*given)
        texts[gates] = next(iter(f._known))
        again = cd.simplified(str(d)).compile()(*given)
        for one, other in zip(found[1:], again, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert "U.reshape" not in _body(texts[4])
    assert "U.reshape" in _loops(texts[40])[0]


@pytest.mark.slow
def test_two_spellings_of_one_loop_are_one_loop() -> None:
    """The value has no name for v, the gradient has one; both go through the same states."""
    source = cd.grad(PULSE).compile(value=True).source
    assert [line.strip() for line in _body(source).splitlines() if line.strip().startswith("for ")] == [
        "for t in range(T):",
        "for s in reversed(range(T)):",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("program", [pytest.param(GATES, marks=pytest.mark.long), PULSE], ids=["gates", "pulse"])
def test_value_gradient_and_products_agree_with_the_oracle(program: str) -> None:
    assert cd.grad(program).check()
    assert cd.hvp(program).check()


@pytest.mark.slow
def test_an_array_that_lies_badly_for_a_step_is_copied_once() -> None:
    """W(i, j, g) h(j) is a product on a view of a copy with j last, the entries W(i, j, 3) are one with g first."""
    source = cd.grad(GATES).compile(value=True).source
    forwards, backwards = _loops(source)
    assert _body(source).count("np.ascontiguousarray(W.transpose(0, 2, 1))") == 1
    assert _body(source).count("np.ascontiguousarray(W.transpose(2, 0, 1))") == 1
    assert ".reshape(n * g, n) @ h)" in forwards
    assert "W[:, :, " not in backwards
    f = cd.grad(GATES).compile(value=True)
    f(np.ones((3, 2)), np.ones(2), np.ones((2, 2, 4)), np.ones((2, 2, 4)))
    assert "ascontiguousarray" not in next(iter(f._known))  # of three steps
    pytest.importorskip("jax")
    assert "ascontiguousarray" not in cd.grad(GATES).compile("jax", value=True).source


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["<=", "=="])
def test_an_index_that_a_state_decides_is_compared_with_the_number_of_the_step(relation: str) -> None:
    """The step knows its number as a number only, and the largest entry of a state as an index."""
    step = f"where(argmax(j, s(j)) {relation} t, s(i) * x(i), x(i))"
    d = cd.grad(f"(x::RV{{n}}) -> sum(i, iterate((s, t) -> i -> {step}, k -> x(k), n)(i))")
    x = np.array([0.5, 2.0, -1.0, 3.0])
    s = x
    for t in range(len(x)):
        holds = s.argmax() <= t if relation == "<=" else s.argmax() == t
        s = s * x if holds else x
    value, _ = d.compile(value=True)(x)
    assert value == pytest.approx(s.sum(), rel=1e-12)
    assert d.check()


ROWS = {
    "a gather": "a(g) * p(i) + p(f(g, i))^2",
    "a scatter": "sum(j, f(g, j) == i, a(g) * p(j))",
    "a neighbour": "where(f(g, i) < d - 1, a(g) * p(f(g, i) + 1)) + p(i)",
    "a place that another place decides": "a(g) * p(h(f(g, i))) + p(f(g, h(i)))",
    "a place in a row that another row decides": "a(g) * p(f(g, f(g, i))) + p(f(g, h(f(g, i))))",
    "a place that a state decides": "a(g) * p(f(g, argmax(j, p(j)))) + p(i)",
    "a place that is a number, too": "f(g, i) * a(g) * p(f(g, i)) + p(i)",
}


@pytest.mark.parametrize("name", ROWS)
def test_a_step_reads_a_row_of_integers(name: str) -> None:
    """The gates of a quantum circuit: gate g takes amplitude f(g, i) to i. No array has an entry for all g, i and j."""
    program = (
        "(f::(N{G}, N{d}) -> N{d}, h::(N{d}) -> N{d}, p0::RV{d}) -> (a::RV{G}) -> begin "
        f"p = iterate((p, g) -> i -> {ROWS[name]}, p0, G); sum(i, p(i)^2) end"
    )
    for d in (cd.grad(program), cd.hvp(program)):
        assert d.check()
    if "state" not in name:
        assert "zeros((G, d, d))" not in cd.grad(program).source()
