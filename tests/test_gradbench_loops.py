"""GradBench's programs with loops, at one small size each, against finite differences and known answers. No times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from tests.promises import differences

PROGRAMS = Path(__file__).parent.parent / "benchmarks" / "gradbench"


def text(name: str) -> str:
    return (PROGRAMS / f"{name}.cd").read_text(encoding="utf-8")


def runge_kutta(x: Any, steps: int) -> Any:
    def flow(y: Any) -> Any:
        return np.concatenate([x[:1], x[1:] * y[:-1]])

    y, h = 0 * x, 2 / steps
    for _ in range(steps):
        a = flow(y)
        b = flow(y + h * a / 2)
        c = flow(y + h * b / 2)
        y = y + h * (a + 2 * b + 2 * c + flow(y + h * c)) / 6
    return y


@pytest.mark.slow
def test_the_ode_is_solved_and_differentiated() -> None:
    x, k = np.array([0.7, 1.2, 0.4, 0.9]), np.array([0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(cd.simplified(text("ode")).compile()(x, s=3), runge_kutta(x, 3), rtol=1e-13)
    slope = cd.pullback(text("ode")).compile()(x, k, s=3)
    np.testing.assert_allclose(slope, differences(lambda x: runge_kutta(x, 3)[-1], [x])[0], rtol=1e-7, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("way", ["rr", "rf", "fr", "ff"])
def test_nested_descents_find_the_known_answers(way: str) -> None:
    x, y = cd.simplified(text(f"saddle/{way}")).compile()(np.ones(2))
    np.testing.assert_allclose([*x, *y], 8.246324826140356e-06, rtol=1e-9)
    np.testing.assert_allclose(cd.simplified(text(f"particle/{way}")).compile()(0.0), 0.2071918746486116, rtol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(("name", "weights"), [("lstm", 0), ("ht", 2), ("ht", 0)])
def test_derivatives_of_the_models_agree_with_differences(name: str, weights: int) -> None:
    """Points of a hand are at vertices, which need no weights, or in triangles, whose corners have two."""
    rng = np.random.default_rng(3)
    if name == "lstm":
        shapes = {"h0": (2, 3), "c0": (2, 3), "x": (4, 3), "w": (2, 4, 3), "v": (2, 4, 3), "e": (3, 3)}
        given, varied = {n: rng.random(s) for n, s in shapes.items()}, ("w", "v", "e")
    else:
        shapes = {"base": (6, 4, 4), "rest": (6, 4, 4), "skin": (7, 4), "weight": (7, 6), "point": (3, 3)}
        given = {n: rng.random(s) for n, s in shapes.items()} | {"parent": np.array([0, 0, 1, 2, 3, 0])}
        given |= {"corner": rng.integers(0, 7, (3, weights + 1)), "mirror": np.array(1.0)}
        given |= {"u": rng.random((3, weights)), "shift": np.zeros(weights), "θ": rng.random(10)}
        varied = "shift", "θ"
    value = cd.simplified(text(name)).compile()
    slopes = (cd.grad if name == "lstm" else cd.jacobian)(text(name)).compile()(**given)
    for n, slope in zip(varied, slopes, strict=True):
        moved = rng.normal(size=given[n].shape)
        up, down = (value(**given | {n: given[n] + h * moved}) for h in (1e-6, -1e-6))
        along = np.tensordot(slope, moved, moved.ndim)
        np.testing.assert_allclose(along, (up - down) / 2e-6, rtol=1e-6, atol=1e-8)
