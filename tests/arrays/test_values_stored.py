"""Loops store what would be made again after them: the code has the same value, and makes nothing twice."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes import schedule
from combdiff.arrays.passes.loops.stored import with_values_stored
from combdiff.arrays.passes.loops.values import Values
from combdiff.arrays.plan import Builder, Plan, Scan
from combdiff.arrays.verify import verify
from combdiff.terms.terms import MINUS_ONE, ONE, number
from combdiff.terms.types import Domain

PROGRAMS = {
    "network": """(x::RM{T, n}) -> (W::RM{n, n}, h0::RV{n}) -> begin
  h = iterate((h, t) -> i -> tanh(sum(j, W(i, j) * sin(h(j))) + x(t, i)), h0, T)
  sum(i, h(i)^2)
end""",
    "hidden Markov model": """(x::RM{T, n}) -> (W::RM{n, n}, h0::RV{n}) -> begin
  a = iterate((a, t) -> j -> logsumexp(i, a(i) + W(i, j)) + x(t, j), h0, T)
  logsumexp(j, a(j))
end""",
    "scaled": """(x::RM{T, n}) -> (W::RM{n, n}, h0::RV{n}) -> begin
  (a, l) = iterate(((a, l), t) -> begin
    u = j -> sum(i, a(i) * exp(W(i, j))) * exp(x(t, j))
    c = sum(j, u(j))
    (j -> u(j) / c, l + log(c))
  end, (i -> exp(h0(i)), 0), T)
  l
end""",
    "Runge-Kutta": """(x::RM{T, n}) -> (W::RM{n, n}, h0::RV{n}) -> begin
  f = (y::RV) -> i -> tanh(sum(j, W(i, j) * y(j)))
  h = iterate((h, t) -> begin
    k = f(h)
    l = f(0.7 * h + 0.5 * k)
    h + 0.3 * l + (i -> x(t, i) * k(i))
  end, h0, T)
  sum(i, h(i)^2)
end""",
    "of all states": """(x::RM{T, n}) -> (W::RM{n, n}, h0::RV{n}) -> begin
  h = scan((h, t) -> i -> sin(sum(j, W(i, j) * h(j))) - x(t, i), h0, T)
  sum((t::N{T}, i), cos(h(t, i))^2)
