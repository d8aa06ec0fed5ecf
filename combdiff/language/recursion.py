"""Room for deep and large terms: Python's limits are raised while a stage walks a term, and put back afterwards."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_DEEPEST = 200_000


@contextmanager
def deep_recursion(limit: int = _DEEPEST) -> Iterator[None]:
    """Recursive walks inside may be `limit` calls deep.

    >>> def depth(n: int) -> int:
    ...     return 0 if n == 0 else 1 + depth(n - 1)
    >>> with deep_recursion():
    ...     depth(20_000)
    20000
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, limit))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextmanager
def rare_collections(objects: int = 50_000) -> Iterator[None]:
    """Inside, cycles are looked for once in `objects` new objects: terms hold none, and the search costs a fifth.

    >>> with rare_collections():
    ...     gc.get_threshold()[0]
    50000
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], objects) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
