"""Loops that are linear in their state are one call; others, and those that are watched, stay loops."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.loops.filters import with_filters
from combdiff.arrays.plan import Plan, Scan
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import verify

NUMBER = "(x::RV{T}) -> (b::R, a::R, s0::R) -> begin s = scan((s, t) -> b * s + a * x(t), s0, T);"
PROGRAMS = {
    "average": NUMBER + " sum(t::N{T}, (x(t) - s(t))^2) end",
    "last": NUMBER + " s(T)^2 end",
    "both": NUMBER + " s(T)^3 * sum(t::N{T}, sin(s(t))) end",
    "decay": "(x::RV{T}) -> (b::R, a::R, s0::R) -> iterate((s, t) -> s / 2 + a * x(t) * b, s0, T)^2",
    "less": "(x::RV{T}) -> (b::R, a::R, s0::R) -> iterate((s, t) -> exp(a * x(t)) - b * s, s0, T)^2",
    "complex": "(x::RV{T}) -> (b::C, a::R, s0::C) -> abs2(iterate((s, t) -> b * s + a * x(t) * im, s0, T))",
    "vector": "(x::RM{T, n}) -> (b::R, a::R, s0::RV{n}) -> begin"
    " s = scan((s, t) -> (i::N{n}) -> b * s(i) + a * x(t, i), s0, T); sum((t::N{T}, i), cos(s(t, i))) end",
}


def drawn(name: str, T: int) -> list[np.ndarray]:
    rng = np.random.default_rng(T)
    s0 = rng.normal(size=3 if name == "vector" else ())
    if name == "complex":
        return [rng.normal(size=T), np.array(0.3 + 0.5j), np.array(0.7), s0 + 0.2j]
    return [rng.normal(size=(T, 3) if name == "vector" else T), np.array(0.6), np.array(0.7), s0]


def filters(plan: Plan) -> int:
    return sum(isinstance(step.op, ops.Recursive) for step in plan.steps)


@pytest.mark.slow
@pytest.mark.parametrize("T", [64, 65, 200])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_filter_computes_what_the_loop_does(name: str, T: int, monkeypatch: pytest.MonkeyPatch) -> None:
    d, given = cd.grad(PROGRAMS[name]), drawn(name, T)
    plan = d.plan(value=True, x=given[0].shape)
    verify(plan)
    assert filters(plan) == 2 and not any(isinstance(s.op, Scan) for s in plan.steps), "forwards and backwards"
    assert filters(read(text(plan))) == 2
    found = d.compile(value=True)(*given)
    monkeypatch.setattr("combdiff.arrays.passes.schedule.with_filters", lambda plan: plan)
    for one, other in zip(found, d.compile(value=True)(*given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.slow
def test_code_for_many_steps_runs_for_few() -> None:
    """Also for none: the code is that for the sizes of its plan."""
    scope: dict[str, object] = {}
    exec(cd.grad(PROGRAMS["both"]).source(value=True, x=(100,)), scope)
    f = scope["value_and_gradient"]
    assert callable(f) and "linear_recurrence" in scope
    for T in (0, 1, 2):
        given = drawn("both", T)
        for one, other in zip(f(*given), cd.grad(PROGRAMS["both"]).compile(value=True)(*given), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    "step",
    [
        "b * s^2 + x(t)",
        "x(t) * s + b",
        "b * sin(s) + x(t)",
        "b * s * x(t) + 1",
        "s + b",
        "b * s + s^2 * x(t)",
        "sin(x(t)) * s + x(t)",
    ],
)
def test_other_loops_stay(step: str) -> None:
    forms = cd.simplified(f"(x::RV{{T}}, b::R) -> iterate((s, t) -> {step}, 1, T)").runnable.forms()
    assert not filters(
        with_filters(forms.plan({d: 900 for a in forms.plan().arguments if a.step for d in a.step.domains}))
    )


def test_few_steps_and_watched_ones_stay_in_a_loop() -> None:
    d = cd.simplified("(x::RV{T}, b::R) -> iterate((s, t) -> b * s + x(t), 1, T)")
    assert (
        filters(d.plan(x=(63,))) == 0 and filters(d.plan(x=(64,))) == 1 and filters(d.plan(backend="jax", x=(64,))) == 0
    )
    x = np.ones(100)
    x[40] = np.nan
    with pytest.raises(cd.ArrayError, match="step 40"):
        d.compile(check="states")(x, 0.5)
