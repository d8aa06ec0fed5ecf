"""Functions that are made of those of the language, `grammar/functions.cd`: a line a function.

    triu = A -> (i, j) -> where(i <= j, A(i, j))

A call is read as if the map stood in its place, so that a result shows what the function is made of.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from combdiff.errors import Span
from combdiff.language.parsing.parser import parse
from combdiff.language.parsing.syntax import Lambda
from combdiff.language.vocabulary import MADE


def made(name: str, place: Span) -> Lambda:
    """The map that a function is, whose parts all stand at the place of its call: messages point there.

    >>> [p.name for p in made("logaddexp", Span(0, 5)).params]
    ['x', 'y']
    """
    moved = _at(_read(name), place)
    assert isinstance(moved, Lambda), "a function is a map"
    return moved


@cache
def _read(name: str) -> Lambda:
    body = parse(MADE[name], f"functions.cd, {name}").body
    assert isinstance(body, Lambda), "a function is a map"
    return body


def _at(node: Any, place: Span) -> Any:  # what a syntax tree is made of
    """The same tree at another place."""
    if isinstance(node, Span):
        return place
    if isinstance(node, tuple):
        return tuple([_at(part, place) for part in node])
    if is_dataclass(node) and not isinstance(node, type):
        return type(node)(*[_at(getattr(node, field.name), place) for field in fields(node)])
    return node
