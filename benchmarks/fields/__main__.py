"""Objectives of many fields beside an expert's code: `python -m benchmarks.fields [WORD …]` prints a row each.

Value and gradient in NumPy and SciPy on one thread: the compiled function of each spelling, and code by hand
(`by_hand.py`).
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from collections.abc import Iterator

import numpy as np

import combdiff as cd
from benchmarks.by_hand import HEAD, line
from benchmarks.fields import dense, groups, steps  # noqa: F401  # which note their cases
from benchmarks.fields.cases import CASES


def rows(name: str) -> Iterator[str]:
    """A line of the table for each spelling."""
    texts, drawn, by_hand = CASES[name]
    given = drawn(np.random.default_rng(0))
    for n, text in enumerate(texts):
        spelling = f", spelling {n + 1}" * (len(texts) > 1)
        yield line(name + spelling, cd.grad(text).compile(value=True), by_hand, given)


if __name__ == "__main__":
    print(HEAD)
    for name in CASES:
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            for row in rows(name):
                print(row, flush=True)
