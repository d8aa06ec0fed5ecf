"""Room for deep terms: Python's recursion limit is raised while a stage walks a term, and put back afterwards."""

from __future__ import annotations

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
