"""The boundary of the library: errors that combdiff raises on purpose do not show its own frames.

If a program or an array is wrong, the frames of combdiff do not help the caller to correct it. The traceback contains
only the caller's frames and the message. `tracebacks("full")`, or COMBDIFF_TRACEBACKS=full in the environment, keeps
all frames.
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
    """Choose whether errors show the frames of combdiff itself ("full") or hide them ("short", the default).

    >>> tracebacks("full")
    >>> tracebacks("short")
    """
    global _kept
    if kind not in ("short", "full"):
        raise CombDiffError(f"tracebacks are {kind!r}", remedy='give "short" or "full"')
    _kept = kind == "full"


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """A function that users call: if it raises an error of combdiff, the error loses the frames below."""

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
    """Apply `boundary` to the methods of a class with these names."""

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
