"""The boundary of the library: errors that it raises on purpose arrive without its own frames.

A wrong program or array is the caller's to mend, and the frames that found it say nothing to them. What is left is the
message, under the caller's frames. `tracebacks("full")`, or COMBDIFF_TRACEBACKS=full in the environment, keeps all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Literal, ParamSpec, TypeVar

from combdiff.errors import CombDiffError, without_frames

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_kept = os.environ.get("COMBDIFF_TRACEBACKS") == "full"


def tracebacks(kind: Literal["short", "full"]) -> None:
    """Whether errors of combdiff show the frames of the library itself ("full"), or none ("short", as at first).

    >>> tracebacks("full")
    >>> tracebacks("short")
    """
    global _kept
    if kind not in ("short", "full"):
        raise CombDiffError(f"tracebacks are {kind!r}", remedy='give "short" or "full"')
    _kept = kind == "full"


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """A function that users call: where it raises an error of combdiff, the frames below are cut off."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True  # for pytest, which leaves this frame out
        try:
            return function(*args, **kwargs)
        except CombDiffError as error:
            raise cut(error) from None

    return called


def cut(error: CombDiffError) -> CombDiffError:
    """The error as it leaves the library, without the frames that it has passed."""
    if _kept:
        return error
    if sys.excepthook is sys.__excepthook__:
        # the interpreter is to leave out the last frame, too; who prints tracebacks in another way goes on to
        sys.excepthook = _printed
    return error.with_traceback(None)


def boundaries(*names: str) -> Callable[[C], C]:
    """A class whose methods of these names are such functions."""

    def with_boundaries(kind: C) -> C:
        for name in names:
            setattr(kind, name, boundary(getattr(kind, name)))
        return kind

    return with_boundaries


def _printed(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    if isinstance(error, CombDiffError) and not _kept:
        print(*without_frames(error), sep="", end="", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, at)
