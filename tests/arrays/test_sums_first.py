"""Sums over what a δ says nothing of are made before it is solved: transforms of many windows, as in ptychography."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.plan import Plan
from combdiff.meaning.evaluate import evaluate

grad = cache(cd.grad)

RING = "@domain X begin base = I; periodic = true end\n"
PHASE = "exp(-2 * pi * im * k * x / %s)"
ROUND = f"""{RING}(P::(X) -> C, s::(N{{f}}) -> X, m::(N{{f}}, X) -> R) -> (O::(X) -> C) ->
  sum((a, k::X), (abs(sum(x, P(x) * O(x + s(a)) * {PHASE % "size(X)"})) - m(a, k))^2)"""
PLAIN = f"""(P::CV{{n}}, s::(N{{f}}) -> N{{l}}, m::RM{{f, n}}) -> (O::CV{{l}}) ->
  sum((a, k), (abs(sum(x::N{{n}}, P(x) * where(x + s(a) < l, O(x + s(a))) * {PHASE % "n"})) - m(a, k))^2)"""
FRAMES = f"""(w::RV{{n}}, s::(N{{f}}) -> N{{l}}, m::RM{{f, n}}) -> (y::RV{{l}}) ->
  sum((a, k), (abs2(sum(x::N{{n}}, w(x) * where(x + s(a) < l, y(x + s(a))) * {PHASE % "n"})) - m(a, k))^2)"""
IMAGES = """(P::CM{n, n}, s::(N{f}) -> N{l}, t::(N{f}) -> N{l}, m::(N{f}, N{n}, N{n}) -> R) -> (O::CM{l, l}) ->
  sum((a, j, k), (abs(sum((x::N{n}, y::N{n}), P(x, y) * exp(-2 * pi * im * (j * x + k * y) / n) *
    where(x + s(a) < l, where(y + t(a) < l, O(x + s(a), y + t(a)))))) - m(a, j, k))^2)"""
TABLES = f"""{RING}(A::(N{{o}}, X) -> R, s::(N{{f}}) -> X, B::RM{{f, o}}) -> (v::(X) -> R) ->
  sum((a, i), (sum(x, A(i, x) * v(x + s(a))) - B(a, i))^3)"""
PROGRAMS = {"round": ROUND, "plain": PLAIN, "frames": FRAMES, "images": IMAGES, "tables": TABLES}
AXES = {
    "round": {"P": "n", "s": "f", "m": "fn", "O": "n"},
    "plain": {"P": "n", "s": "f", "m": "fn", "O": "l"},
    "frames": {"w": "n", "s": "f", "m": "fn", "y": "l"},
    "images": {"P": "nn", "s": "f", "t": "f", "m": "fnn", "O": "ll"},
    "tables": {"A": "on", "s": "f", "B": "fo", "v": "n"},
}


def given(name: str, **sizes: int) -> dict[str, np.ndarray]:
    """Arrays for the arguments of a program."""
    rng = np.random.default_rng(sum(sizes.values()))
    found = {}
    for argument, axes in AXES[name].items():
        shape = tuple(sizes[c] for c in axes)
        array = rng.normal(size=shape)
        if argument in "st":
            array = rng.integers(0, sizes["n" if RING in PROGRAMS[name] else "l"], shape)
        found[argument] = array + 1j * rng.normal(size=shape) if argument in "PO" else array
    return found


def largest(plan: Plan) -> int:
    """The entries of the largest array of a plan."""
    return max(prod(d.extent(plan.sizes) for d in step.domains) for step in plan.steps)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_array_has_an_entry_for_each_place_and_each_index_of_the_sum(name: str) -> None:
    f, n, o, most = 6, 8, 5, 50
    arrays = given(name, f=f, n=n, o=o, l=most)
    plan = grad(PROGRAMS[name]).plan(**{key: array.shape for key, array in arrays.items()})
    # of images each index is two
    assert largest(plan) <= (max(f * n * n, most * most) if name == "images" else max(f * n, n * o, most))
    assert name == "tables" or any(isinstance(step.op, ops.Fourier) for step in plan.steps)


@pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("most", [1, 7])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_made_first_are_the_sums(name: str, n: int, most: int) -> None:
    d = grad(PROGRAMS[name])
    arrays = given(name, f=3, n=n, o=2, l=most)
    *rest, last = arrays.values()
    expected = np.asarray(evaluate(d.term, {})(*rest)(last))  # type: ignore[operator]  # a function of all of them
    found = np.asarray(d.compile()(**arrays))
    assert np.allclose(found, expected, rtol=1e-11, atol=1e-11 * (np.abs(expected).max() + 1e-300))
