"""What made spellings differ in cost, one cause at a time."""

from __future__ import annotations

import pytest

import combdiff as cd
from tests.programs import ROOT

WANNIER = (ROOT / "examples" / "wannier_neighbours.cd").read_text(encoding="utf-8")
MOVED = WANNIER.replace("U(p, n, k)'", "U(p, n, k - b)'").replace(
    "M(p, q, k, b) * U(q, n, k + b)", "M(p, q, k - b, b) * U(q, n, k)"
)


@pytest.mark.slow
def test_an_index_over_a_periodic_domain_may_be_moved() -> None:
    assert MOVED.count("k - b") == 2
    assert str(cd.grad(MOVED)) == str(cd.grad(WANNIER))


def test_a_conjugate_with_a_name_hides_no_symmetry() -> None:
    named = "(A::Her) -> (x::CV) -> begin y = i -> x(i)'; sum((i, j), y(i) * A(i, j) * x(j)) end"
    assert str(cd.grad(named)).endswith("2 * sum(j, A(i, j) * x(j))")


@pytest.mark.slow
def test_signs_go_into_sums_and_out_of_squares() -> None:
    arguments = ("-(-b(i) - sum(k, W(i, k) * x(k)))", "sum(k, W(i, k) * x(k)) + b(i)")
    layers = [cd.grad(f"(x::RV, y::RV, b::RV) -> (W::RM) -> sum(i, (tanh({a}) - y(i))^2)") for a in arguments]
    plans = [d.plan(value=True) for d in layers]
    assert len({sum(map(p.flops, p.steps)) for p in plans}) == 1
