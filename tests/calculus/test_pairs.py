"""Tables over pairs of indices of which arrays of integers say what is read become tables over these readings."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

ANGLES = """(p::(N{m}) -> N{n}, q::(N{m}) -> N{n}, s::(N{m}) -> N{n}, k::RV{m}, t::RV{m}) -> (x::RM{n, 3}) -> begin
  d = (i::N{n}, j::N{n}, c::N{3}) -> x(i, c) - x(j, c)
  r = (i::N{n}, j::N{n}) -> sqrt(sum(c, d(i, j, c)^2))
  sum(b, k(b) * (acos(sum(c, d(p(b), q(b), c) * d(s(b), q(b), c)) / (r(p(b), q(b)) * r(s(b), q(b)))) - t(b))^2)
end"""
BY_HAND = """(p::(N{m}) -> N{n}, q::(N{m}) -> N{n}, s::(N{m}) -> N{n}, k::RV{m}, t::RV{m}) -> (x::RM{n, 3}) -> begin
  d = (b, c) -> x(p(b), c) - x(q(b), c)
  e = (b, c) -> x(s(b), c) - x(q(b), c)
  v = b -> sum(c, d(b, c) * e(b, c)) / sqrt(sum(c, d(b, c)^2)) / sqrt(sum(c, e(b, c)^2))
  sum(b, k(b) * (acos(v(b)) - t(b))^2)
end"""


def data(n: int, m: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(n + 10 * m)
    places = np.stack([rng.permutation(n)[:3] for _ in range(m)], axis=1) if m else np.zeros((3, 0), int)
    return (*places, rng.normal(size=m), rng.normal(size=m), rng.normal(size=(n, 3)))


def test_a_table_that_is_read_in_two_ways_becomes_two() -> None:
    text = str(cd.grad(ANGLES))
    assert "d = (b, c) ->" in text and "r = b ->" in text and "(i, j" not in text
    assert len(text) < 1.3 * len(str(cd.grad(BY_HAND)))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "hvp"])
def test_angles_have_the_gradient_and_the_hessian_of_those_by_hand(mode: str) -> None:
    # what is not collected in two seconds has the same value
    ours, by_hand = (getattr(cd, mode)(text, seconds=2).compile() for text in (ANGLES, BY_HAND))
    # code for each of these sizes is chosen anew
    for n, m in ((3, 0), (3, 1), (5, 2), (4, 7)) if mode == "grad" else ((4, 7),):
        v = np.random.default_rng(1).normal(size=(n, 3))
        at = (*data(n, m), *([v] if mode == "hvp" else []))
        np.testing.assert_allclose(ours(*at), by_hand(*at), rtol=1e-9, atol=1e-12)


def test_a_printed_gradient_is_finite_where_the_table_has_an_infinite_slope() -> None:
    """The distance of a point from itself has none, and no pair of neighbours is one point twice."""
    d = cd.grad("""(a::(N{m}) -> N{n}, b::(N{m}) -> N{n}) -> (u::RM{n, 2}) -> begin
      dist = (i::N{n}, j::N{n}) -> sqrt(sum(c, (u(i, c) - u(j, c))^2))
      sum(e, dist(a(e), b(e)) + dist(b(e), a(e))^3)
    end""")
    u = np.random.default_rng(2).normal(size=(4, 2))
    at = np.array([0, 1, 2]), np.array([1, 3, 0]), u
    np.testing.assert_allclose(cd.simplified(str(d)).compile()(*at), d.compile()(*at), rtol=1e-12)


DIFFERENCE = "E = (w::N{v}, k::N{v}) -> tanh(W(w, 0) - W(k, 0))"
KEPT = {
    "an embedding": "E = (w::N{v}, k) -> tanh(W(w, k)); sum((t, k), E(a(t), k)^2)",
    "letters of a text": "E = (w::N{v}, k::N{v}) -> tanh(W(w, k)); sum(t, E(a(t), b(t))^2)",
    "all pairs, too": f"{DIFFERENCE}; sum(t, E(a(t), b(t))^2) + sum((w, k), E(w, k)^3 * W(w, k))",
    "entries that need not exist": f"{DIFFERENCE}; sum(t, 0 < t, E(a(t - 1), b(t))^2)",
    "one entry": f"{DIFFERENCE}; E(a(0), b(0))^2 * sum(t, a(t))",
    "the table as a whole": f"{DIFFERENCE}; sum(t, E(a(t), b(t))) + logabsdet((w, k) -> E(w, k) + 2 * delta(w, k, 1))",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_other_tables_stay(name: str) -> None:
    d = cd.grad(f"(a::(N{{m}}) -> N{{v}}, b::(N{{m}}) -> N{{v}}) -> (W::RM{{v, v}}) -> begin; {KEPT[name]}; end")
    assert "E = (w, k) ->" in str(d)
    a, b = np.array([[0, 2, 1, 1], [1, 1, 0, 2]])
    W, V, t = *np.random.default_rng(3).normal(size=(2, 3, 3)), 1e-6
    f = d.compile(value=True)
    slope = (f(a, b, W + t * V)[0] - f(a, b, W - t * V)[0]) / (2 * t)
    np.testing.assert_allclose(np.sum(f(a, b, W)[1] * V), slope, rtol=1e-7)


def test_potentials_of_charges_are_sums_over_the_pairs_of_a_list() -> None:
    """On the diagonal they depend on the charges, and are infinite."""
    d = cd.grad("""(a::(N{m}) -> N{n}, b::(N{m}) -> N{n}, q::RV{n}) -> (x::RM{n, 3}) -> begin
      u = (i::N{n}, j::N{n}) -> q(i) * q(j) / sqrt(sum(c, (x(i, c) - x(j, c))^2))
      sum(e, u(a(e), b(e))^2)
    end""")
    assert "u = e ->" in str(d)


def test_a_long_text_takes_no_time_for_each_place() -> None:
    """A table of two letters in a row is made once, with one sum of exponentials for each letter."""
    d = cd.grad("""(a::(N{m}) -> N{v}, b::(N{m}) -> N{v}) -> (U::RM{v, v}) -> begin
      L = (i::N{v}, j::N{v}) -> U(i, j) - logsumexp(k, U(i, k))
      sum(t, L(a(t), b(t)))
    end""")
    shapes = {"a": (10_000,), "b": (10_000,), "U": (10, 10)}
    assert all(plan.entries(step) <= 10_000 for plan in [d.plan(**shapes)] for step in plan.steps)
