"""Functions that are made of those of the language, `grammar/functions.cd`: a line a function.

    triu = A -> (i, j) -> where(i <= j, A(i, j))

A call is read as if the map stood in its place, so that a result shows what the function is made of. A parameter of the
type `Number` takes real and complex numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from combdiff.errors import Span
from combdiff.language.parsing.parser import parse
from combdiff.language.parsing.syntax import Lambda, Param, TypeName
from combdiff.language.vocabulary import MADE


def made(name: str, place: Span) -> Lambda:
    """The map that a function is, whose parts all stand at the place of its call: messages point there.

    >>> [p.name for p in made("logaddexp", Span(0, 5)).params]
    ['x', 'y']
    """
    moved = _at(_read(name), place)
    assert isinstance(moved, Lambda), "a function is a map"
    return moved


def takes_any_number(param: Param) -> bool:
    """Whether a parameter takes real and complex numbers."""
    return isinstance(param.kind, TypeName) and param.kind.text == "Number"


def with_numbers(function: Lambda, complex_: Sequence[bool]) -> Lambda:
    """The map with the types of numbers that are given.

    >>> [p.kind.text for p in with_numbers(made("sec", Span(0, 3)), [True]).params]
    ['C']
    """
    params = [
        replace(p, kind=TypeName("C" if given else "R", p.span)) if takes_any_number(p) else p
        for p, given in zip(function.params, complex_, strict=True)
    ]
    return replace(function, params=tuple(params))


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
