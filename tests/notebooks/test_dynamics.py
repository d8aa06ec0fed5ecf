"""What notebooks/dynamics.ipynb claims: its loops are recursions, and its fits find what they seek."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# the client of the kernel warns of its own changes to come; in the kernel, the warnings of the notebook are errors
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


@pytest.fixture(scope="module")
def dynamics(executed: Callable[[str], Any]) -> Any:
    pytest.importorskip("scipy")
    return executed("dynamics")


@pytest.mark.parametrize(("name", "recursion"), [("fit", "q_{t+1} = q_{t} + h"), ("train", r"h_{t+1,i} = \tanh")])
def test_a_loop_is_shown_as_a_recursion_with_its_adjoint(dynamics: Any, name: str, recursion: str) -> None:
    text = dynamics.value(f"{name}.latex(style='paper')")
    assert recursion in text and r"\bar" in text and "scan" not in text and r"\begin{cases}" not in text


@pytest.mark.parametrize("name", ["fit", "control", "train"])
def test_gradients_agree_with_differences(dynamics: Any, name: str) -> None:
    assert dynamics.value(f"bool({name}.check())")


def test_the_simulation_is_the_leapfrog_method(dynamics: Any) -> None:
    truth, h = dynamics.value("list(truth.values())"), 0.04
    (q, p), k = truth[:2], truth[2]
    found = np.array([dynamics.value("angles"), dynamics.value("speeds")])
    for t in range(found.shape[1]):
        np.testing.assert_allclose(found[:, t], [q, p], rtol=1e-10, atol=1e-10)
        p = p - h / 2 * k * np.sin(q)
        q = q + h * p
        p = p - h / 2 * k * np.sin(q)


def test_the_fit_finds_the_truth_within_three_errors(dynamics: Any) -> None:
    for name in "avk":
        off = abs(dynamics.value(f"fitted[{name!r}] - truth[{name!r}]"))
        assert off < 3 * dynamics.value(f"float(accuracy[{name!r}])")
    assert dynamics.value("np.linalg.norm(problem.jac(found.x))") < 1e-4
    assert 0.13 < dynamics.value("found.fun ** 0.5") < 0.17


def test_the_pulse_makes_the_gate(dynamics: Any) -> None:
    expm = pytest.importorskip("scipy.linalg").expm
    H, X, Y, V, W, window = (np.array(dynamics.value(f"data[{name!r}]")) for name in "HXYVWg")
    h = dynamics.value("data['h']")
    Z = V
    for at, u, v in zip(window, dynamics.value("u_found"), dynamics.value("v_found"), strict=True):
        Z = expm(-1j * h * (H + at * (u * X + v * Y))) @ Z
    assert 1 - abs(np.trace(W.conj().T @ Z)) ** 2 / 4 < 1e-8
    assert dynamics.value("history[0]") > 1e-2


def test_the_levels_are_occupied_by_one_particle(dynamics: Any) -> None:
    occupied = np.array(dynamics.value("occupied"))
    np.testing.assert_allclose(occupied.sum(axis=1), 1, rtol=1e-10)
    assert occupied[0, 0] == 1 and occupied[-1, 1] > 1 - 1e-8


def test_the_network_has_learned_to_run_alone(dynamics: Any) -> None:
    assert dynamics.value("float(learned.fun)") < 1e-5 < 1e-1 < dynamics.value("float(errors[0])")
    off = np.array(dynamics.value("off"))
    assert off[0] < 1e-2 and off[99] < 5e-2


def test_every_section_begins_with_its_picture(dynamics: Any) -> None:
    for notebook in (dynamics.stored, dynamics.run):
        begins = [n for n, cell in enumerate(notebook.cells) if cell.source.startswith("## ")]
        assert len(begins) == 3
        for n in begins:
            (output,) = notebook.cells[n + 1].outputs
            assert "image/png" in output.data


def test_the_stored_formulas_are_those_of_this_run(dynamics: Any) -> None:
    def formulas(notebook: Any) -> list[str]:
        outputs = (o for cell in notebook.cells for o in cell.get("outputs", ()))
        return ["".join(o["data"]["text/latex"]) for o in outputs if "text/latex" in o.get("data", {})]

    assert len(formulas(dynamics.run)) == 4
    assert formulas(dynamics.stored) == formulas(dynamics.run)
