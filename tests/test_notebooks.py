"""Notebooks are stored with their outputs, and each has a file of tests in `tests/notebooks/`, which runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOTEBOOKS = sorted((HERE.parent / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_tests_of_its_own(path: Path) -> None:
    assert (HERE / "notebooks" / f"test_{path.stem}.py").exists()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_its_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert any(cell.get("outputs") for cell in cells)
    errors = [o for cell in cells for o in cell.get("outputs", []) if o["output_type"] == "error"]
    assert errors == []
