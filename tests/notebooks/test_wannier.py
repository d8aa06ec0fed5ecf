"""What notebooks/wannier.ipynb claims, held against what it computes when it is run, and against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import combdiff as cd

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
# the client of the kernel warns of its own changes to come; in the kernel, the warnings of the notebook are errors
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


@pytest.fixture(scope="module")
def wannier(executed: Callable[[str], Any]) -> Any:
    return executed("wannier")


@pytest.mark.parametrize(("name", "example"), [("d", "wannier"), ("d3", "wannier_lattice")])
def test_the_formula_is_that_of_the_example(wannier: Any, name: str, example: str) -> None:
    """Eq. 58: one sum over q and b, with rho kept."""
    d = cd.grad((EXAMPLES / f"{example}.cd").read_text(encoding="utf-8"))
    assert wannier.value(f"str({name})") == str(d)
    assert r"4 \sum_{q,b}" in d.latex() and r"\rho_{n,b}^{*}" in d.latex()


def test_the_formula_is_stored_as_it_is_derived(wannier: Any) -> None:
    def formulas(notebook: Any) -> list[str]:
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
        return [output.data["text/latex"] for output in outputs if "text/latex" in output.get("data", {})]

    assert formulas(wannier.stored) == formulas(wannier.run) != []


def test_the_checks_and_the_code_are_printed(wannier: Any) -> None:
    assert "FAILED" not in wannier.printed() and wannier.printed().count("ok      finite differences") >= 2
    assert "def value_and_gradient(M, w, U, X):" in wannier.printed()


@pytest.mark.parametrize("suffix", ["", "2", "3"])
def test_every_step_lowers_the_spread_and_none_is_below_the_bound(wannier: Any, suffix: str) -> None:
    history, bound = np.array(wannier.value(f"history{suffix}")), wannier.value(f"bound{suffix}")
    assert len(history) > 20 and (np.diff(history) <= 0).all()
    assert history[-1] >= bound and history[0] > 5 * bound
    assert bound < wannier.value(f"omega{suffix}") <= history[-1] + 1e-12


@pytest.mark.parametrize("suffix", ["", "2", "3"])
def test_the_last_steps_are_newtons(wannier: Any, suffix: str) -> None:
    norms = wannier.value(f"norms{suffix}")
    assert norms[-1] < 1e-8 and len(norms) <= 4


@pytest.mark.parametrize("suffix", ["", "2", "3"])
def test_the_gauge_stays_unitary(wannier: Any, suffix: str) -> None:
    U = np.array(wannier.value(f"U{suffix}"))
    V = np.moveaxis(U, (0, 1), (-2, -1))
    assert np.allclose(V.conj().swapaxes(-1, -2) @ V, np.eye(len(U)), atol=1e-10)


def test_the_spread_is_its_definition(wannier: Any) -> None:
    """Ω and its bound from the overlaps, entry by entry."""
    S, w, U = (np.array(wannier.value(name)) for name in ("S", "w", "U"))
    N, _, points = U.shape
    spread = bound = N * w.sum()
    for b, n in product((-1, 0, 1), range(N)):
        k = range(points)
        rho = sum(U[:, n, j].conj() @ S[:, :, j, (j + b) % points] @ U[:, n, (j + b) % points] for j in k)
        spread -= w[b + 1] * abs(rho / points) ** 2
        bound -= w[b + 1] * sum(np.linalg.norm(S[n, :, j, (j + b) % points]) ** 2 for j in k) / points
    assert np.isclose(spread, wannier.value("omega"), rtol=1e-10)
    assert np.isclose(bound, wannier.value("bound"), rtol=1e-10)


def test_in_one_dimension_the_least_spread_is_that_of_the_single_band(wannier: Any) -> None:
    assert np.isclose(wannier.value("omega"), wannier.value("3 * one_band(3 * points)"), rtol=1e-9)


def test_in_one_dimension_the_centres_are_those_of_parallel_transport(wannier: Any) -> None:
    found = wannier.value("np.sort(centres(M, U, X)[:, 0] % 1)")
    assert np.allclose(found, wannier.value("transported"), atol=1e-6)
    assert np.allclose(np.diff(found), 1 / 3, atol=1e-6)


def test_in_one_dimension_the_bound_is_reached_on_finer_meshes(wannier: Any) -> None:
    """As the square of the step, by parallel transport as by descent: translations of the chain make them equal."""
    least, moved, bounds = (np.array(wannier.value(name)) for name in ("least", "moved", "bounds"))
    above = least - bounds
    assert np.allclose(above[:-1] / above[1:], 4, rtol=0.05)
    assert np.allclose(moved, least, rtol=1e-6)


def test_the_spread_tends_to_the_variance_of_the_functions(wannier: Any) -> None:
    assert np.isclose(wannier.value("measured"), wannier.value("limit"), rtol=1e-5)


def test_in_two_dimensions_the_functions_are_real_and_sit_on_the_low_sites(wannier: Any) -> None:
    centres = np.array(wannier.value("centres2.round(6) % 1"))
    assert sorted(centres.tolist()) == [[0, 0.5], [0.5, 0]]
    functions = np.array(wannier.value("functions2")).reshape(-1, 2)
    for function in functions.T:
        peak = function[abs(function).argmax()]
        assert np.isclose(np.linalg.norm(function), 1)
        assert abs((function / peak).imag).max() < 1e-6


def test_in_two_dimensions_the_bound_is_not_reached(wannier: Any) -> None:
    assert wannier.value("omega2") > 1.1 * wannier.value("bound2")
    assert np.isclose(wannier.value("min(history[-1] for _, history in found2)"), wannier.value("omega2"), rtol=1e-5)


def test_the_overlaps_of_the_file_are_those_that_were_written(wannier: Any) -> None:
    M, X, written, steps = (np.array(wannier.value(name)) for name in ("read.M", "read.X", "M_written", "steps"))
    order = [steps.tolist().index(b) for b in X.tolist()]
    assert M.shape == (4, 4, 4, 4, 4, 8) and np.allclose(M, written[..., order], atol=1e-11)


def test_silicon_has_a_function_on_every_bond(wannier: Any) -> None:
    centres = np.array(wannier.value("(8 * centres3).round(5) % 8"))
    assert sorted(centres.tolist()) == [[1, 1, 1], [1, 1, 5], [1, 5, 1], [5, 1, 1]]
    weights = np.array(wannier.value("weights3"))
    assert np.allclose(weights.sum((0, 1)), 1)
    assert np.allclose(weights[0].sum(0), 0.5, atol=1e-6)  # both atoms of a bond are alike


def test_the_gradient_on_the_group_is_the_slope(wannier: Any) -> None:
    slope, ahead, behind, t = (wannier.value(name) for name in ("slope", "ahead", "behind", "t"))
    assert np.isclose((ahead - behind) / (2 * t), slope, rtol=1e-6)
