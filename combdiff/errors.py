"""The errors of combdiff: one root class with a message, a place in the text, and a remedy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from combdiff.records import dataclass

if TYPE_CHECKING:
    import traceback

_HERE = os.path.dirname(__file__) + os.sep


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a program's text: line and column count from 1, `width` characters are underlined."""

    line: int
    column: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """The text that spans point into, with the name it is called by in messages."""

    text: str
    name: str = "<text>"

    def excerpt(self, span: Span) -> str:
        """The line of `span` with a caret under it.

        >>> print(Source("a + $").excerpt(Span(1, 5)))
          1 | a + $
            |     ^
        """
        lines = self.text.split("\n")
        line = lines[span.line - 1] if 0 < span.line <= len(lines) else ""
        shown, column = _window(line.replace("\t", " "), span.column)
        number = str(span.line).rjust(3)
        width = max(1, min(span.width, len(shown) - column + 1))
        return f"{number} | {shown}\n    | {' ' * (column - 1)}{'^' * width}"


@dataclass(frozen=True, slots=True)
class Mention:
    """What an error is about that arises long after the text was read: a parameter, or where a function is called.

    Of several calls it is one whose arguments hold one of the names in `beside`, if any are given. Without a name it is
    what the program returns.
    """

    name: str
    called: bool = False
    beside: frozenset[str] = frozenset()


_WIDEST = 100


def _window(line: str, column: int) -> tuple[str, int]:
    """Cut a very long line to the part around `column`, so that the caret stays in sight."""
    if len(line) <= _WIDEST:
        return line, column
    start = max(0, min(column - _WIDEST // 2, len(line) - _WIDEST))
    return line[start : start + _WIDEST], column - start


class CombDiffError(Exception):
    """Root of all errors that combdiff raises on purpose.

    >>> print(CombDiffError("there is no z", span=Span(1, 5), source=Source("x + z"), remedy="give z a value"))
    <text>:1:5: there is no z
      1 | x + z
        |     ^
    remedy: give z a value

    `str(error)` is the whole message: the reason, the place (line, column, the line with a caret), sometimes a second
    place ("declared here"), and a remedy. If an error has no place, `about` may name an object that has one.
    """

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        source: Source | None = None,
        also: tuple[str, Span] | None = None,
        about: Mention | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.source = source
        self.also = also
        self.about = about
        self.remedy = remedy

    def located(self, source: Source) -> CombDiffError:
        """This error, given the text that its spans point into if it has none.

        >>> print(CombDiffError("there is no z", span=Span(1, 5)).located(Source("x + z", "f.cd")))
        f.cd:1:5: there is no z
          1 | x + z
            |     ^
        """
        self.source = self.source or source
        return self

    def __str__(self) -> str:
        parts = [self.message]
        if self.source is not None and self.span is not None:
            parts[0] = f"{self.source.name}:{self.span.line}:{self.span.column}: {self.message}"
            parts.append(self.source.excerpt(self.span))
        if self.source is not None and self.also is not None:
            label, span = self.also
            parts += [f"{label} (line {span.line}):", self.source.excerpt(span)]
        if self.remedy:
            parts.append(f"remedy: {self.remedy}")
        return "\n".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What IPython and Jupyter print: the message, below the frames of the caller's own functions."""
        lines = "".join(without_frames(self)).splitlines()
        return lines[-len(str(self).splitlines()) :] if len(_frames(self)) < 2 else lines


def without_frames(error: BaseException) -> list[str]:
    """The traceback of an error as lines, without the frames of the library and of IPython."""
    import traceback

    frames = _frames(error)
    head = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return [*head, *traceback.format_exception_only(error)]


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    import traceback

    found = traceback.extract_tb(error.__traceback__)
    return [f for f in found if not f.filename.startswith(_HERE) and f"{os.sep}IPython{os.sep}" not in f.filename]


class LanguageError(CombDiffError):
    """The program is not valid: an error of syntax, names, types, declarations or index ranges.

    >>> import combdiff as cd
    >>> cd.grad("(x::RV) -> sum(i, y(i))")
    Traceback (most recent call last):
    ...
    combdiff.errors.LanguageError: <text>:1:19: unknown name y
      1 | (x::RV) -> sum(i, y(i))
        |                   ^
    remedy: make it a parameter, `(y::RV) -> …`, or define it before
    """


class UnsupportedError(CombDiffError):
    """The program is valid, but this operation is not defined for it; the remedy says which one is.

    >>> import combdiff as cd
    >>> cd.simplified("(x::RV) -> sum(i, x(i))").compile("fortran")
    Traceback (most recent call last):
    ...
    combdiff.errors.UnsupportedError: there is no backend 'fortran'
    remedy: choose one of numpy, cupy, jax, torch, dask
    """


class ArrayError(CombDiffError):
    """An array does not fit the program: its shape, size or dtype, or a declared symmetry that it does not have.

    >>> import combdiff as cd, numpy as np
    >>> cd.grad("(x::RV) -> sum(i, x(i)^2)").compile()(np.ones((2, 2)))
    Traceback (most recent call last):
    ...
    combdiff.errors.ArrayError: x has 1 index, but the array has 2 axes
    remedy: give an array with an axis for each index
    """


class FileFormatError(CombDiffError):
    """A file of another program, such as Wannier90, does not have the expected format; the message gives the line."""


class CheckError(CombDiffError):
    """An internal check failed: a simplification changed the value. The message names stage and law family.

    This is a fault of combdiff, and no program should meet it: report it with the program and the message.
    """


class BudgetError(CombDiffError):
    """A budget of time, nodes or memory is too small even for a first result.

    >>> import combdiff as cd
    >>> cd.grad("(A::RM) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))").plan(memory="1 kB", A=(600, 600))
    Traceback (most recent call last):
    ...
    combdiff.errors.BudgetError: the results alone take 4800 bytes, and memory is limited to 1000
    remedy: give memory=37616 or more, or smaller arrays
    """
