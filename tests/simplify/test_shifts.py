"""Sums over periodic indices are moved so that no tensor is read at a sum of three indices, if two will do."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.simplify.shifts.sums import with_sums_shifted
from combdiff.terms.terms import App, Sum, add, fresh, mul, neg, subterms, total
from combdiff.terms.types import REAL, Domain, Index, Map

RING = "@domain Z begin periodic = true end\n"
PROGRAMS = {
    "square": "(h::(Z) -> R) -> (x::(Z) -> R) -> sum(i::Z, sum(j::Z, h(j) * x(i - j))^2)",
    "cube": "(h::(Z) -> R) -> (x::(Z) -> R) -> sum(i::Z, sum(j::Z, h(j) * x(i - j))^3)",
    "both": "(h::(Z) -> R, x::(Z) -> R) -> sum(i::Z, sum(j::Z, h(j) * x(i + j))^3)",
    "twice": "(h::(Z) -> R) -> (x::(Z) -> R) -> sum(i::Z, sum(j::Z, h(j) * sum(k::Z, h(k) * x(i - j - k)))^2)",
    "rows": "(H::(N, Z) -> R) -> (x::(Z) -> R) -> sum((a, i::Z), sum(j::Z, H(a, j) * x(i - j))^4)",
}

ring = Index(Domain("Z", periodic=True))
h, x = (fresh(name, Map((ring,), REAL)) for name in "hx")
i, j, d = (fresh(name, ring) for name in "ijd")


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_place_of_a_convolution_has_three_indices(name: str) -> None:
    d = cd.grad(RING + PROGRAMS[name])
    assert all(len(arg.free) < 3 for u in subterms(d.term, App) for arg in u.args if isinstance(arg.type, Index))
    assert max(s.rank for s in d.plan().steps if not isinstance(s.op, ops.Input)) <= 2 + (name == "rows")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_with_shifted_sums_are_right(name: str) -> None:
    assert cd.grad(RING + PROGRAMS[name]).check()


def test_outer_sums_are_moved_first() -> None:
    inner = total((j,), mul(App(h, (j,)), App(x, (add(d, i, neg(j)),))))
    moved = with_sums_shifted(total((i,), mul(App(h, (i,)), inner, inner)))
    assert isinstance(moved, Sum)
    (within,) = set(subterms(moved.body, Sum))
    assert d not in within.free


def test_an_index_that_is_read_as_a_number_stays() -> None:
    t = total((i, j), mul(i, j, App(h, (add(i, j, d),))))
    assert with_sums_shifted(t) == t
