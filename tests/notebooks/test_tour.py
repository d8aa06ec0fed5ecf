"""The tour runs, and what it says on the way is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")
pytest.importorskip("ipywidgets")
# the client of the kernel warns of its own changes to come; in the kernel, the warnings of the notebook are errors
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


@pytest.fixture(scope="module")
def tour(executed: Callable[[str], Any]) -> Any:
    return executed("tour")


def test_gradients_agree_with_differences(tour: Any) -> None:
    assert abs(tour.value("complex(ours)") - tour.value("complex(differences)")) < 1e-8


def test_the_step_sizes_of_conjugate_gradients_are_stationary(tour: Any) -> None:
    assert max(map(abs, tour.value("[float(d) for d in derivatives]"))) < 1e-9
    assert max(map(abs, tour.value("[float(d) for d in printed]"))) > 1e-3


def test_the_minimum_of_the_valley_is_found(tour: Any) -> None:
    assert tour.value("[float(v) for v in problem.unpack(found.x)]") == pytest.approx([1, 1], abs=1e-6)


def test_every_check_that_is_shown_is_good(tour: Any) -> None:
    assert "FAILED" not in tour.printed() and "gradient = 2 A x: True" in tour.printed()
    assert "does not have its declared symmetry" in tour.printed()
    assert "unknown name y" in tour.printed()


def test_the_stored_formulas_are_those_of_this_run(tour: Any) -> None:
    def formulas(notebook: Any) -> list[str]:
        outputs = (o for cell in notebook.cells for o in cell.get("outputs", ()))
        return ["".join(o["data"]["text/latex"]) for o in outputs if "text/latex" in o.get("data", {})]

    assert len(formulas(tour.run)) > 10
    assert formulas(tour.stored) == formulas(tour.run)
