"""Notebooks are executed in a kernel of their own, warnings as errors, and asked afterwards what they have found."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
SECONDS = 300
"""For one cell; far more than any needs."""

ANSWER = """
import json as _json
warnings.simplefilter("default")  # what the kernel itself does at its end is not the notebook's
def _plain(x):
    if isinstance(x, complex):
        return {"re": x.real, "im": x.imag}
    if hasattr(x, "tolist"):
        return _plain(x.tolist())
    return [_plain(y) for y in x] if isinstance(x, list | tuple) else x
"""


class Executed:
    """A notebook that was run from top to bottom, in a kernel that still lives.

    `stored` is the notebook as it is in the repository, `run` the same with the outputs of this run.
    """

    def __init__(self, path: Path, client: Any, stored: Any) -> None:
        self.path, self.stored = path, stored
        self.run, self._client = client.nb, client
        self._do("import warnings; warnings.simplefilter('error')")
        for number, cell in enumerate(self.run.cells):
            client.execute_cell(cell, number)
        self._do(ANSWER)

    def value(self, expression: str) -> Any:
        """The value of an expression over the names of the notebook; an array of numbers as nested lists."""
        outputs = self._do(f"print(_json.dumps(_plain({expression})))").outputs
        text = "".join(output.text for output in outputs)  # a kernel may send a line in pieces
        return json.loads(text, object_hook=lambda z: complex(z["re"], z["im"]))

    def printed(self) -> str:
        """All that the cells print and show, as plain text."""
        outputs = (output for cell in self.run.cells for output in cell.get("outputs", ()))
        return "".join(
            output.text if "text" in output else output.get("data", {}).get("text/plain", "") + "\n"
            for output in outputs
        )

    def _do(self, code: str) -> Any:
        import nbformat

        cell = nbformat.v4.new_code_cell(code)
        self.run.cells.append(cell)
        self._client.execute_cell(cell, len(self.run.cells) - 1, store_history=False)
        return self.run.cells.pop()


@pytest.fixture(scope="module")
def executed() -> Iterator[Callable[[str], Executed]]:
    """Runs a notebook by its name. What it needs beyond the tests' own libraries may be missing: then it is skipped."""
    for library in ("ipykernel", "matplotlib", "nbclient"):
        pytest.importorskip(library)
    import nbformat
    from nbclient import NotebookClient

    with ExitStack() as kernels:

        def run(name: str) -> Executed:
            path = ROOT / "notebooks" / f"{name}.ipynb"
            notebook, stored = nbformat.read(path, as_version=4), nbformat.read(path, as_version=4)
            client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(path.parent)}})
            # threads on small matrices would only wait for each other, and for other tests
            environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
            kernels.enter_context(client.setup_kernel(env=environment))
            return Executed(path, client, stored)

        yield run
