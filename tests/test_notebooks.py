"""The notebooks' code runs from top to bottom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOTEBOOKS = sorted((HERE.parent / "notebooks").glob("*.ipynb"))
PLAIN = [path for path in NOTEBOOKS if not (HERE / "notebooks" / f"test_{path.stem}.py").exists()]
"""Without a file of tests of their own."""


def code_of(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, object] = {}
    for number, text in enumerate(code_of(path), 1):
        exec(compile(text, f"{path.name}, cell {number}", "exec"), scope)
    assert "FAILED" not in capsys.readouterr().out


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_its_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert any(cell.get("outputs") for cell in cells)
    errors = [o for cell in cells for o in cell.get("outputs", []) if o["output_type"] == "error"]
    assert errors == []
