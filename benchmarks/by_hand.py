"""Compiled functions beside code by hand: both are called in turn, in changing order, and must agree.

The ratio is the median of those of neighbouring calls, so that what else the machine does counts for both alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
Drawn: TypeAlias = Callable[[np.random.Generator], list[Array]]
ByHand: TypeAlias = Callable[..., tuple[Array, ...]]

SECONDS = 2.0
HEAD = "| problem | ours, ms | by hand, ms | ratio | of the least |\n| --- | --- | --- | --- | --- |"


def line(name: str, ours: ByHand, by_hand: ByHand, given: Sequence[Array]) -> str:
    """A line of the table, after both have been compared."""
    for mine, theirs in zip(ours(*given), by_hand(*given), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())
    times: tuple[list[float], list[float]] = [], []
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS or len(times[0]) < 5:
        both = [(ours, times[0]), (by_hand, times[1])]
        for call, found in both if len(times[0]) % 2 else both[::-1]:
            before = time.perf_counter()
            call(*given)
            found.append(time.perf_counter() - before)
    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
    least = [1e3 * min(found) for found in times]
    return f"| {name} | {least[0]:.2f} | {least[1]:.2f} | {ratio:.2f} | {least[0] / least[1]:.2f} |"
