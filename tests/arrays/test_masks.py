"""Masks are taken once, and those that leave out a diagonal are written into it: the same numbers, and no others."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.masks import with_masks_once
from combdiff.arrays.plan import Argument, Builder, Plan
from combdiff.arrays.verify import verify
from combdiff.terms.terms import ONE, ZERO
from combdiff.terms.types import REAL, Domain

RING = "@domain Z begin periodic = true end\n"
PROGRAMS = [
    "(K::RM{n, n}) -> (x::RV{n}) -> sum((i, j), i != j, K(i, j) / (x(i) - x(j))^2)",
    "(K::RM{n, n}) -> (x::RV{n}) -> sum((i, j), i != j, K(i, j) * log(abs(x(i) - x(j))))^2",
    "(K::RM{n, n}) -> (x::RV{n}) -> begin w = (i, j) -> 1 / abs(x(i) - x(j)); z = sum((i, j), i != j, w(i, j));"
    " sum((i, j), i != j, K(i, j) * log(w(i, j) / z)) end",
    "(K::RM{n, n}) -> (x::RV{n}) -> sum((i, j), where(i != j, x(i)) * where(i != j, K(i, j) * x(j)^2))",
    "(K::RM{n, n}) -> (x::RV{n}) -> sum((i, j), i < j, sqrt(abs(x(i) - x(j))) * K(i, j) + K(j, i) / (x(i) - x(j)))",
    "(K::CM{n, n}) -> (x::CV{n}) -> sum((i, j), i != j, abs2(K(i, j) / (x(i) - x(j))))",
    RING + "(K::(Z, Z) -> R) -> (x::(Z) -> R) -> sum((i::Z, j::Z), i != j, K(i, j) / (x(i) - x(j))^2)",
]


def drawn(text: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    K, x = rng.normal(size=(n, n)), rng.normal(size=n)
    return (K + 1j * rng.normal(size=(n, n)), x + 1j * rng.normal(size=n)) if "CM" in text else (K, x)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 5, 300])
@pytest.mark.parametrize("text", PROGRAMS)
def test_the_code_computes_the_same_and_does_not_warn(text: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays that are given stay as they are."""
    K, x = drawn(text, n)
    given = K.copy(), x.copy()
    d = cd.grad(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = d.compile(value=True)(K, x)
    monkeypatch.setattr("combdiff.arrays.passes.schedule.with_masks_once", lambda plan: plan)
    for one, other in zip(found, d.compile(value=True)(K, x), strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one, other, rtol=1e-9)
    np.testing.assert_array_equal((K, x)[0], given[0])
    np.testing.assert_array_equal((K, x)[1], given[1])


def kinds(plan: Plan) -> list[str]:
    return [type(step.op).__name__ for step in plan.steps if isinstance(step.op, ops.Where | ops.Filled)]


def test_pairs_of_different_points_take_no_mask() -> None:
    d = cd.grad("(x::RM) -> sum((i, j), i != j, 1 / sum(c, (x(i, c) - x(j, c))^2))")
    plan = d.plan(value=True, x=(300, 3))
    verify(plan)
    assert set(kinds(plan)) == {"Filled"}
    assert "np.where" not in d.source(value=True, x=(300, 3))


@pytest.mark.parametrize(
    ("entry", "masks"),
    [
        ("where(i < j, x(i) + K(i, j)) * where(i < j, exp(K(i, j)) + x(j))", 1),
        ("where(i < j, exp(K(i, j))) - sin(K(j, i)) * where(i < j, cos(x(i) + x(j)))", 1),
        ("where(i < j, exp(K(i, j))) * where(x(i) < x(j), cos(x(i) + x(j)))", 2),
        ("where(i < j, exp(K(i, j))) - sin(K(j, i)) * where(j < i, cos(x(i) + x(j)))", 2),
        ("where(i < j, exp(K(i, j))) + sin(K(j, i))", 1),
    ],
)
def test_what_is_masked_alike_is_masked_once(entry: str, masks: int) -> None:
    """By one condition, all terms of a sum or several factors of a product."""
    d = cd.simplified(f"(K::RM{{n, n}}, x::RV{{n}}) -> (i, j) -> {entry}")
    plan = with_masks_once(d.plan(backend="jax", K=(9, 9)))
    verify(plan)
    assert sum(isinstance(s.op, ops.Where) and s.op.otherwise == ZERO for s in plan.steps) == masks
    K, x = drawn("", 5)
    i, j = np.ogrid[:5, :5]
    scope = {"where": lambda c, e: np.where(c, e, 0), "exp": np.exp, "sin": np.sin, "cos": np.cos, "i": i, "j": j}
    scope |= {"K": lambda i, j: K[i, j], "x": lambda i: x[i]}
    np.testing.assert_allclose(d.compile()(K, x), eval(entry, scope), rtol=1e-12)


@pytest.mark.parametrize("mask", ["i == j", "i <= j", "i + 1 != j"])
def test_other_masks_stay(mask: str) -> None:
    plan = cd.simplified(f"(x::RV) -> (i, j) -> where({mask}, exp(x(i) + x(j)))").plan(x=(9,))
    assert "Filled" not in kinds(plan)


def test_what_is_needed_elsewhere_is_copied() -> None:
    f = cd.simplified(
        "(x::RV) -> begin e = (i, j) -> exp(x(i) + x(j)); sum((i, j), e(i, j) + where(i != j, e(i, j)^2)) end"
    )
    x = np.array([0.1, 0.2])
    e = np.exp(x[:, None] + x)
    assert np.isclose(f.compile()(x), e.sum() + 2 * e[0, 1] ** 2)


def test_what_is_masked_for_another_use_keeps_its_mask() -> None:
    """Else it would be masked twice, alone and as a product."""
    n, make = Domain("n"), Builder().step
    K, L = (make(ops.Input(name), (), (n, n)) for name in "KL")
    i = make(ops.Range(n), (), (n,))
    below = ops.Where("<", None, ZERO, places=((0,), (1,), (0, 1)))
    one, other = (make(below, (i, i, u), (n, n)) for u in (K, L))
    product = make(ops.Mul(ONE, places=((0, 1), (0, 1))), (one, other), (n, n))
    arguments = tuple(Argument(u.op.argument, REAL, step=u) for u in (K, L) if isinstance(u.op, ops.Input))
    apart = Plan(arguments, (product,), False, {n: 9})
    assert kinds(with_masks_once(apart)) == ["Where"]
    assert kinds(with_masks_once(replace(apart, outputs=(one, other, product), tupled=True))) == ["Where", "Where"]
