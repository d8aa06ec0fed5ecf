"""Logistic functions of one argument share its exponential, and lose no digits by it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.logistic import with_exponentials_shared
from combdiff.arrays.verify import verify

LOSS = "(X::RM{n, m}, y::RV{n}) -> (w::RV{m}) -> sum(i, log(1 + exp(-y(i) * sum(j, X(i, j) * w(j)))))"
ALL = """(a::RV{n}, b::RV{n}, c::RV{n}, d::RV{n}) -> (u::RV{n}) ->
  sum(i, a(i) * softplus(u(i)) + b(i) * softplus(-u(i)) + c(i) * sigmoid(u(i)) + d(i) * sigmoid(-u(i)))"""
EXTREME = np.array([0.0, -0.0, 1e-300, 1.0, 36.0, 700.0, 1000.0, np.inf])


def functions_of(program: str, **shapes: tuple[int, ...]) -> list[str]:
    plan = cd.grad(program).plan(value=True, **shapes)
    verify(plan)
    return [step.op.function for step in plan.steps if isinstance(step.op, ops.Call)]


def test_value_and_gradient_of_a_logistic_loss_take_one_exponential() -> None:
    assert sorted(functions_of(LOSS, X=(1000, 5), y=(1000,))) == ["abs", "exp", "log1p", "relu"]


def test_few_entries_are_left_to_the_functions_of_the_library() -> None:
    assert sorted(functions_of(LOSS, X=(20, 5), y=(20,))) == ["sigmoid", "softplus"]


def test_a_function_that_is_alone_stays() -> None:
    program = "(y::RV{n}) -> (u::RV{n}) -> sum(i, y(i) * sigmoid(u(i)))"
    assert "exp" not in [
        s.op.function for s in cd.simplified(program).plan(y=(1000,), u=(1000,)).steps if isinstance(s.op, ops.Call)
    ]


@pytest.mark.slow
def test_each_function_is_as_near_as_that_of_the_library() -> None:
    u = np.concatenate([EXTREME, -EXTREME, np.random.default_rng(0).normal(size=1000) * 20])
    d = cd.simplified(
        "(u::RV{n}) -> (i -> softplus(u(i)), i -> softplus(-u(i)), i -> sigmoid(u(i)), i -> sigmoid(-u(i)))"
    )
    assert sum(isinstance(s.op, ops.Call) and s.op.function == "exp" for s in d.plan(u=u.shape).steps) == 1
    expected = np.logaddexp(u, 0), np.logaddexp(-u, 0), special.expit(u), special.expit(-u)
    for one, other in zip(d.compile()(u), expected, strict=True):
        assert np.allclose(one, other, rtol=2e-15, atol=0)


@pytest.mark.slow
def test_the_gradient_is_that_of_the_functions_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    given = [rng.normal(size=600) * 5 for _ in range(5)]
    found = cd.grad(ALL).compile(value=True)(*given)
    monkeypatch.setattr("combdiff.arrays.passes.schedule.with_exponentials_shared", lambda plan: plan)
    for one, other in zip(found, cd.grad(ALL).compile(value=True)(*given), strict=True):
        assert np.allclose(one, other, rtol=1e-13)


def test_sharing_twice_is_sharing_once() -> None:
    plan = cd.grad(LOSS).plan(X=(1000, 5), y=(1000,), value=True)
    assert with_exponentials_shared(plan) is plan


@pytest.mark.slow
def test_one_softplus_is_made_of_an_exponential_too() -> None:
    """NumPy's logaddexp takes four times as long."""
    u = np.concatenate([EXTREME, -EXTREME, np.random.default_rng(0).normal(size=1000) * 20])
    d = cd.simplified("(u::RV{n}) -> (i -> softplus(u(i)), i -> softplus(-2 * abs(u(i))))")
    calls = [s.op.function for s in d.plan(u=u.shape).steps if isinstance(s.op, ops.Call)]
    assert "softplus" not in calls and calls.count("relu") == 1, "nothing is above −2 |u| and 0"
    for one, v in zip(d.compile()(u), (u, -2 * abs(u)), strict=True):
        assert np.allclose(one, np.logaddexp(v, 0), rtol=2e-15, atol=0)
