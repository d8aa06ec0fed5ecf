"""What is computed twice with its axes in two orders is computed once."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.other_orders import in_one_order
from combdiff.arrays.plan import Builder, Step
from combdiff.arrays.verify import verify
from combdiff.terms.terms import MINUS_ONE, ONE
from combdiff.terms.types import Domain

PAIRS = """(e::RV{o}, f::RV{v}) -> (B::(N{o}, N{v}, N{Q}) -> R) -> begin
  I = (i, a, j, b) -> sum(q, B(i, a, q) * B(j, b, q))
  sum((i, a, j, b), I(i, a, j, b) * (2 * I(i, a, j, b) - I(i, b, j, a)) / (e(i) + e(j) - f(a) - f(b)))
end"""
N = Domain("n")
SIZES = {N: 100}


def products(*places: ops.Rows, coefficients: tuple[int, int] = (1, 1)) -> tuple[Step, ...]:
    """x(…) · (y ± z)(…) with the axes of both at these places, for each of them."""
    make = Builder().step
    x, y, z = (make(ops.Input(name), (), (N,) * rank, False) for name, rank in (("x", 2), ("y", 1), ("z", 1)))
    second = y if coefficients == (1, 1) else z
    signs = tuple({1: ONE, -1: MINUS_ONE}[c] for c in coefficients)
    total = make(ops.Add(signs, places=((0,), (1,))), (y, second), (N, N))
    return tuple(make(ops.Mul(ONE, places=at), (x, total), (N, N)) for at in places)


def test_a_product_in_another_order_is_a_view_of_the_first() -> None:
    one, other = products(((0, 1), (1, 0)), ((1, 0), (0, 1)))
    found, _ = in_one_order((one, other), {}, SIZES)
    assert found[0] is one and found[1].op == ops.Permute((1, 0)) and found[1].operands == (one,)


def test_axes_that_may_change_places_are_the_same() -> None:
    one, other = products(((0, 1), (0, 1)), ((0, 1), (1, 0)))
    assert in_one_order((one, other), {}, SIZES)[0] == (one, one)


def test_other_terms_or_other_signs_are_others() -> None:
    one, other = products(((0, 1), (0, 1)), ((0, 1), (1, 0)), coefficients=(1, -1))
    assert in_one_order((one, other), {}, SIZES)[0] == (one, other)


def test_small_arrays_stay_as_they_are_written() -> None:
    pair = products(((0, 1), (1, 0)), ((1, 0), (0, 1)))
    assert in_one_order(pair, {}, {N: 10})[0] == pair


@pytest.mark.slow
def test_a_product_with_denominators_is_made_once_for_value_and_gradient() -> None:
    rng = np.random.default_rng(0)
    e, f, B = -1 - rng.random(8), 1 + rng.random(9), rng.normal(size=(8, 9, 12))
    d = cd.grad(PAIRS)
    plan = d.plan(e=(8,), f=(9,), B=B.shape, value=True)
    verify(plan)
    large = [s for s in plan.steps if isinstance(s.op, ops.Mul) and s.rank == 4 and len(s.operands) > 1]
    assert len(large) == 1
    integrals = np.einsum("iaq,jbq->iajb", B, B)
    shares = (2 * integrals - integrals.transpose(0, 3, 2, 1)) / (
        e[:, None, None, None] - f[:, None, None] + e[:, None] - f
    )
    value, gradient = d.compile(value=True)(e, f, B)
    assert np.isclose(value, (integrals * shares).sum(), rtol=1e-11)
    assert np.allclose(gradient, 4 * np.einsum("iajb,jbq->iaq", shares, B), rtol=1e-9, atol=1e-9)


def test_the_order_of_factors_does_not_matter() -> None:
    (one,) = products(((0, 1), (0, 1)))
    x, total = one.operands
    other = Step(ops.Mul(ONE, places=((0, 1), (1, 0))), (total, x), (N, N), False)
    (_, found), _ = in_one_order((one, other), {}, SIZES)
    assert found.op == ops.Permute((1, 0)) and found.operands == (one,)
