"""Objectives of many fields beside an expert's code: `python -m benchmarks.fields [WORD …]` prints a row each.

Value and gradient in NumPy and SciPy on one thread: the compiled function of each spelling, and code by hand. Both are
called in turn, in changing order; the ratio is the median of those of neighbours.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import statistics
import sys
import time
from collections.abc import Iterator

import numpy as np

import combdiff as cd
from benchmarks.fields import dense, steps

SECONDS = 2.0
CASES = dense.CASES | steps.CASES


def rows(name: str) -> Iterator[str]:
    """A line of the table for each spelling, after it has been compared with the code by hand."""
    texts, drawn, by_hand = CASES[name]
    given = drawn(np.random.default_rng(0))
    for n, text in enumerate(texts):
        ours = cd.grad(text).compile(value=True)
        for mine, theirs in zip(ours(*given), by_hand(*given), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())
        times: tuple[list[float], list[float]] = ([], [])
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS or len(times[0]) < 5:
            both = [(ours, times[0]), (by_hand, times[1])]
            for call, found in both if len(times[0]) % 2 else both[::-1]:
                before = time.perf_counter()
                call(*given)
                found.append(time.perf_counter() - before)
        ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
        least = [1e3 * min(found) for found in times]
        spelling = f", spelling {n + 1}" * (len(texts) > 1)
        yield f"| {name}{spelling} | {least[0]:.2f} | {least[1]:.2f} | {ratio:.2f} | {least[0] / least[1]:.2f} |"


if __name__ == "__main__":
    print("| problem | ours, ms | by hand, ms | ratio | of the least |\n| --- | --- | --- | --- | --- |")
    for name in CASES:
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            for line in rows(name):
                print(line, flush=True)
