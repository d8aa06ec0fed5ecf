"""Loops add up products that are summed over their steps: the code has the same values, and stores less."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes import schedule
from combdiff.arrays.passes.loops.summed import _without, with_sums_in_loops
from combdiff.arrays.plan import Plan, Scan, Step
from combdiff.arrays.verify import verify
from combdiff.terms.terms import ONE
from combdiff.terms.types import Domain

HEAD = "(x::(N{b}, N{n}) -> R, y::(N{b}, N{T}) -> R) -> (W::RM{n, n}, V::RM{n, n}) -> begin\n"
COMPLEX = "(x::(N{b}, N{n}) -> C, y::(N{b}, N{T}) -> R) -> (W::CM{n, n}, V::CM{n, n}) -> begin\n"
PROGRAMS = {
    "network": HEAD
    + """h = iterate((h, t) -> (i, k) -> tanh(sum(l, h(i, l) * W(l, k)) + y(i, t)), x, T)
  sum((i, k), h(i, k)^2) + sum(V .^ 2)
end""",
    "two layers": HEAD
    + """h = iterate((h, t) -> begin
    u = (i, k) -> tanh(sum(l, h(i, l) * W(l, k)))
    (i, k) -> h(i, k) + 0.1 * sum(l, u(i, l) * V(k, l)) * y(i, t)
  end, x, T)
  sum((i, k), h(i, k)^3)
end""",
    "midpoint rule": HEAD
    + """f = (u::RM) -> (i::N{b}, j::N{n}) -> sum(k, sin(sum(l, u(i, l) * W(l, k))) * V(k, j))
  h = iterate((h, t) -> begin k = f(h); h + 0.3 * f(h + 0.2 * k) end, x, T)
  sum((i, k), h(i, k)^2)
end""",
    "of all states": HEAD
    + """h = scan((h, t) -> (i, k) -> sin(sum(l, h(i, l) * W(l, k))) - 0.1 * h(i, k), x, T)
  sum((t::N{T}, i, j, k), V(j, k) * h(t, i, j) * cos(h(t, i, k)))
end""",
    "two states": HEAD
    + """(c, h) = iterate(((c, h), t) -> begin
    g = (i, k) -> sigmoid(sum(l, h(i, l) * W(l, k)) + y(i, t))
    u = (i, k) -> tanh(sum(l, h(i, l) * V(l, k)))
    d = (i, k) -> g(i, k) * c(i, k) + (1 - g(i, k)) * u(i, k)
    (d, (i, k) -> tanh(d(i, k)))
  end, (x, x), T)
  sum((i, k), h(i, k)^2 + c(i, k))
end""",
    "complex": COMPLEX
    + """h = iterate((h, t) -> (i, k) -> sum(l, exp(im * y(i, t)) * h(i, l) * W(l, k)) + 0.1 * V(k, k) * h(i, k), x, T)
  sum((i, k), abs2(h(i, k)))
end""",
    "transposed": HEAD.replace("N{b}", "N{n}", 1)
    + """h = scan((h, t) -> (i, k) -> sin(sum(l, h(i, l) * W(l, k))), x, T)
  sum((t::N{T}, i, j, k), V(j, k) * (h(t, i, j) + cos(h(t, j, i))) * h(t, i, k))
end""",
    "with a way out": HEAD
    + """h = iterate((h, t) -> (i, k) -> tanh(sum(l, h(i, l) * W(l, k))), x, T, h -> sum(h) > 0)
  sum((i, k), h(i, k)^2 * V(k, k))
