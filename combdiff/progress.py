"""A line that says what a long derivation is doing: in a notebook, and on a terminal; gone when it is done.

Nothing runs beside the derivation: the line is written by the stages themselves, whenever they look at their budget.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from combdiff.errors import CombDiffError

if TYPE_CHECKING:
    from combdiff.simplify.account import Progress

PATIENCE = 1.0
"""Seconds before a line is shown."""

INTERVAL = 0.25
"""Seconds between two versions of it."""


class ProgressLine:
    """The stage and its seconds, written by `write`, which replaces what it wrote before; "" takes it away.

    >>> written = []
    >>> with ProgressLine(written.append, patience=0.0) as line:
    ...     line("contract", 3.2)
    >>> written
    ['combdiff: contract, 3 s', '']
    """

    def __init__(self, write: Callable[[str], None], patience: float = PATIENCE) -> None:
        self._write = write
        self._due = perf_counter() + patience
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __call__(self, stage: str, seconds: float) -> None:
        now = perf_counter()
        if now >= self._due:
            self._due = now + INTERVAL
            self._shown = True
            self._write(f"combdiff: {stage}, {seconds:.0f} s")

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write("")


def on_terminal(stream: TextIO) -> Callable[[str], None]:
    """What writes a line of a terminal over and over."""

    def write(text: str) -> None:
        stream.write(f"\r\x1b[K{text}")
        stream.flush()

    return write


def following(progress: Progress | None) -> AbstractContextManager[Progress | None]:
    """Who follows a derivation: the one that was asked for, or a line if this is a notebook.

    >>> with following(None) as nobody:
    ...     print(nobody)
    None

    Raises CombDiffError for what cannot be called.
    """
    if progress is not None and not callable(progress):
        raise CombDiffError(
            f"progress is {progress!r}, which cannot be called",
            remedy="give a function that is told the stage and the seconds so far, or leave it out",
        )
    if progress is None and in_notebook():
        from combdiff.jupyter.display import line_of_notebook

        return ProgressLine(line_of_notebook())
    return nullcontext(progress)


def in_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter; asking it loads nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
