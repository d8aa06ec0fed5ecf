"""A δ at an entry that the program reads: it is solved under Σ, and a δ that holds no summed index stands before Σ."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.simplify.contraction.ranges import solved_within_ranges
from combdiff.terms.conditions.needed import sizes_read
from combdiff.terms.terms import App, Delta, Sum, fresh, number
from combdiff.terms.types import REAL, Domain, Index, Map
from tests.reading_back import assert_reads_back

SIZES = (1, 2, 3, 5, 7)
n = Domain("n")
i, x = fresh("i", Index(n)), fresh("x", Map((Index(n),), REAL))


@pytest.mark.parametrize("at", [0, 2])
def test_a_delta_is_solved_for_an_entry_that_exists_wherever_the_program_has_a_value(at: int) -> None:
    before = Sum((i,), Delta(number(at), i, App(x, (i,))))
    assert solved_within_ranges(before, {n: at + 1}) == App(x, (number(at),))
    assert solved_within_ranges(before, {n: at}) == before
    assert solved_within_ranges(before) == before


@pytest.mark.parametrize("domain", [Domain("Z", True, periodic=True), Domain("Z", True, symmetric=True)])
def test_entries_of_other_ranges_are_left(domain: Domain) -> None:
    j, y = fresh("j", Index(domain)), fresh("y", Map((Index(domain),), REAL))
    before = Sum((j,), Delta(number(3), j, App(y, (j,))))
    assert solved_within_ranges(before, {domain: 9}) == before


@pytest.mark.parametrize(
    ("program", "sizes"),
    [
        ("(x::RV) -> x(2) * sum(i, x(i))", [3]),
        ("(x::RV) -> softmax(i, x(i))(0)", [1]),
        ("(x::RV) -> begin y = x(1); y^2 end", [2]),
        ("(x::RV) -> begin y = x(1); 2 end", []),
        ("(x::RV) -> where(x(1) < 0, x(5), 0)", [2]),
        ("(x::RV, A::RM) -> sum(i, x(i) * A(i, 3))", []),
        ("(A::RM) -> (i::N) -> A(i, 3)", []),
        ("(x::RV) -> maximum(i, x(i) * x(0))", []),
    ],
)
def test_what_a_program_reads_in_any_case(program: str, sizes: list[int]) -> None:
    assert [*sizes_read(infer(parse(program))).values()] == sizes


SHARE = "(a::RV) -> softmax(i, a(i))(0)"
PROGRAMS = {
    SHARE: "i -> softmax(a)(i) * (delta(0, i, 1) - softmax(a)(0))",
    "(a::RV) -> log(softmax(i, a(i))(2))": ("i -> delta(2, i, 1) - softmax(a)(i)"),
    "(A::RM) -> sum(i, A(i, 0) * sum(j, A(j, 1)))": "delta(0, d, sum(j, A(j, 1))) + delta(1, d, sum(j, A(j, 0)))",
    "(A::RM) -> sum(j, A(j, 0))^2": "delta(0, d, 2 * sum(j1, A(j1, 0)))",
    "(f::RM) -> (x::RV) -> sum(j, f(0, j) * x(j)) * x(0)": "f(0, j) * x(0) + delta(0, j, sum(j1, f(0, j1) * x(j1)))",
}


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_sum_has_a_delta_that_it_need_not_have(program: str) -> None:
    d = cd.grad(program)
    assert " ".join(str(d).split()).endswith(PROGRAMS[program])
    assert_reads_back(d.term)
    assert bool(d.check())
    assert "zeros((n, n" not in d.source() and "zeros((m, m" not in d.source()


def test_a_delta_at_an_entry_that_need_not_exist_stays_under_its_sum() -> None:
    d = cd.simplified("(x::RV) -> sum(i, delta(2, i, x(i)^2))")
    assert str(d) == "(x::RV) -> sum(i, delta(2, i, x(i)^2))"
    assert [float(d.compile()(np.ones(size))) for size in SIZES] == [0, 0, 1, 1, 1]


LISTED = """@domain Z begin base = I; list = true; symmetric = true end
(A::(Z, N) -> R) -> sum(i, abs2(A(i, 0) * (sum(j::Z, A(-j, 0)) / sum(j::Z, 1))))"""


@pytest.mark.slow
def test_a_sum_over_a_list_stands_behind_its_delta() -> None:
    d = cd.grad(LISTED)
    assert str(d).count("delta(") == 1 and "sum(j::Z, delta" not in str(d)
    assert "axis=2" not in d.source()
    assert bool(d.check())


@pytest.mark.parametrize("size", SIZES)
def test_the_gradient_of_a_share_is_that_of_its_formula(size: int) -> None:
    a = np.random.default_rng(size).normal(size=size)
    shares = np.exp(a) / np.exp(a).sum()
    expected = shares[0] * (np.eye(size)[0] - shares)
    np.testing.assert_allclose(cd.grad(SHARE).compile()(a), expected, atol=1e-14)


GATES = """(W::(N{n}, N{n}, N{g}) -> R) -> (x::RV{n}) -> begin
  z = (i, g) -> sum(j, W(i, j, g) * x(j))
  sum(i, sigmoid(z(i, 2)) * tanh(z(i, 0)))
end"""


def test_gates_read_their_own_part_of_the_weights() -> None:
    assert "delta" not in str(cd.grad(GATES)).split("z = ")[1]


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_gradient_of_gates_is_that_of_differences(n: int) -> None:
    rng = np.random.default_rng(n)
    W, x = rng.normal(size=(n, n, 3)), rng.normal(size=n)

    def value(x: np.ndarray) -> float:
        z = np.einsum("ijg,j->ig", W, x)
        return float((np.tanh(z[:, 0]) / (1 + np.exp(-z[:, 2]))).sum())

    steps = 1e-6 * np.eye(n)
    expected = [(value(x + s) - value(x - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(cd.grad(GATES).compile()(W, x), expected, rtol=1e-7, atol=1e-9)


def test_a_sum_that_need_not_read_the_entry_keeps_its_delta() -> None:
    d = cd.grad("(x::RV{n}) -> sum(i, x(i)^2 * delta(i, 2, 1))")
    for n in (1, 2, 3, 5):
        x = np.arange(1.0, n + 1)
        np.testing.assert_allclose(d.compile()(x), [2 * v * (i == 2) for i, v in enumerate(x)])
