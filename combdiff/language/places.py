"""Finds the place in a program's text to which an error belongs that was raised after the text was read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from combdiff.errors import CombDiffError, Mention, Span
from combdiff.language.parsing.parser import parse
from combdiff.language.parsing.syntax import Apply, Block, Expr, Lambda, Name, Param, nodes_of
from combdiff.language.vocabulary import DERIVATIVES
from combdiff.terms.recursion import deep_recursion


@contextmanager
def located_errors(text: str, name: str) -> Iterator[None]:
    """Give an error that is raised meanwhile its place in the program, if its subject occurs there.

    >>> with located_errors("(x::R) -> (y::R) -> x * y", "<text>"):
    ...     raise CombDiffError("y is a tuple", about=Mention("y"))
    Traceback (most recent call last):
      ...
    combdiff.errors.CombDiffError: <text>:1:12: y is a tuple
      1 | (x::R) -> (y::R) -> x * y
        |            ^^^^
    """
    try:
        with deep_recursion():
            yield
    except CombDiffError as error:
        find_place(error, text, name)
        raise


def find_place(error: CombDiffError, text: str, name: str) -> None:
    """Give an error its place in the program, if its subject occurs there.

    >>> error = CombDiffError("y is a tuple", about=Mention("y"))
    >>> find_place(error, "(x::R) -> (y::R) -> x * y", "<text>")
    >>> print(error)
    <text>:1:12: y is a tuple
      1 | (x::R) -> (y::R) -> x * y
        |            ^^^^
    """
    if error.about is not None and error.span is None:
        module = parse(text, name)
        error.span = _place(error.about, module.body)
        error.located(module.source)


def _place(about: Mention, body: Expr) -> Span | None:
    """What the program returns, if one derivative is taken; the last parameter of a name; or the first call."""
    nodes = list(nodes_of(body))
    if not about.name:
        return _returned(body).span if sum(map(_is_derivative, nodes)) < 2 else None
    if not about.called:
        return next((n.span for n in reversed(nodes) if isinstance(n, Param) and n.name == about.name), None)
    calls = [n for n in nodes if isinstance(n, Apply) and about.name in _names_in(n.function)]
    return next((c.span for c in calls if not about.beside or about.beside & _names_in(c.args)), None)


def _is_derivative(e: object) -> bool:
    return isinstance(e, Apply) and isinstance(e.function, Name) and e.function.text in DERIVATIVES


def _returned(e: Expr) -> Expr:
    """The value of the innermost map: x * y of (x::R) -> grad((y::R) -> x * y)."""
    match e:
        case Lambda(_, body) | Block(_, body):
            return _returned(body)
        case Apply(_, (Lambda() as f, *_)) if _is_derivative(e):
            return _returned(f)
        case _:
            return e


def _names_in(tree: object) -> set[str]:
    return {n.text for n in nodes_of(tree) if isinstance(n, Name)}