end""",
    "complex": """(x::RM{T, n}) -> (W::CM{n, n}, h0::CV{n}) -> begin
  h = iterate((h, t) -> i -> exp(im * x(t, i) * abs2(sum(j, W(i, j) * h(j)))) * h(i), h0, T)
  sum((i, j), W(i, j) * h(i) * h(j)') ▷ real
end""",
    "with a way out": """(x::RM{T, n}) -> (W::RM{n, n}, h0::RV{n}) -> begin
  h = iterate((h, t) -> i -> sin(sum(j, W(i, j) * sin(h(j)))) + x(t, i), h0, T, h -> h(0) < 3)
  sum(i, h(i)^2)
end""",
}


def drawn(name: str, T: int, n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(T + n)
    x, W, h0 = rng.normal(size=(T, n)), rng.normal(size=(n, n)), rng.normal(size=n)
    return [x, W, h0] if name != "complex" else [x, W + 1j * rng.normal(size=(n, n)), h0 + 1j * rng.normal(size=n)]


def unstored(plan: Plan) -> Plan:
    return plan


@pytest.mark.slow
@pytest.mark.parametrize("turn", [0, 300])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 5), (7, 3)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_computes_the_same(name: str, sizes: tuple[int, int], turn: int) -> None:
    """Where a row takes no time (`turn`), each value is stored that can be; the axes may be of one size."""
    given = drawn(name, *sizes)
    d = cd.grad(PROGRAMS[name])
    with patch("combdiff.arrays.passes.loops.stored.TURN", turn):
        found = d.compile(value=True)(*given)
        verify(d.plan(value=True, x=sizes))
    with patch.object(schedule, "with_values_stored", unstored):
        expected = d.compile(value=True)(*given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["network", "hidden Markov model", "Runge-Kutta"])
def test_nothing_is_made_again(name: str) -> None:
    """After the loops, and in those that run backwards, no function is taken of what was computed before."""
    forms = cd.grad(PROGRAMS[name]).runnable.forms(value=True)
    sizes = {d: 60 for a in forms.plan().arguments if a.step is not None for d in a.step.domains}
    plan = forms.plan(sizes)
    assert _functions(plan) > _functions(with_values_stored(plan))


def _functions(plan: Plan) -> int:
    """The exponentials, sines and hyperbolic tangents of a plan and of the steps of its loops."""
    bodies = [s.op.body.plan for s in plan.steps if isinstance(s.op, Scan)]
    steps = [s for p in (plan, *bodies) for s in p.steps]
    return sum(isinstance(s.op, ops.Call) and s.op.function in ("exp", "sin", "tanh") for s in steps)


@pytest.mark.slow
@pytest.mark.parametrize(("T", "stores"), [(200, True), (20_000, False)])
def test_what_is_larger_than_the_states_is_made_in_parts(T: int, stores: bool) -> None:
    """The exponentials of all steps, 64 MB, never exist at once."""
    plan = cd.grad(PROGRAMS["hidden Markov model"]).plan(value=True, x=(T, 20))
    largest = max(step.rank for step in plan.steps if isinstance(step.op, ops.Item))
    assert (largest == 3) == stores


def test_a_plan_without_loops_stays_as_it_is() -> None:
    plan = cd.grad("(A::RM) -> (x::RV) -> sum(i, sin(sum(j, A(i, j) * x(j))))").plan()
    assert with_values_stored(plan) is plan


def test_memory_is_limited_before_values_are_stored() -> None:
    """Under a limit, states are kept for blocks of steps; what is stored would exceed it."""
    d = cd.grad(PROGRAMS["network"])
    given = drawn("network", 400, 30)
    limit = 150_000
    assert d.compile(value=True, memory=limit)(*given)[0] == pytest.approx(d.compile(value=True)(*given)[0], rel=1e-12)


def test_numbers_of_arrays_do_not_depend_on_how_they_are_spelled() -> None:
    n, m = Domain("n"), Domain("m")
    make = Builder().step
    A, x, y = make(ops.Input("A"), (), (n, m)), make(ops.Input("x"), (), (m,)), make(ops.Input("y"), (), (m,))
    total = make(ops.Add((ONE, number(3)), places=((0,), (0,))), (x, y), (m,))
    whole = make(ops.Tensordot((1,), (0,)), (A, total), (n,))
    parts = [make(ops.Tensordot((0,), (1,)), (u, A), (n,)) for u in (y, x)]
    apart = make(ops.Add((number(-3), MINUS_ONE), places=((0,), (0,))), tuple(parts), (n,))
    values = Values()
    (one, c), (other, d) = values.number(whole), values.number(apart)
    assert one == other and (c, d) in [(ONE, MINUS_ONE), (number(3), number(-3))]
    less = make(ops.Add((ONE, number(2)), places=((0,), (0,))), (x, y), (m,))
    assert values.number(make(ops.Tensordot((1,), (0,)), (A, less), (n,)))[0] != one


def test_an_axis_for_the_steps_is_left_out() -> None:
    t, n = Domain("t"), Domain("n")
    make = Builder().step
    h, x = make(ops.Input("h"), (), (t, n)), make(ops.Input("x"), (), (n,))
    values = Values()
    values.set(h, 0, values.of(x))
    sine = ops.Call("sin")
    turned = make(ops.Permute((1, 0)), (h,), (n, t))
    assert values.number(make(sine.placed(((0, 1),)), (turned,), (n, t)), 1) == values.number(
        make(sine.placed(((0,),)), (x,), (n,))
    )
    # Σ_t h(t, i) has no axis for the steps
    whole = make(ops.Sum((0,)), (h,), (n,))
    assert values.number(whole) != values.number(x)
