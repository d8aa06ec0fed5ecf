"""Cosines and sines of sums of angles are made of those of each angle, where a sum over them then takes less time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.angles import with_angles_apart
from combdiff.arrays.plan import Plan, Scan, Step
from combdiff.arrays.verify import verify
from combdiff.meaning.evaluate import evaluate

grad = cache(cd.grad)

FLOW = """(G::RM{n, n}, B::RM{n, n}, p::RV{n}, q::RV{n}) -> (V::RV{n}, t::RV{n}) -> begin
  P = i -> sum(k, V(i) * V(k) * (G(i, k) * cos(t(i) - t(k)) + B(i, k) * sin(t(i) - t(k))))
  Q = i -> sum(k, V(i) * V(k) * (G(i, k) * sin(t(i) - t(k)) - B(i, k) * cos(t(i) - t(k))))
  sum(i, (P(i) - p(i))^2) + sum(i, (Q(i) - q(i))^2)
end"""
SPINS = "(G::RM{n, n}) -> (t::RV{n}) -> sum((i, j), G(i, j) * (1 - cos(t(i) - t(j))))"
OSCILLATORS = "(a::R, p::RV{n}) -> (t::RV{n}) -> sum(i, (p(i) + a * sum(j, sin(t(j) - t(i) + a)))^2)"
POWDER = "(p::RV{n}, q::RV{n}) -> (t::RV{n}) -> sum(k, (sum((i, j), cos(p(k) * (t(i) - t(j)))) - q(k))^2)"
KERNEL = """(K::RM{n, m}) -> (X::RM{n, m}) ->
  sum((i, j), sum(k, cos(sum(c, K(k, c) * (X(i, c) - X(j, c)))))^2)"""
STEPS = """(G::RM{n, n}, p::RV{n}) -> (t::RV{n}) -> begin
  s = iterate((s, k) -> i -> s(i) + (p(i) + sum(j, G(i, j) * sin(s(j) - s(i)))) / 9, t, 4)
  sum(i, sin(s(i))^2)
end"""
PROGRAMS = {
    "flow": FLOW,
    "spins": SPINS,
    "oscillators": OSCILLATORS,
    "powder": POWDER,
    "kernel": KERNEL,
    "steps": STEPS,
}


def given(program: str, n: int, m: int = 3) -> dict[str, np.ndarray | float]:
    """Arrays for the arguments of a program."""
    rng = np.random.default_rng(n)
    shapes = {"G": (n, n), "B": (n, n), "a": (), "K": (n, m), "p": (n,), "q": (n,), "V": (n,), "t": (n,), "X": (n, m)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items() if f"{name}::" in program}


def functions(plan: Plan) -> Iterator[Step]:
    """The functions of entries in a plan, and in its loops."""
    for step in plan.steps:
        if isinstance(step.op, ops.Call):
            yield step
        elif isinstance(step.op, Scan):
            yield from functions(step.op.body.plan)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_cosine_of_a_sum_is_computed(name: str) -> None:
    n, m = 60, 2
    arrays = given(PROGRAMS[name], n, m)
    plan = grad(PROGRAMS[name]).plan(value=True, **{key: np.shape(array) for key, array in arrays.items()})
    most = n * n if name in ("powder", "kernel") else n
    found = [*functions(plan)]
    assert found and all(plan.entries(step) <= most and step.rank <= 2 for step in found)
    verify(plan)
    assert with_angles_apart(plan) == plan


@pytest.mark.parametrize("n", [1, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 7))])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_with_each_angle_are_the_sums(name: str, n: int) -> None:
    d = grad(PROGRAMS[name])
    arrays = given(PROGRAMS[name], n)
    first = PROGRAMS[name].split("->")[0].count("::")
    values = [*arrays.values()]
    expected = evaluate(d.term, {})(*values[:first])(*values[first:])  # type: ignore[operator]  # a function of all
    found = d.compile()(**arrays)
    for one, other in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
        assert np.allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("apart", [1.0, 1e-8, 0.0])
def test_close_angles_cost_digits_of_the_angles_only(apart: float) -> None:
    """The result is that for angles which differ from the given ones in their last digits."""
    n = 60
    arrays = given(SPINS, n)
    t = 1 + apart * arrays["t"]
    found = cd.grad(SPINS).compile()(G=arrays["G"], t=t)
    couplings = arrays["G"] + np.transpose(arrays["G"])
    exact = (couplings * np.sin(t[:, None] - t)).sum(axis=1)
    assert np.allclose(found, exact, rtol=0, atol=4 * np.finfo(float).eps * np.abs(couplings).sum(axis=1).max())


@pytest.mark.parametrize(
    "program",
    [
        "(G::RM{n, n}) -> (t::RV{n}) -> (i, j) -> G(i, j) * cos(t(i) - t(j))",
        "(G::RM{n, n}) -> (t::RV{n}) -> sum((i, j), G(i, j) * sin(t(i) - t(j))^2)",
        "(G::RM{n, n}) -> (t::RV{n}) -> sum((i, j), G(i, j) * cos(t(i) - t(j) - G(i, j)))",
        "(G::RM{n, n}) -> (t::CV{n}) -> real(sum((i, j), G(i, j) * cos(t(i) - t(j))))",
    ],
)
def test_other_cosines_stay(program: str) -> None:
    plan = cd.simplified(program).plan(G=(60, 60), t=(60,))
    assert any(step.rank == 2 and isinstance(step.op, ops.Call) for step in plan.steps)
