"""Extrema up to an index, and sums over the shares in them: one pass, with the ties that the language defines."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.lower.inner import running
from combdiff.arrays.verify import verify
from combdiff.meaning.evaluate import evaluate
from solvers import numpy as solvers
from solvers import portable
from tests.emit.array_libraries import Numbers

EXTREMA = {
    "up to": "(c::RV{n}) -> (x::RV{n}) -> sum(t, c(t) * maximum(s, s <= t, x(s)))",
    "without weights": "(c::RV{n}) -> (x::RV{n}) -> sum(t::N{n}, maximum(s, s <= t, x(s)))",
    "from one on": "(c::RV{n}) -> (x::RV{n}) -> sum(t, c(t) * sin(maximum(s, t <= s, x(s))))",
    "before": "(c::RV{n}) -> (x::RV{n}) -> sum(t, 1 <= t, c(t) * maximum(s, s < t, x(s))^2)",
    "behind": "(c::RV{n}) -> (x::RV{n}) -> sum(t, t + 2 < n, c(t) * maximum(s, t + 2 <= s, x(s))^3)",
    "the least": "(c::RV{n}) -> (x::RV{n}) -> sum(t, c(t) * minimum(s, s <= t, x(s)))",
    "below the highest": "(c::RV{n}) -> (x::RV{n}) -> sum(t, c(t) * (maximum(s, s <= t, x(s)) - x(t))^2)",
    "rows": "(c::RM{n, k}) -> (x::RM{k, n}) -> sum((t, a), c(t, a) * maximum(s, s <= t, x(a, s)))",
    "weights of rows": "(c::RM{n, k}) -> (x::RV{n}) -> sum((t, a), c(t, a) * maximum(s, s <= t, x(s)))",
    "of what is computed": "(c::RV{n}) -> (x::RV{n}) -> sum(t, c(t) * x(t) * maximum(s, s <= t, exp(x(s)) + x(s)))",
    "complex": "(c::CV{n}) -> (x::RV{n}) -> abs2(sum(t, c(t) * maximum(s, s <= t, x(s))))",
    "other numbers": "(c::RV{m}) -> (x::RV{n}) -> sum(t, c(t) * atan(maximum(s, s <= t, x(s))))",
    "of some": "(c::RV{n}) -> (x::RV{n}) -> sum(t, c(t) * atan(maximum(s, s <= t and c(s) <= 0, x(s))))",
    "pairs": "(c::RM{n, n}) -> (x::RV{n}) -> sum((t, u), c(t, u) * x(u) * maximum(s, s <= t, x(s)))",
}
MASKED = ("other numbers", "of some")
"""Programs whose gradients are made of all pairs."""


def given(name: str, n: int, repeated: int = 3) -> list[np.ndarray]:
    """Arrays of few different numbers, so that there are ties, and of others for many."""
    rng = np.random.default_rng(n)
    c, x = EXTREMA[name].split(" -> ")[:2]
    shapes = [{"RM{n, k}": (n, 3), "RM{k, n}": (3, n), "V{m}": (n + 2,), "RM{n, n}": (n, n)} for _ in (c, x)]
    found = []
    for text, of in zip((c, x), shapes, strict=True):
        shape = next((s for word, s in of.items() if word in text), (n,))
        found.append(rng.normal(size=shape) + (1j * rng.normal(size=shape) if "CV" in text else 0))
    found[1] = rng.integers(0, repeated, found[1].shape) / 4
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("name", EXTREMA)
def test_running_extrema_are_what_the_program_means(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_SHORT", 0)
    c, x = given(name, n)
    d, value = cd.grad(EXTREMA[name]), cd.simplified(EXTREMA[name])
    expected = evaluate(value.term, {})(c)(x), evaluate(d.term, {})(c)(x)  # type: ignore[operator]
    for one, other in zip(d.compile(value=True)(c, x), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXTREMA.keys() - {"of some", "behind"}))
def test_products_with_the_hessian_are_those_of_tables_of_all_pairs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    c, x = given(name, 7)
    along = np.random.default_rng(0).normal(size=x.shape)
    found = []
    for short in (0, 1000):
        monkeypatch.setattr(running, "_SHORT", short)
        found.append(cd.hvp(EXTREMA[name]).compile()(c, x, along))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(EXTREMA.keys() - {*MASKED, "complex"}))
def test_no_table_of_all_pairs_is_made(name: str) -> None:
    c, x = given(name, 200)
    plan = cd.grad(EXTREMA[name]).plan(value=True, c=c.shape, x=x.shape)
    verify(plan)
    pairs = {s for s in plan.steps if sum(plan.sizes[d] == 200 for d in s.domains) > 1}
    assert pairs <= ({a.step for a in plan.arguments} if name == "pairs" else set())
    assert any(isinstance(s.op, ops.CumulativeTies) for s in plan.steps)


def test_an_extremum_of_other_indices_is_running_too() -> None:
    for name in MASKED:
        assert "accumulate" in cd.simplified(EXTREMA[name]).source()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("repeated", [1, 2, 5, 1000])
def test_one_pass_finds_the_shares_of_a_table_of_all_pairs(axis: int, repeated: int) -> None:
    rng = np.random.default_rng(repeated)
    x, w = rng.integers(0, repeated, (30, 40)) / 7, rng.normal(size=(30, 40)) + 1j
    x[3, 5], x[:, 7], x[8] = np.nan, np.inf, -np.inf
    for name in ("sums_of_cumulative_ties", "means_of_cumulative_ties"):
        one, other = (getattr(module, name)(w, x, axis) for module in (solvers, portable))
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    for name in ("maximum", "minimum"):
        expected = getattr(np, name).accumulate(x, axis)
        np.testing.assert_array_equal(getattr(portable, f"cumulative_{name}")(x, axis), expected)


def test_no_entries_have_no_shares() -> None:
    for shape in ((0,), (3, 0), (0, 3)):
        none = np.zeros(shape)
        for f in (solvers.sums_of_cumulative_ties, solvers.means_of_cumulative_ties):
            assert f(none, none, len(shape) - 1).shape == shape


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch", "dask", "cupy"])
@pytest.mark.parametrize("name", ["up to", "from one on", "the least", "rows"])
def test_other_libraries_have_them(name: str, backend: str) -> None:
    numbers = Numbers(backend)
    c, x = given(name, 70, repeated=5)
    f = cd.grad(EXTREMA[name]).compile(backend, value=True)
    expected = cd.grad(EXTREMA[name]).compile(value=True)(c, x)
    for one, other in zip(f(numbers.to(c, 70), numbers.to(x, 70)), expected, strict=True):
        np.testing.assert_allclose(numbers.back(one), other, rtol=1e-10, atol=1e-10)
