"""Runs a notebook in a kernel of its own, where warnings are errors, and reads values from it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(name: str, then: str = "", **expressions: str) -> dict[str, Any]:
    """The values of `expressions`, in Python that gives plain numbers, after all cells of the notebook have run.

    The code `then` runs after them, with their names. A cell that fails is an error, and so is a warning in it. The test is skipped where notebooks cannot be run.
    """
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    asked = ", ".join(f"{key!r}: {value}" for key, value in expressions.items())
    first = nbformat.v4.new_code_cell("import warnings\nwarnings.simplefilter('error')")
    last = nbformat.v4.new_code_cell(f"{then}\nwarnings.resetwarnings()\nimport json\nprint(json.dumps({{{asked}}}))")
    notebook.cells = [first, *notebook.cells, last]
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3")
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    values: dict[str, Any] = json.loads(notebook.cells[-1].outputs[-1]["text"])
    return values
