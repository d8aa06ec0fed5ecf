"""GradBench by `benchmarks.gradbench`: answers over a pipe, and derivatives beside finite differences and JAX."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gradbench.evals import EVALS
from benchmarks.gradbench.tool import Function, prepared

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).tolist()


CLUSTERS = normal(7, 2)
INPUTS: dict[str, Any] = {
    "hello": 1.5,
    "lse": {"x": normal(5)},
    "llsq": {"x": normal(3), "n": 7},
    "kmeans": {"points": CLUSTERS, "centroids": CLUSTERS[-3:]},
    "gmm": {"d": 3, "k": 2, "n": 5, "x": normal(5, 3), "m": 1, "gamma": 1.5}
    | {"alpha": normal(2), "mu": normal(2, 3), "q": normal(2, 3), "l": normal(2, 3)},
    "det": {"A": normal(9), "ell": 3},
    "ba": {"n": 2, "m": 3, "p": 5, "cam": [0.1, -0.2, 0.3, *normal(3), 2.0, 0.1, 0.2, 0.01, 0.002]}
    | {"x": [0.5, -0.3, 5.0], "w": 0.7, "feat": [0.2, -0.1]},
}
GRADIENTS = {
    "hello": ("square", "double", None),
    "lse": ("primal", "gradient", "x"),
    "llsq": ("primal", "gradient", "x"),
    "gmm": ("objective", "jacobian", ("alpha", "mu", "q", "l")),
    "det": ("primal", "gradient", "A"),
}


def answered(function: Function, given: Any, library: str = "numpy") -> Any:
    return function.answer(prepared(function, library, given)())


def slopes(f: Callable[[Any], Any], given: Any, step: float = 1e-6) -> Any:
    """Central differences of a number by the entries of nested lists."""
    if isinstance(given, list):
        return [slopes(lambda x, n=n: f([*given[:n], x, *given[n + 1 :]]), entry) for n, entry in enumerate(given)]
    return (f(given + step) - f(given - step)) / (2 * step)


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_is_that_of_finite_differences(name: str) -> None:
    value, gradient, of = GRADIENTS[name]
    functions, given = EVALS[name], INPUTS[name]
    found = answered(functions[gradient], given)
    if of is None:
        assert np.isclose(found, slopes(lambda x: answered(functions[value], x), given))
        return
    for key in (of,) if isinstance(of, str) else of:
        expected = slopes(lambda x, key=key: answered(functions[value], given | {key: x}), given[key])
        assert np.allclose(found if isinstance(of, str) else found[key], expected, rtol=1e-6, atol=1e-6)


def test_the_direction_of_kmeans_is_the_slope_by_the_curvature() -> None:
    given = INPUTS["kmeans"]
    step = 1e-3

    def cost(x: Any) -> float:
        return float(answered(EVALS["kmeans"]["cost"], given | {"centroids": x}))

    C = np.array(given["centroids"])
    for at in np.ndindex(C.shape):
        ahead, behind = (
            cost((C + s * (np.indices(C.shape) == np.reshape(at, (2, 1, 1))).all(0)).tolist()) for s in (step, -step)
        )
        curvature = (ahead + behind - 2 * cost(C.tolist())) / step**2
        found = answered(EVALS["kmeans"]["dir"], given)
        assert np.isclose(found[at[0]][at[1]], (ahead - behind) / (2 * step) / curvature, atol=1e-5)


def test_the_jacobian_of_bundle_adjustment_is_that_of_finite_differences() -> None:
    functions, given = EVALS["ba"], INPUTS["ba"]
    matrix = prepared(functions["jacobian"], "numpy", given)()
    n, m, p = (given[key] for key in "nmp")
    dense = np.zeros((3 * p, 11 * n + 3 * m + p))
    for row in range(3 * p):
        own = slice(matrix.rows[row], matrix.rows[row + 1])
        dense[row, matrix.cols[own]] = matrix.vals[own]
    arrays = functions["objective"].arguments(given)
    run = prepared(functions["objective"], "numpy", given).func  # type: ignore[attr-defined]  # a partial

    def errors(flat: Any) -> Any:
        c, X, w = np.split(flat, [11 * n, 11 * n + 3 * m])
        first, second, weights = run(**arrays | {"c": c.reshape(n, 11), "X": X.reshape(m, 3), "w": w})
        return np.concatenate([np.stack([first, second], 1).ravel(), weights])

    flat = np.concatenate([np.ravel(arrays[name]) for name in ("c", "X", "w")])
    along = np.eye(len(flat)) * 1e-6
    expected = np.stack([(errors(flat + d) - errors(flat - d)) / 2e-6 for d in along], 1)
    assert np.allclose(dense, expected, rtol=1e-6, atol=1e-6)


def by_place(result: Any, place: str = "") -> dict[str, Any]:
    """The arrays of nested dictionaries."""
    if not isinstance(result, dict):
        return {place: result}
    return {k: a for key, value in result.items() for k, a in by_place(value, f"{place}/{key}").items()}


@pytest.mark.parametrize("name", INPUTS)
def test_code_for_jax_returns_the_same(name: str) -> None:
    pytest.importorskip("jax")
    for function in EVALS[name].values():
        ours, other = (by_place(answered(function, INPUTS[name], library)) for library in ("numpy", "jax"))
        assert ours.keys() == other.keys()
        for place, found in ours.items():
            assert np.allclose(found, other[place], rtol=1e-10, atol=1e-12)


def test_messages_are_answered_over_a_pipe_and_errors_are_answers(tmp_path: Path) -> None:
    asked = [
        {"kind": "start", "eval": "lse"},
        {"kind": "define", "module": "lse"},
        {"kind": "evaluate", "module": "lse", "function": "gradient"}
        | {"input": {"x": [0.0, 0.0], "min_runs": 3, "min_seconds": 0}},
        {"kind": "define", "module": "no such eval"},
        {"kind": "evaluate", "module": "lse", "function": "gradient", "input": {"x": "no vector"}},
        {"kind": "analysis", "of": 2, "valid": True},
    ]
    text = "".join(json.dumps({"id": n} | message) + "\n" for n, message in enumerate(asked))
    record = tmp_path / "seconds"
    command = [sys.executable, "-m", "benchmarks.gradbench", "--record", str(record)]
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=120)
    start, define, found, unknown, wrong, analysis = map(json.loads, done.stdout.splitlines())
    assert start["tool"] == "combdiff" and define["success"] and analysis == {"id": 5}
    assert found["success"] and found["output"] == [0.5, 0.5]
    assert [t["name"] for t in found["timings"]] == ["prepare", *["evaluate"] * 3]
    assert not unknown["success"] and not wrong["success"] and "Error" in wrong["error"]
    right, refused = map(json.loads, record.read_text().splitlines())
    assert right["derive"] > 0 and right["prepare"] > 0 and refused["prepare"] == 0
