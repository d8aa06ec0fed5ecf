"""Long tables of tests, of which every few rows are run with each change and all of them by `pytest -m long`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(rows: Iterable[Any], every: int = 3) -> list[Any]:
    """The rows for `parametrize`, all but every third marked `long`."""
    found = []
    for n, row in enumerate(rows):
        values, marks = (row.values, row.marks) if isinstance(row, type(pytest.param())) else ((row,), ())
        found.append(row if n % every == 0 else pytest.param(*values, marks=[*marks, pytest.mark.long]))
    return found
