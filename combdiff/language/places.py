"""Finds the place in a program's text that belongs to a term with an error."""

from __future__ import annotations

from combdiff.errors import CombDiffError, Mention, Span
from combdiff.language.parsing.parser import parse
from combdiff.language.parsing.syntax import Apply, Expr, Name, Param, nodes_of


def find_place(error: CombDiffError, text: str, name: str) -> None:
    """Give an error its place in the program, if what it is about stands there.

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
    """The last parameter of that name, which hides the others; or the first call."""
    nodes = list(nodes_of(body))
    if not about.called:
        return next((n.span for n in reversed(nodes) if isinstance(n, Param) and n.name == about.name), None)
    calls = [n for n in nodes if isinstance(n, Apply) and about.name in _names_in(n.function)]
    return next((c.span for c in calls if not about.beside or about.beside & _names_in(c.args)), None)


def _names_in(tree: object) -> set[str]:
    return {n.text for n in nodes_of(tree) if isinstance(n, Name)}
