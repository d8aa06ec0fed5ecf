"""Convolutions round a ring are products of fast transforms where there are many values, in each direction."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.convolutions import with_convolutions_transformed
from combdiff.arrays.plan import Plan
from combdiff.arrays.verify import verify
from combdiff.meaning.evaluate import evaluate
from tests.arrays.test_gathers import run

RING = "@domain Z begin periodic = true end\n"
PLACES = ["i - j", "i + j", "j - i", "-i - j"]


def program(place: str, kind: str = "R") -> str:
    given = f"(h::(Z) -> {kind}, w::(Z) -> R) -> (x::(Z) -> {kind})"
    return f"{RING}{given} -> sum(i::Z, w(i) * abs2(sum(j::Z, h(j) * x({place})))^2)"


def kinds(plan: Plan) -> Counter[type]:
    halves = {ops.HalfFourier, ops.FromHalfFourier}
    return Counter(ops.Fourier if type(step.op) in halves else type(step.op) for step in plan.steps)


def value(place: str, h: np.ndarray, w: np.ndarray, x: np.ndarray) -> float:
    i, j = np.ogrid[: len(x), : len(x)]
    table = x[eval(place, {"i": i, "j": j}) % len(x)]
    return float((w * np.abs(table @ h) ** 4).sum())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["R", "C"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("n", [64, 75])
def test_a_large_convolution_has_its_value_and_slope(place: str, kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    w = rng.normal(size=n)
    h, x, k = (rng.normal(size=(3, n)) + 1j * (kind == "C") * rng.normal(size=(3, n))) / 4
    h, x, k = (u if kind == "C" else u.real for u in (h, x, k))
    d = cd.grad(program(place, kind))
    found, slope = d.compile(value=True)(h=h, w=w, x=x)
    assert np.isclose(found, value(place, h, w, x), rtol=1e-12)
    step = 1e-5
    wanted = (value(place, h, w, x + step * k) - value(place, h, w, x - step * k)) / (2 * step)
    assert np.isclose(np.vdot(slope, k).real, wanted, rtol=1e-7)
    plan = d.plan(h=(n,), w=(n,), x=(n,))
    # w may be read at −i
    assert kinds(plan)[ops.Fourier] and all(s.rank == 1 for s in plan.steps if isinstance(s.op, ops.Gather))
    assert any(isinstance(s.op, ops.HalfFourier) for s in plan.steps) == (kind == "R")
    verify(plan)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("place", PLACES)
def test_half_of_a_transform_is_enough_for_real_numbers(place: str, n: int) -> None:
    text = f"{RING}(h::(Z) -> R) -> (x::(Z) -> R) -> sum(i::Z, sum(j::Z, h(j) * x({place}))^3)"
    d = cd.grad(text)
    h, x = np.random.default_rng(n).normal(size=(2, n))
    plan = with_convolutions_transformed(d.plan(backend="dask", value=True, h=(n,), x=(n,)), 1)
    verify(plan)
    _, slope = run(plan, {"h": h, "x": x})
    expected = evaluate(d.term, {})(h)(x)  # type: ignore[operator]  # a function of both
    np.testing.assert_allclose(slope, expected, rtol=1e-11, atol=1e-11)
    assert "np.fft.irfft(" in d.source(h=(100,), x=(100,)) and ".real" not in d.source(h=(100,), x=(100,))


def test_small_convolutions_and_short_kernels_stay_as_they_are() -> None:
    assert not kinds(cd.grad(program("i - j")).plan(h=(20,), w=(20,), x=(20,)))[ops.Fourier]
    short = cd.grad(RING + "(h::RV{3}) -> (x::(Z) -> R) -> sum(i::Z, sum(j::N{3}, h(j) * x(i - j))^2)")
    assert not kinds(short.plan(x=(500,)))[ops.Fourier]


def test_a_table_that_something_else_needs_is_kept() -> None:
    d = cd.grad(
        RING + "(h::(Z) -> R) -> (x::(Z) -> R) -> sum(i::Z, sum(j::Z, h(j) * x(i - j))^2 + sum(j::Z, exp(x(i - j))))"
    )
    plan = d.plan(h=(80,), x=(80,))
    assert kinds(plan)[ops.Fourier]
    assert with_convolutions_transformed(plan) == plan


@pytest.mark.slow
def test_the_rows_of_a_matrix_are_convolved_at_once() -> None:
    d = cd.grad(RING + "(H::(N, Z) -> R) -> (x::(Z) -> R) -> sum((a, i::Z), sum(j::Z, H(a, j) * x(i - j))^3)")
    rng = np.random.default_rng(1)
    H, x = rng.normal(size=(3, 70)), rng.normal(size=70)
    i = np.arange(70)
    table = x[(i[:, None] - i) % 70]
    r = H @ table.T
    wanted = np.array([(3 * r**2 * H[:, (i - d) % 70]).sum() for d in range(70)])
    assert np.allclose(d.compile()(H=H, x=x), wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())
    assert kinds(d.plan(H=(3, 70), x=(70,)))[ops.Fourier]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["i - a, j - b", "i + a, b - j", "a - i, j + b", "-i - a, b - j"])
def test_images_are_convolved_round_two_rings(place: str) -> None:
    """Σ e^{−y} (Σ h x)³, whose slope by x sums over the places at which x is read."""
    d = cd.grad(
        f"{RING}@domain Y begin periodic = true end\n(h::(Z, Y) -> R, y::(Z, Y) -> R) -> (x::(Z, Y) -> R) ->"
        f" sum((i::Z, j::Y), exp(-y(i, j)) * sum((a::Z, b::Y), h(a, b) * x({place}))^3)"
    )
    n, m = 8, 9
    h, y, x = np.random.default_rng(2).normal(size=(3, n, m))
    indices = dict(zip("ijab", np.ogrid[:n, :m, :n, :m], strict=True))
    u, v = (at % size for at, size in zip(eval(f"({place})", indices), (n, m), strict=True))
    r = (h * x[u, v]).sum((2, 3))
    wanted = np.zeros((n, m))
    np.add.at(wanted, np.broadcast_arrays(u, v), 3 * (np.exp(-y) * r**2)[:, :, None, None] * h)
    assert np.allclose(d.compile()(h=h, y=y, x=x), wanted, rtol=1e-11, atol=1e-11 * np.abs(wanted).max())
    plan = d.plan(h=(n, m), y=(n, m), x=(n, m))
    # y may be read at −i
    assert kinds(plan)[ops.Fourier] and all(len(s.operands) == 2 for s in plan.steps if isinstance(s.op, ops.Gather))
    assert max(step.rank for step in plan.steps) == 2
    verify(plan)
