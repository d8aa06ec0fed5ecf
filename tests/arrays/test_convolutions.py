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

RING = "@domain Z begin periodic = true end\n"
PLACES = ["i - j", "i + j", "j - i", "-i - j"]


def program(place: str, kind: str = "R") -> str:
    given = f"(h::(Z) -> {kind}, w::(Z) -> R) -> (x::(Z) -> {kind})"
    return f"{RING}{given} -> sum(i::Z, w(i) * abs2(sum(j::Z, h(j) * x({place})))^2)"


def kinds(plan: Plan) -> Counter[type]:
    return Counter(type(step.op) for step in plan.steps)


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
    assert kinds(plan)[ops.Fourier] and not kinds(plan)[ops.Gather]
    verify(plan)


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