end""",
}


def drawn(name: str, b: int, n: int, T: int) -> list[np.ndarray]:
    rng = np.random.default_rng(b + n + T)
    rows = n if name == "transposed" else b
    x, y, W, V = (rng.normal(size=s) for s in ((rows, n), (b, T), (n, n), (n, n)))
    if name != "complex":
        return [x, y, W, V]
    return [x + 1j * rng.normal(size=(b, n)), y, W + 1j * rng.normal(size=(n, n)), V + 1j * rng.normal(size=(n, n))]


def unchanged(plan: Plan) -> Plan:
    return plan


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 2, 2), (5, 5, 5), (7, 2, 3), (3, 5, 1)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_computes_the_same(name: str, sizes: tuple[int, int, int]) -> None:
    """Wherever a sum can be added up by a loop it is; axes of equal sizes are told apart."""
    d, given = cd.grad(PROGRAMS[name]), drawn(name, *sizes)
    with patch("combdiff.arrays.passes.loops.summed._Summing._pays", lambda self, step: True):
        found = d.compile(value=True)(*given)
        b, _, T = sizes
        verify(d.plan(value=True, x=given[0].shape, y=(b, T)))
    with patch.object(schedule, "with_sums_in_loops", unchanged):
        expected = d.compile(value=True)(*given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["network", "two layers", "midpoint rule", "two states"])
def test_nothing_is_stored_for_a_sum_over_the_steps(name: str) -> None:
    """Of the loop that runs backwards, nothing but the last states is left."""
    plan = cd.grad(PROGRAMS[name]).plan(value=True, x=(600, 10), y=(600, 9))
    backwards = [s.op for s in plan.steps if isinstance(s.op, Scan) and s.op.reverse]
    assert backwards and all(len(op.items) == op.body.states for op in backwards)
    assert not any(isinstance(s.op, ops.Contraction) and len(s.rows[0]) == 3 for s in plan.steps)


def test_where_states_are_few_one_large_product_is_taken() -> None:
    plan = cd.grad(PROGRAMS["network"]).plan(value=True, x=(4, 10), y=(4, 900))
    assert any(isinstance(s.op, ops.Tensordot) and len(s.rows[0]) == 3 for s in plan.steps)


def test_a_sum_is_added_up_once_for_all_terms_of_a_result() -> None:
    plan = cd.grad(PROGRAMS["midpoint rule"]).plan(value=True, x=(600, 10), y=(600, 9))
    (backwards,) = [s.op for s in plan.steps if isinstance(s.op, Scan) and s.op.reverse]
    assert backwards.body.states == 3


def test_a_step_is_given_nothing_that_it_does_not_read() -> None:
    """A sum whose other factor needs all steps leaves no row behind that was looked for first."""
    text = (
        "(x::(N{b}, N{n}) -> R, z::(N{T}, N{b}, N{n}) -> R, W::RM{n, n}) -> (U::RM{n, n}, V::RM{n, n}) -> begin "
        "h = scan((h, t) -> (i, k) -> tanh(sum(l, h(i, l) * W(l, k))), x, T); "
        "sum((t::N{T}, i, k, l), U(k, l) * h(t, i, k) * sin(h(t, i, l))) + "
        "sum((t::N{T}, i, k, l), V(k, l) * z(t, i, k) * softmax(r::N{T}, h(r, i, l))(t)) end"
    )
    d = cd.grad(text)
    with patch("combdiff.arrays.passes.loops.summed._Summing._pays", lambda self, step: True):
        plan = d.plan(z=(4, 8, 5))
    verify(plan)
    (scan,) = [s for s in plan.steps if isinstance(s.op, Scan)]
    assert scan.op.body.states == 2  # h, and the sum for U
    assert not any(o.op == ops.Input("z") for o in scan.operands)


def test_a_plan_without_loops_stays_as_it_is() -> None:
    plan = cd.grad("(A::RM) -> (x::RV) -> sum(i, sin(sum(j, A(i, j) * x(j))))").plan()
    assert with_sums_in_loops(plan) is plan


@pytest.mark.parametrize(
    ("op", "ranks", "rank", "axis", "row"),
    [
        (ops.Permute((1, 2, 0)), [3], 3, 2, ops.Permute((0, 1))),
        (ops.Permute((1, 2, 0)), [3], 3, 0, ops.Permute((1, 0))),
        (ops.Add((ONE, ONE), places=((0, 2), (1,))), [2, 1], 3, 0, ops.Add((ONE, ONE), places=((1,), (0,)))),
        (ops.Tensordot((1,), (0,)), [3, 2], 3, 0, ops.Tensordot((0,), (0,))),
        (ops.Tensordot((0, 2), (1, 0)), [3, 3], 2, 1, ops.Tensordot((0, 2), (1, 0))),
        (ops.Batched(((0,), (1,)), ((1,), (2,))), [2, 3], 2, 0, ops.Einsum((0,), (1, 0), (1,))),
        (ops.Conj(), [2], 2, 1, ops.Conj()),
    ],
)
def test_an_operation_on_rows_has_one_axis_less(
    op: ops.Op, ranks: list[int], rank: int, axis: int, row: ops.Op
) -> None:
    domain = Domain("n")
    operands = tuple(Step(ops.Input(f"x{n}"), (), (domain,) * r, False) for n, r in enumerate(ranks))
    assert _without(Step(op, operands, (domain,) * rank, False), axis) == row
