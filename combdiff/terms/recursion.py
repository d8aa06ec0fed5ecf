"""Raises Python's recursion limit while a stage walks a deep term, and restores it afterwards.

They are limits of the process, and any number of threads may walk terms at once: the first one raises a limit, the last
one puts it back.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Generic, TypeVar

_DEEPEST = 200_000
_OBJECTS = 50_000

T = TypeVar("T")


class _Limit(Generic[T]):
    """A limit of the process that is raised as long as anybody needs it.

    >>> value = [1]
    >>> limit = _Limit(lambda: value[0], lambda n: value.__setitem__(0, n), lambda n: max(n, 5))
    >>> with limit.raised(), limit.raised():
    ...     value
    [5]
    >>> value
    [1]
    """

    def __init__(self, read: Callable[[], T], write: Callable[[T], None], higher: Callable[[T], T]) -> None:
        self._read = read
        self._write = write
        self._higher = higher
        # a signal may be handled while the lock is held, by a function that takes a derivative
        self._lock = RLock()
        self._users: set[object] = set()
        self._before: T | None = None
        self._own: T | None = None

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Inside, the limit is raised, in all threads."""
        user = object()
        try:
            with self._lock:
                if not self._users:
                    self._before = self._read()
                    self._own = self._higher(self._before)
                    self._write(self._own)
                self._users.add(user)
            yield
        finally:
            with self._lock:
                self._users.discard(user)
                # a limit that somebody else has set meanwhile is theirs
                if not self._users and self._before is not None and self._read() == self._own:
                    self._write(self._before)


_recursion = _Limit(sys.getrecursionlimit, sys.setrecursionlimit, lambda limit: max(limit, _DEEPEST))
_collections = _Limit(
    gc.get_threshold,
    lambda thresholds: gc.set_threshold(*thresholds),
    # a first threshold of 0 means that cycles are not looked for at all
    lambda thresholds: (max(thresholds[0], _OBJECTS) if thresholds[0] else 0, *thresholds[1:]),
)


def deep_recursion() -> AbstractContextManager[None]:
    """Recursive walks inside may be 200,000 calls deep.

    >>> def depth(n: int) -> int:
    ...     return 0 if n == 0 else 1 + depth(n - 1)
    >>> with deep_recursion():
    ...     depth(20_000)
    20000
    """
    return _recursion.raised()


def rare_collections() -> AbstractContextManager[None]:
    """Inside, cycles are looked for once in 50,000 new objects: terms hold none, and the search costs a fifth.

    >>> with rare_collections():
    ...     gc.get_threshold()[0]
    50000
    """
    return _collections.raised()
