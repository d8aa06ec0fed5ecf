"""The notebooks are stored as they ran: with outputs, and without an error among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .kernel import NOTEBOOKS


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_as_it_ran(path: Path) -> None:
    cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1))
    outputs = [output for c in cells for output in c["outputs"]]
    assert outputs
    assert [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"] == []
